/**
 * What counts where the user says nothing, on the command line and in the library. What the configuration has is in `config/options.ts`.
 */

/** How long a drain may take. */
export const DRAIN_TIMEOUT_MS = 30_000
/** A run leaves tasks queued that are due later than this. */
export const MAX_WAIT_MS = 600_000
/** Pages that a preview reads. */
export const SAMPLE_PAGES = 200
