import type { Clock } from './clock.ts'

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

export interface Retry {
  readonly policy: BackoffPolicy
  /** Whether another try is worth while after so many; told of each failure once. */
  readonly again: (error: unknown, tries: number) => boolean
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal?: AbortSignal | undefined
  /** As of `backoffMs`; chance where not given. */
  readonly random?: (() => number) | undefined
}

/** Tries until it succeeds, with a back-off before each further try. Errors: those after which there is none; the signal's reason. */
export async function retried<T>(step: () => Promise<T>, { policy, again, clock, signal, random = Math.random }: Retry): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await step()
    } catch (error) {
      if (!again(error, tries)) throw error
      await clock.sleep(backoffMs(policy, tries, random()), signal)
    }
  }
}
