import { describe, expect, it } from 'vitest'
import { RecentSet } from '../../../src/kernel/recent-set.ts'

describe('what was given lately', () => {
  it('is known for as many others as it is asked to remember', () => {
    const recent = new RecentSet(10)
    expect(recent.add('a')).toBe(true)
    for (let index = 0; index < 9; index += 1) recent.add(`${index}`)
    expect(recent.add('a')).toBe(false)
    for (let index = 10; index < 20; index += 1) recent.add(`${index}`)
    expect(recent.add('a')).toBe(false)
    expect(recent.add('19')).toBe(false)
  })

  it('is forgotten in the end, and takes no more memory than for twice as many', () => {
    const recent = new RecentSet(10)
    recent.add('a')
    let most = 0
    for (let index = 0; index < 1_000; index += 1) {
      recent.add(`${index}`)
      most = Math.max(most, recent.size)
    }
    expect(most).toBeLessThanOrEqual(20)
    expect(recent.add('a')).toBe(true)
  })
})
