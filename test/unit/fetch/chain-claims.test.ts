import { describe, expect, it } from 'vitest'
import { ChainClaims } from '../../../src/fetch/chain-claims.ts'
import { StoreGate } from '../../../src/fetch/store-gate.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import type { UrlTask } from '../../../src/message/generated/types.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const hop = { url: 'http://a.example/from', status: 302, location: '/to', setCookies: [] as string[] }

/** Whether a chain ends at `/to`, where another task of its crawl has that page. */
async function isKnown(task: Partial<UrlTask>, change: { setCookies?: string[]; method?: string } = {}): Promise<boolean> {
  const chains = new ChainClaims({
    state: { claim: async () => [], lookUpClaims: async (claims) => claims.map(() => 'known') },
    gate: new StoreGate({ clock: new ManualClock(), observer: silentObserver, signal: new AbortController().signal }),
    claimTtlMs: 1_000,
  })
  const own = newUrlTask({ url: 'http://a.example/from', taskId: 't', crawlId: 'c', dedup: 'crawl', redirects: [hop], ...task })
  const { setCookies = [], method = 'GET' } = change
  return chains.isKnown(own, {
    kind: 'hop',
    target: new URL('http://a.example/to'),
    method,
    headers: {},
    body: null,
    hop: { ...hop, setCookies },
  })
}

describe('a redirect to a page that another task of its crawl has', () => {
  it('is the end of the chain', async () => {
    expect(await isKnown({})).toBe(true)
  })

  it.each([
    ['outside of a crawl', { crawlId: null }, {}],
    ['where the task wants the page in any case', { dedup: 'none' as const }, {}],
    ['with another method', {}, { method: 'POST' }],
    ['of a sitemap, which is no page', { sitemapLevel: 1 }, {}],
    ['where the hop sets cookies', {}, { setCookies: ['a=1'] }],
    ['where the chain has been there', { redirects: [hop, { ...hop, url: 'http://a.example/to#x' }] }, {}],
    ['where the task has its URL', { url: 'http://a.example/to' }, {}],
  ])('is followed %s', async (_, task, change) => {
    expect(await isKnown(task, change)).toBe(false)
  })

  it('is the end whatever stands in a chain that another program has written', async () => {
    expect(await isKnown({ redirects: [{ ...hop, url: 'nonsense' }, hop] })).toBe(true)
  })
})
