import { describe, expect, it } from 'vitest'
import { LiftedSites } from '../../../src/delay/lifted-sites.ts'

const RESET_AT = 1_000_000
const message = (timestamp: number, key = 'shop.example', reason = 'retry-after', known?: number) => ({
  topic: 'delay',
  partition: 0,
  offset: 1n,
  timestamp,
  key: Buffer.from(key),
  value: null,
  headers: { 'millrace-reason': reason, ...(known === undefined ? {} : { 'millrace-slots-ms': String(known) }) },
})

describe('a task in a delay topic whose site was reset', () => {
  const isLifted = (name: string, url: string | undefined, waiting = message(RESET_AT - 1)): boolean => {
    const resets = new LiftedSites()
    resets.add(name, { resetAt: RESET_AT })
    return resets.isLifted(waiting, () => url)
  }

  it.each([
    ['shop.example', 'http://shop.example/'],
    ['shop.example', 'http://a.b.shop.example:81/x'],
    ['b.shop.example', 'http://a.b.shop.example/'],
  ])('comes back: %s for %s', (name, url) => {
    expect(isLifted(name, url)).toBe(true)
  })

  it.each([
    ['b.shop.example', 'http://shop.example/'],
    ['b.shop.example', 'http://notb.shop.example/'],
    ['shop.example', 'mailto:a'],
    ['shop.example', undefined],
  ])('waits on: %s is not for %s', (name, url) => {
    expect(isLifted(name, url)).toBe(false)
  })

  it('waits on where it was put aside after that, or where its producer does not want it sooner', () => {
    expect(isLifted('shop.example', 'http://shop.example/', message(RESET_AT + 4_999))).toBe(true)
    expect(isLifted('shop.example', 'http://shop.example/', message(RESET_AT + 5_000))).toBe(false)
    expect(isLifted('shop.example', 'http://shop.example/', message(0, 'shop.example', 'not-before'))).toBe(false)
  })

  it('is not read where its domain was never reset', () => {
    const resets = new LiftedSites()
    resets.add('shop.example', { resetAt: RESET_AT })
    const unread = (): string => {
      throw new Error('was read')
    }
    expect(resets.isLifted(message(0, 'other.example'), unread)).toBe(false)
    expect(() => resets.isLifted(message(0), unread)).toThrow('was read')
  })

  it('counts the latest reset of a domain and of those below it, each for its own hosts', () => {
    const resets = new LiftedSites()
    resets.add('b.shop.example', { resetAt: RESET_AT + 60_000 })
    resets.add('shop.example', { resetAt: RESET_AT })
    const between = message(RESET_AT + 30_000)
    expect(resets.isLifted(between, () => 'http://b.shop.example/')).toBe(true)
    expect(resets.isLifted(between, () => 'http://c.shop.example/')).toBe(false)
  })
})

describe('a task in a delay topic whose site has a faster pace since', () => {
  const FASTER_AT = RESET_AT
  const sites = new LiftedSites()
  sites.add('shop.example', { fasterAt: FASTER_AT })
  const isLifted = (waiting: ReturnType<typeof message>): boolean => sites.isLifted(waiting, () => 'http://www.shop.example/')
  const aside = (reason: string, known?: number) => message(FASTER_AT - 1, 'shop.example', reason, known)

  it.each(['spill', 'paused'])('comes back where it waits for its turn: %s', (reason) => {
    expect(isLifted(aside(reason))).toBe(true)
    expect(isLifted(aside(reason, FASTER_AT - 1))).toBe(true)
  })

  it.each(['retry-after', 'back-off', 'parked', 'crawl-full', 'not-before', 'http-503', 'timeout'])(
    'waits on where it waits for more than its turn: %s',
    (reason) => {
      expect(isLifted(aside(reason))).toBe(false)
    },
  )

  it.each([
    ['faster', { fasterAt: FASTER_AT }, 'spill'],
    ['reset', { resetAt: FASTER_AT }, 'retry-after'],
  ])('is not brought back again by a worker that knows that it is %s', (_about, from, reason) => {
    const known = new LiftedSites()
    known.add('shop.example', from)
    const again = (slots?: number): boolean =>
      known.isLifted(message(FASTER_AT + 500, 'shop.example', reason, slots), () => 'http://shop.example/')
    expect(again()).toBe(true)
    expect(again(FASTER_AT)).toBe(false)
  })
})

describe('a task in a delay topic whose site was resumed since', () => {
  const sites = new LiftedSites()
  sites.add('shop.example', { resumedAt: RESET_AT })
  const isLifted = (reason: string, known?: number): boolean =>
    sites.isLifted(message(RESET_AT - 1, 'shop.example', reason, known), () => 'http://www.shop.example/')

  it('comes back where it waits for the end of a pause, and by a worker that knows it is not brought back again', () => {
    expect(isLifted('paused')).toBe(true)
    expect(isLifted('paused', RESET_AT)).toBe(false)
  })

  it.each(['spill', 'retry-after', 'back-off', 'parked', 'crawl-full', 'not-before', 'http-503'])('waits on otherwise: %s', (reason) => {
    expect(isLifted(reason)).toBe(false)
  })
})
