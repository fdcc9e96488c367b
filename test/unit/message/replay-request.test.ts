import { expect, it } from 'vitest'
import type { Command } from '../../../src/message/generated/types.ts'
import { inFilter, isBegunBefore, partitionShare, rangeOf } from '../../../src/message/replay-request.ts'
import { isOfDomain } from '../../../src/url/registrable-domain.ts'

function command(kind: Command['kind'], payload: object, about = 'replay:r'): Command {
  return { id: 'i', kind, subject: about, payload: JSON.stringify(payload), at: 0, by: 'test', replyTo: null }
}

it.each([
  ['a second begin gives way to the first', command('request', {}), command('request', {}), true],
  ['a begin that comes after the end gives way', command('close', {}), command('request', {}), true],
  ['a replay is called off', command('request', {}), command('request', { cancelled: true }), false],
  ['a replay is closed', command('request', {}), command('close', {}), false],
  ['a request of something else counts', command('request', {}, 'crawl:r'), command('request', {}, 'crawl:r'), false],
])('%s', (_, held, next, expected) => {
  expect(isBegunBefore(held, next)).toBe(expected)
})

it('a page whose address is no URL, as another program may have written it, lies in no domain', () => {
  const page = { crawlId: 'c', fetchedAt: 1, finalUrl: 'no url' }
  expect(inFilter(page, { domain: 'shop.example' }, isOfDomain)).toBe(false)
  expect(inFilter(page, { crawlId: 'c' }, isOfDomain)).toBe(true)
})

it('the pages of a replay are shared among its partitions, in place and beside live work alike, and all shares are one whole', () => {
  const ranges = [
    { partition: 0, from: '10', until: '40' },
    { partition: 3, from: '0', until: '10' },
  ]
  const about = { replayId: 'r', groupId: 'g', extractor: 'book', extractorVersion: 1, filter: {} }
  for (const request of [
    { ...about, ranges },
    { ...about, shadow: { topic: 't', ranges } },
  ])
    expect([0, 3, 1].map((partition) => partitionShare(request, partition))).toEqual([0.75, 0.25, undefined])
  // A live worker has no part in a shadow.
  expect(rangeOf({ ...about, shadow: { topic: 't', ranges } }, 0)).toBeUndefined()
})
