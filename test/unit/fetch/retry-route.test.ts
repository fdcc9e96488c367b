import { describe, expect, it } from 'vitest'
import { retryRoute } from '../../../src/fetch/retry-route.ts'

const policy = { maxAttempts: 5, firstDelayMs: 10_000, maxDelayMs: 3_600_000 }
const request = { attempt: 1, expiresAt: null }

describe('the route of a failed attempt', () => {
  it('is a retry after an exponential delay with jitter between half and the whole', () => {
    expect(retryRoute(policy, request, 1_000, 0)).toEqual({ kind: 'retry', dueAt: 6_000 })
    expect(retryRoute(policy, request, 1_000, 0.999_99)).toMatchObject({ kind: 'retry', dueAt: 11_000 })
    expect(retryRoute(policy, { ...request, attempt: 3 }, 0, 0)).toEqual({ kind: 'retry', dueAt: 20_000 })
  })

  it('never comes before what the site asked for, however long that is', () => {
    expect(retryRoute(policy, { ...request, retryAfterMs: 7_200_000 }, 0, 0.5)).toEqual({ kind: 'retry', dueAt: 7_200_000 })
    expect(retryRoute(policy, { ...request, retryAfterMs: 1 }, 0, 0)).toEqual({ kind: 'retry', dueAt: 5_000 })
  })

  it('is longer for a site that has too many requests, up to the maximum', () => {
    expect(retryRoute(policy, { ...request, factor: 6 }, 0, 0)).toEqual({ kind: 'retry', dueAt: 30_000 })
    expect(retryRoute(policy, { ...request, factor: 6_000 }, 0, 0)).toEqual({ kind: 'retry', dueAt: 1_800_000 })
  })

  it('ends when the attempts are used up, or the task expires first', () => {
    expect(retryRoute(policy, { ...request, attempt: 4 }, 0, 0).kind).toBe('retry')
    expect(retryRoute(policy, { ...request, attempt: 5 }, 0, 0)).toEqual({ kind: 'exhausted' })
    expect(retryRoute(policy, { ...request, expiresAt: 5_000 }, 0, 0)).toEqual({ kind: 'too-late' })
    expect(retryRoute(policy, { ...request, expiresAt: 5_001 }, 0, 0).kind).toBe('retry')
  })
})
