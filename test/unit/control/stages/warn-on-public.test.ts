import { describe, expect, it } from 'vitest'
import { warnOnPublic } from '../../../../src/control/stages/warn-on-public.ts'
import type { HttpExchange, HttpRequest, HttpResult } from '../../../../src/fetch/http-exchange.ts'
import { httpResponse } from '../../../support/http-response.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'

const REQUEST = { url: new URL('http://a.example/') } as HttpRequest
const from = (remoteAddress: string | null): HttpResult => httpResponse(200, {}, { remoteAddress })
const REFUSED: HttpResult = { kind: 'failure', reason: 'connect-refused', detail: '', totalMs: 1 }

/** The exchange gives these results, one after the other. Shape: how often a word was said after each. */
async function warnings(results: readonly HttpResult[]): Promise<readonly number[]> {
  const given = [...results]
  const exchange: HttpExchange = { request: async () => given.shift() as HttpResult, proxiesBackInMs: () => 7 }
  const seen = recordingObserver()
  const warning = warnOnPublic(exchange, seen.observer)
  const counts: number[] = []
  for (const result of results) {
    expect(await warning.request(REQUEST)).toBe(result)
    counts.push(seen.count('UserAgentMissing'))
  }
  expect([warning.proxiesBackInMs(REQUEST.url), seen.events.length]).toEqual([7, counts.at(-1)])
  return counts
}

describe('the word about a missing user agent', () => {
  it.each(['93.184.216.34', '2606:2800:220:1::1'])('is said once that a public address has answered: %s', async (address) => {
    expect(await warnings([from('127.0.0.1'), from(address), from(address), from('198.41.0.4')])).toEqual([0, 1, 1, 1])
  })

  it.each(['127.0.0.1', '10.1.2.3', '192.168.0.1', '169.254.169.254', '::1', 'fd00::1', '::ffff:10.1.2.3'])(
    'is not said of one that is not public: %s',
    async (address) => {
      expect(await warnings([from(address), from(null), REFUSED])).toEqual([0, 0, 0])
    },
  )
})
