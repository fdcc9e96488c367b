import { expect, it } from 'vitest'
import type { Command } from '../../../src/message/generated/types.ts'
import { inFilter, isBegunBefore } from '../../../src/message/replay-request.ts'
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
