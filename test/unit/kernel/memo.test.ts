import { describe, expect, it } from 'vitest'
import { memo } from '../../../src/kernel/memo.ts'

describe('what is remembered by name', () => {
  it('is computed once, and again only after it was forgotten for others', () => {
    const asked: string[] = []
    const length = memo((name: string) => {
      asked.push(name)
      return name.length
    }, 2)
    expect([length('a'), length('bb'), length('a'), length('bb')]).toEqual([1, 2, 1, 2])
    expect(asked).toEqual(['a', 'bb'])
    expect([length('ccc'), length('dd'), length('eee')]).toEqual([3, 2, 3])
    expect([length('dd'), length('a')]).toEqual([2, 1])
    expect(asked).toEqual(['a', 'bb', 'ccc', 'dd', 'eee', 'a'])
  })

  it('may be nothing', () => {
    let count = 0
    const nothing = memo(() => {
      count += 1
      return undefined
    }, 5)
    expect([nothing('a'), nothing('a')]).toEqual([undefined, undefined])
    expect(count).toBe(1)
  })
})
