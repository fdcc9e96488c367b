import { availableParallelism, loadavg } from 'node:os'

/** What a missed time limit says: tests that fail by it, and by nothing else, are tried once more (`test/config/vitest.config.ts`). */
export const TIME_LIMIT_MISSED = /^time limit missed: /

/**
 * Holds what took `tookMs` to less than `limitMs`, as on a machine that has the time for it: on one with more to do than it has
 * cores, everything takes as much longer as each process waits for one.
 */
export function expectInTime(tookMs: number, limitMs: number, what = 'it'): void {
  if (Number.isNaN(tookMs)) throw new Error(`${what} was never seen`)
  const crowding = Math.max(1, (loadavg()[0] ?? 1) / availableParallelism())
  if (tookMs < limitMs * crowding) return
  throw new Error(
    `time limit missed: ${what} took ${Math.round(tookMs)} ms of ${limitMs}, at ${crowding.toFixed(1)} times the load that fits`,
  )
}
