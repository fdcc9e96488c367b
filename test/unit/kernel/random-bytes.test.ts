import { describe, expect, it } from 'vitest'
import { randomBytes } from '../../../src/kernel/random-bytes.ts'

describe('random bytes from a pool', () => {
  it('are as many as were asked for, never the same ones, and stay as they were given', () => {
    const given = Array.from({ length: 2_000 }, (_, index) => randomBytes(8 + (index % 9)))
    const texts = given.map((bytes) => bytes.toString('hex'))
    expect(given.map(({ length }) => length)).toEqual(given.map((_, index) => 8 + (index % 9)))
    expect(new Set(texts).size).toBe(2_000)
    expect(given.map((bytes) => bytes.toString('hex'))).toEqual(texts)
  })
})
