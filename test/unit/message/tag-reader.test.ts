import fc from 'fast-check'
import { Parser } from 'htmlparser2'
import { describe, expect, it } from 'vitest'
import { TagReader } from '../../../src/message/tag-reader.ts'
import { growth } from '../../support/growth.ts'
import { HOSTILE_UNITS, tagOf } from '../../support/hostile-pages.ts'
import { TAG_NAMES } from '../../support/page-mutations.ts'

/** Tags of a text that comes in pieces: names with what is asked for, end tags with a slash. */
function tagsOf(pieces: readonly string[], wanted: readonly string[] = ['href']): string[] {
  const tags: string[] = []
  const reader = new TagReader(wanted, {
    onOpen: (name, attributes) => tags.push([name, ...[...attributes].map(([key, value]) => `${key}=${value}`)].join(' ')),
    onClose: (name) => tags.push(`/${name}`),
  })
  for (const piece of pieces) reader.write(piece)
  reader.end()
  return tags
}

describe('tags of a page', () => {
  it('are those of its markup, with the first of each attribute that is asked for', () => {
    const html = '<!-- <b> --><A HREF="/x?a=1&amp;b" id=1 href=2>x</a><script>"<i>"</script><title><u></title><svg><template/></svg><br/>'
    expect(tagsOf([html])).toEqual([
      'a href=/x?a=1&b',
      '/a',
      'script',
      '/script',
      'title',
      '/title',
      'svg',
      'template',
      '/template',
      '/svg',
      'br',
    ])
    expect(tagsOf(['<a href>', '<p/><a'])).toEqual(['a href=', 'p'])
  })

  it('are the same in whatever pieces the text comes', () => {
    const part = fc.oneof(
      fc.constantFrom(...TAG_NAMES).map((name) => `<${name} href='&amp;x${name}' b>`),
      fc.constantFrom(...TAG_NAMES).map((name) => `</${name}>`),
      fc.constantFrom('text', '&lt;', '<', '<!--', '-->', '<![CDATA[', ']]>', '"', '<a href="', '<script>', '</scripty>', '&notin'),
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 20 }), fc.array(fc.nat(40), { maxLength: 12 }), (parts, lengths) => {
        const text = parts.join('')
        const pieces: string[] = []
        let at = 0
        for (const length of lengths) {
          pieces.push(text.slice(at, at + length))
          at += length
        }
        expect(tagsOf([...pieces, text.slice(at)])).toEqual(tagsOf([text]))
      }),
      { numRuns: 400 },
    )
  })

  it('begin where the parser of the library finds them', () => {
    for (const unit of HOSTILE_UNITS) {
      const text = `${unit.repeat(5)}<a href=x>${unit}`
      const theirs: string[] = []
      // A paragraph or a break that only its end tag names is none here.
      const parser = new Parser({ onopentag: (name, _, isImplied) => (isImplied ? undefined : theirs.push(name)) })
      parser.end(text)
      expect({ text, tags: tagsOf([text], []).filter((tag) => !tag.startsWith('/')) }).toEqual({ text, tags: theirs })
    }
  })

  it.each([
    ['elements that stay open', 60_000, (count: number) => '<b>'.repeat(count)],
    ['end tags of nothing', 40_000, (count: number) => '<a>'.repeat(count) + '</b>'.repeat(count)],
    ['drawings within drawings', 40_000, (count: number) => '<svg>'.repeat(count)],
    ['attributes of a tag', 20_000, (count: number) => tagOf(count)],
  ])('cost no more than their text: %s', (_, count, page) => {
    const pieces = (text: string): string[] =>
      Array.from({ length: Math.ceil(text.length / 65_536) }, (__, at) => text.slice(at * 65_536, (at + 1) * 65_536))
    expect(growth((size) => tagsOf(pieces(page(size))), count)).toBeLessThan(9)
  })
})
