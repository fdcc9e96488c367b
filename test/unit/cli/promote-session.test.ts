import { describe, expect, it } from 'vitest'
import { backTo } from '../../../src/cli/promote-session.ts'

const book = (version: number) => ({ name: 'book', version })

describe('the way back from a promotion', () => {
  it('is typed as it stands where the files are those of the configuration', () => {
    expect(backTo({ ...book(1), files: [], loaded: [book(1), book(2)] })).toBe('millrace promote book:1')
  })

  it('has the files that were named', () => {
    const files = ['book.yaml', "the 2nd book's.yaml"]
    expect(backTo({ ...book(1), files, loaded: [book(1), book(2)] })).toBe(
      "millrace promote book:1 --extractor book.yaml --extractor 'the 2nd book'\\''s.yaml'",
    )
  })

  it('asks for the file of a version that none of them defines', () => {
    const text = 'millrace promote book:1 --extractor FILE (that of version 1)'
    expect(backTo({ ...book(1), files: ['book2.yaml'], loaded: [book(2)] })).toBe(text)
    expect(backTo({ ...book(1), files: [], loaded: [book(2)] })).toBe(text)
  })
})
