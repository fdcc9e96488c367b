import { describe, expect, it } from 'vitest'
import { activeVersions } from '../../../src/control/active-versions.ts'
import type { LoadedExtractor } from '../../../src/extract/load-extractors.ts'

const loaded = (...names: string[]): LoadedExtractor[] =>
  names.map((text) => ({ name: text.split(':')[0], version: Number(text.split(':')[1]) }) as LoadedExtractor)

const active = (names: string[], promoted: Record<string, number> = {}): string[] =>
  activeVersions(loaded(...names), new Map(Object.entries(promoted))).map(({ name, version }) => `${name}:${version}`)

describe('the version of a name that works', () => {
  it('is the lowest until one is promoted, and then that one', () => {
    expect(active(['book:2', 'book:1', 'shop:4'])).toEqual(['book:1', 'shop:4'])
    expect(active(['book:3', 'book:1', 'book:2'], { book: 2 })).toEqual(['book:2'])
    expect(active(['book:2', 'book:1', 'book:3'], { book: 2 })).toEqual(['book:2'])
  })

  it('is the one that has a file, whatever is promoted', () => {
    expect(active(['book:3'], { book: 2 })).toEqual(['book:3'])
    expect(active(['book:4', 'book:3'], { book: 2 })).toEqual(['book:3'])
    expect(active([], { book: 2 })).toEqual([])
  })
})
