import { describe, expect, it } from 'vitest'
import { RecentMap } from '../../../src/kernel/recent-map.ts'

describe('what was set lately', () => {
  it('is there for as many others as are to be remembered, from the last time that it was set', () => {
    const recent = new RecentMap<string, number>(10)
    recent.set('a', 1)
    for (let index = 0; index < 9; index += 1) recent.set(`${index}`, index)
    expect(recent.get('a')).toBe(1)
    recent.set('b', 0)
    recent.set('a', 2)
    for (let index = 10; index < 19; index += 1) recent.set(`${index}`, index)
    expect(recent.get('a')).toBe(2)
    expect(recent.get('18')).toBe(18)
    expect(recent.get('0')).toBeUndefined()
  })

  it('is once in it, the older first', () => {
    const recent = new RecentMap<string, number>(2)
    for (const [index, key] of ['a', 'b', 'c', 'a', 'a'].entries()) recent.set(key, index)
    expect([...recent]).toEqual([
      ['b', 1],
      ['c', 2],
      ['a', 4],
    ])
    expect(recent.size).toBe(3)
  })

  it('is gone where it was taken out, also of the older half', () => {
    const recent = new RecentMap<string, number>(2)
    for (const key of ['a', 'b', 'c']) recent.set(key, 0)
    recent.delete('a')
    recent.delete('c')
    expect(['a', 'b', 'c'].map((key) => recent.has(key))).toEqual([false, true, false])
  })

  it('takes no more memory than for twice as many', () => {
    const recent = new RecentMap<number, number>(10)
    let most = 0
    for (let index = 0; index < 1_000; index += 1) {
      recent.set(index, index)
      most = Math.max(most, recent.size)
    }
    expect(most).toBe(20)
  })
})
