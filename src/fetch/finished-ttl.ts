const LEAST_MS = 21_600_000

/** How long a finished attempt or task is remembered: a copy of it that was put aside may come back so much later. Units: ms. */
export function finishedTtlMs(retryMaxDelayMs: number): number {
  return Math.max(LEAST_MS, 2 * retryMaxDelayMs)
}
