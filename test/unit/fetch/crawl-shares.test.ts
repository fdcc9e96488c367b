import { describe, expect, it } from 'vitest'
import { CrawlShares } from '../../../src/fetch/crawl-shares.ts'

const full = { waiting: 800, own: 790 }

function learnt(open: Record<string, number>, here: Record<string, number> = {}): CrawlShares {
  const shares = new CrawlShares()
  const others = Object.entries(open).map(([crawlId, count]) => ({ crawlId, open: count }))
  shares.learn({ count: others.length, named: [], others }, (crawl) => here[crawl] ?? 0)
  return shares
}

describe('the share of a crawl in a window', () => {
  it('is all of it while no other crawl is open, or all tasks of the others are here', () => {
    for (const shares of [new CrawlShares(), learnt({ a: 1_000 }), learnt({ a: 1_000, b: 5 }, { a: 790, b: 5 })]) {
      expect(shares.isSurplus('a', full)).toBe(false)
      expect(shares.surplusIn('a', full)).toBe(0)
    }
  })

  it('is one of as many as there are open crawls, while tasks of another one are elsewhere', () => {
    const shares = learnt({ a: 1_000, b: 5 })
    expect(shares.isSurplus('a', { waiting: 160, own: 150 })).toBe(true)
    expect(shares.isSurplus('b', { waiting: 160, own: 1 })).toBe(false)
    expect(learnt({ a: 9, b: 9, c: 9, d: 9, e: 9, f: 9 }).isSurplus('a', { waiting: 160, own: 50 })).toBe(true)
  })

  it('is as small where the others are told of by a sample', () => {
    const shares = new CrawlShares()
    const others = Array.from({ length: 10 }, (_, index) => ({ crawlId: `o${index}`, open: 2 }))
    shares.learn({ count: 101, named: [{ crawlId: 'a', open: 1_000 }], others }, () => 0)
    expect(shares.isSurplus('a', { waiting: 160, own: 4 })).toBe(true)
    // A hundred others with two tasks each.
    expect(shares.startsPerOwn('a')).toBeCloseTo(1.2)
    expect(shares.startsPerOwn('unknown')).toBe(102)
  })

  it('is not counted in a window with room, and nothing enters one that would stop reading', () => {
    const shares = learnt({ a: 1_000, b: 5 })
    expect(shares.isSurplus('a', { waiting: 149, own: 149 })).toBe(false)
    expect(shares.isSurplus('b', { waiting: 450, own: 0 })).toBe(true)
  })

  it('is what a crawl keeps when a window that is full of it has to make room', () => {
    expect(learnt({ a: 1_000, b: 5 }).surplusIn('a', full)).toBe(640)
    expect(learnt({ a: 1_000, b: 5 }).surplusIn('b', { waiting: 800, own: 10 })).toBe(0)
  })

  it('counts a task without a crawl as one of a crawl of its own', () => {
    expect(learnt({ b: 5 }).isSurplus('', full)).toBe(true)
    expect(learnt({ b: 5 }, { b: 5 }).isSurplus('', full)).toBe(false)
  })
})

describe('starts of all crawls for one start of a crawl', () => {
  it('are as many as crawls for the smallest one, and hardly more than one for a crawl that outlasts the others by far', () => {
    const shares = learnt({ huge: 100_000, b: 100, c: 100 })
    expect(shares.startsPerOwn('b')).toBe(3)
    expect(shares.startsPerOwn('huge')).toBeCloseTo(1.002, 5)
    expect(shares.startsPerOwn('')).toBe(4)
  })
})
