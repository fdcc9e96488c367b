import { describe, expect, it } from 'vitest'
import { steps } from '../../../../src/control/inspect/lineage.ts'
import type { Page } from '../../../../src/message/generated/types.ts'

const page = { fetchId: 'f', enqueuedAt: 1_000, fetchedAt: 20_000, totalMs: 300, ttfbMs: 100, redirects: [] } as const
const hop: Page['redirects'][number] = { url: 'http://a.test/', status: 301, location: '/b', setCookies: [] }
const outcome = (fetchId: string, queuedMs: number): { outcome: { at: number; fetchId: string; queuedMs: number } } => ({
  outcome: { at: 20_050, fetchId, queuedMs },
})

describe('the steps of a page', () => {
  it('count back from the end of its only request', () => {
    expect(steps(page, [outcome('f', 18_000)], []).map(({ step, at }) => [step, at])).toEqual([
      ['enqueued', 1_000],
      ['request sent', 19_700],
      ['first byte', 19_800],
      ['fetched', 20_000],
      ['outcome', 20_050],
    ])
  })

  it('are those that are known where it waited between redirects', () => {
    const redirected = { ...page, redirects: [hop] }
    expect(steps(redirected, [outcome('before', 2), outcome('f', 4_000)], []).map(({ step, at }) => [step, at])).toEqual([
      ['enqueued', 1_000],
      ['request sent', 5_000],
      ['fetched', 20_000],
      ['outcome', 20_050],
    ])
    expect(steps(redirected, [], []).map(({ step }) => step)).toEqual(['enqueued', 'fetched'])
    expect(steps({ ...redirected, enqueuedAt: null }, [outcome('f', 4_000)], []).map(({ step }) => step)).toEqual(['fetched', 'outcome'])
  })
})
