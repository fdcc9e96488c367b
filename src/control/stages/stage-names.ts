/** In the order of the flow. */
export const STAGES: readonly string[] = ['fetch', 'delay', 'frontier', 'extract']
