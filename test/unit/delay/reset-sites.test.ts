import { describe, expect, it } from 'vitest'
import { ResetSites } from '../../../src/delay/reset-sites.ts'

const RESET_AT = 1_000_000
const message = (timestamp: number, key = 'shop.example', reason = 'retry-after') => ({
  topic: 'delay',
  partition: 0,
  offset: 1n,
  timestamp,
  key: Buffer.from(key),
  value: null,
  headers: { 'millrace-reason': reason },
})

describe('a task in a delay topic whose site was reset', () => {
  const isLifted = (name: string, url: string | undefined, waiting = message(RESET_AT - 1)): boolean => {
    const resets = new ResetSites()
    resets.add(name, RESET_AT)
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
    const resets = new ResetSites()
    resets.add('shop.example', RESET_AT)
    const unread = (): string => {
      throw new Error('was read')
    }
    expect(resets.isLifted(message(0, 'other.example'), unread)).toBe(false)
    expect(() => resets.isLifted(message(0), unread)).toThrow('was read')
  })

  it('counts the latest reset of a domain and of those below it, each for its own hosts', () => {
    const resets = new ResetSites()
    resets.add('b.shop.example', RESET_AT + 60_000)
    resets.add('shop.example', RESET_AT)
    const between = message(RESET_AT + 30_000)
    expect(resets.isLifted(between, () => 'http://b.shop.example/')).toBe(true)
    expect(resets.isLifted(between, () => 'http://c.shop.example/')).toBe(false)
  })
})
