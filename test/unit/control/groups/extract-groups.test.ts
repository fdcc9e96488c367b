import { describe, expect, it } from 'vitest'
import type { Config } from '../../../../src/config/options.ts'
import { extractorsOf, narrowedTo, rangeGroup, replayGroup, requireGrouped } from '../../../../src/control/groups/extract-groups.ts'
import { loadDefinition } from '../../../../src/extract/load-extractors.ts'
import { groupNames } from '../../../../src/message/topics.ts'
import { BOOK_1 } from '../../../support/stored-shop.ts'

describe('the groups of a run with extractors of its own', () => {
  const book = loadDefinition('book.yaml', BOOK_1)
  const configOf = (groups: Readonly<Record<string, readonly string[]>>) => ({ 'extract.groups': groups }) as unknown as Config

  it('are those that have one of them; the others are left to their workers', () => {
    const config = configOf({ prices: ['price'], books: ['book'] })
    expect(() => requireGrouped(config, [book])).toThrow('extract.groups.prices names price, which no extractor file defines')
    const narrowed = narrowedTo(config, [book])
    expect(narrowed['extract.groups']).toEqual({ books: ['book'] })
    expect(() => requireGrouped(narrowed, [book])).not.toThrow()
    expect(extractorsOf({ config: narrowed }, [book], 'books')).toEqual([book])
    expect(extractorsOf({ config: narrowed }, [book], undefined)).toEqual([])
  })

  it('are refused where one has another extractor as well, whose pages would be passed over', () => {
    const config = narrowedTo(configOf({ all: ['book', 'price'] }), [book])
    expect(() => requireGrouped(config, [book])).toThrow('extract.groups.all names price')
  })
})

describe('the group that a replay in place is of', () => {
  const book = loadDefinition('book.yaml', BOOK_1)
  const within = (groups: Readonly<Record<string, readonly string[]>>) => {
    return { config: { 'extract.groups': groups } as unknown as Config, groups: groupNames('scrape.') }
  }

  it('is the one that has its extractor, named or not', () => {
    expect(replayGroup(within({ prices: ['price'] }), book, undefined)).toBe('scrape.extract')
    expect(replayGroup(within({ books: ['book'] }), book, undefined)).toBe('scrape.extract.books')
    expect(replayGroup(within({ books: ['book'] }), book, 'books')).toBe('scrape.extract.books')
  })

  it('is refused where it has not got it, which would make its workers refuse to start, and asked for where several have', () => {
    const refused = (groups: Readonly<Record<string, readonly string[]>>, group: string, text: string): void => {
      const thrown = { code: 'REPLAY_REFUSED', message: expect.stringContaining(text) }
      expect(() => replayGroup(within(groups), book, group)).toThrow(expect.objectContaining(thrown))
    }
    refused({ prices: ['price'] }, 'prices', 'leave out --group')
    refused({ books: ['book'] }, 'bocks', 'it is in books')
    // That of a candidate, whose records are on another topic: tombstones would be of live ones.
    refused({}, 'book-v1', 'leave out --group')
    const two = within({ a: ['book'], b: ['book'] })
    expect(() => replayGroup(two, book, undefined)).toThrow(expect.objectContaining({ code: 'USAGE' }))
    // What changes nothing needs no answer.
    expect(rangeGroup(two, 'book', undefined)).toBe('scrape.extract.a')
  })

  it('is refused for a range where nobody has it, but may be that of a candidate', () => {
    const groups = within({ books: ['book'] })
    expect(() => rangeGroup(groups, 'book', 'bocks')).toThrow(
      expect.objectContaining({ code: 'USAGE', message: expect.stringContaining('did you mean books?') }),
    )
    expect(rangeGroup(groups, 'book', 'book-v2')).toBe('scrape.extract.book-v2')
  })
})
