/** Exponential back-off with jitter between half and the whole of the step. All values in milliseconds. */
export interface BackoffPolicy {
  readonly firstMs: number
  readonly maxMs: number
  /** Growth per attempt; 2 where not given. */
  readonly factor?: number
}

/**
 * Delay before the next try after `attempt` tries. Shape: attempt >= 1; result in [step/2, step], step = min(maxMs, firstMs *
 * factor^(attempt-1)). Units: ms. Errors: none. `random` is in [0, 1) and is given, so that a test can fix it.
 */
export function backoffMs(policy: BackoffPolicy, attempt: number, random: number): number {
  const factor = policy.factor ?? 2
  const step = Math.min(policy.maxMs, policy.firstMs * factor ** Math.max(0, attempt - 1))
  return Math.round(step / 2 + (step / 2) * random)
}
