import { describe, expect, it } from 'vitest'
import { crawlName } from '../../../src/message/crawl-name.ts'

describe('the name of a crawl', () => {
  it.each(['spring', 'a', 'Frühjahr 2026/1'])('may be %s', (name) => {
    expect(crawlName(name, '--crawl')).toBe(name)
  })

  it('has 200 characters at most', () => {
    expect(crawlName('x'.repeat(200), '--crawl')).toHaveLength(200)
    expect(() => crawlName('x'.repeat(201), '--crawl')).toThrow('--crawl: a name of 201 characters; expected 200 at most')
  })

  it.each([
    ['', 'none was given'],
    [' ', 'none was given'],
    ['a\nb', 'control characters'],
  ])('is not %j', (name, why) => {
    expect(() => crawlName(name, '--crawl')).toThrow(why)
  })
})
