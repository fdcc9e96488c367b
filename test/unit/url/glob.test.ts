import { describe, expect, it } from 'vitest'
import { coversHosts } from '../../../src/url/glob.ts'

describe('a host pattern', () => {
  it.each([
    ['*', 'a.example', true],
    ['*', '*.example', true],
    ['*.com', 'com', true],
    ['*.com', '*.a.com', true],
    ['*.a.com', 'a.com', true],
    ['*.a.com', '*.A.com', true],
    ['*a.com', '*.a.com', true],
    ['*shop*', '*.shop.*', true],
    ['a.com', 'A.com', true],
    ['a.com', '*.a.com', false],
    ['*.*.com', '*.a.com', false],
    ['*.a.com', '*a.com', false],
    ['a.*', '*.com', false],
  ])('%s covers %s: %s', (wide, narrow, expected) => {
    expect(coversHosts(wide, narrow)).toBe(expected)
  })
})
