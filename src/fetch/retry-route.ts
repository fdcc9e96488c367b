import { backoffMs } from '../kernel/backoff.ts'

export interface RetryPolicy {
  readonly maxAttempts: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
}

export interface RetryRequest {
  /** The attempt that failed; the first is 1. */
  readonly attempt: number
  /** What the site asked for; undefined: nothing. */
  readonly retryAfterMs?: number | undefined
  /** Times the usual delay: a site that says it has too many requests gets more time than one that broke down. */
  readonly factor?: number
  /** Epoch ms. */
  readonly expiresAt: number | null
}

/** exhausted: the attempts are used up. too-late: the task expires before it may be tried again. */
export type RetryRoute = { readonly kind: 'retry'; readonly dueAt: number } | { readonly kind: 'exhausted' } | { readonly kind: 'too-late' }

/**
 * When a failed attempt is repeated, if at all. Exponential with jitter between half and the whole, never sooner than the site asked
 * for, however long that is. Units: epoch ms. Pure; `random` is in [0, 1).
 */
export function retryRoute(policy: RetryPolicy, request: RetryRequest, now: number, random: number): RetryRoute {
  if (request.attempt >= policy.maxAttempts) return { kind: 'exhausted' }
  const firstMs = Math.min(policy.maxDelayMs, policy.firstDelayMs * (request.factor ?? 1))
  const ownMs = backoffMs({ firstMs, maxMs: policy.maxDelayMs }, request.attempt, random)
  const dueAt = now + Math.max(ownMs, request.retryAfterMs ?? 0)
  return request.expiresAt !== null && dueAt >= request.expiresAt ? { kind: 'too-late' } : { kind: 'retry', dueAt }
}
