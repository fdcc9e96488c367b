import { describe, expect, it } from 'vitest'
import { dataFrom, fieldFrom } from '../../../support/extraction.ts'

describe('a transform', () => {
  it.each([
    ['{ select: p, transform: lower }', 'ÄB c', 'äb c'],
    ['{ select: p, transform: upper }', 'straße', 'STRASSE'],
    ['{ select: p, transform: capitalize }', 'éa b', 'Éa b'],
    ["{ select: p, transform: { replace: ['(\\d+) of (\\d+)', '$2/$1'] } }", '3 of 5, 4 of 9', '5/3, 9/4'],
    ["{ select: p, transform: [{ remove: '(?i)price:' }, trim] }", 'Price: 5', '5'],
    ["{ select: p, transform: [{ prefix: 'a-' }, { suffix: '-z' }] }", 'm', 'a-m-z'],
    ["{ select: p, transform: [{ split: ',' }, { item: 1 }] }", 'a, b, c', 'b'],
    ["{ select: p, transform: [{ split: ',' }, { item: -1 }] }", 'a, b, c,', 'c'],
    ["{ select: p, transform: [{ split: { match: '\\s*[,;]\\s*' } }, { items: [1, 3] }, { join: '+' }] }", 'a, b;c , d', 'b+c'],
    ['{ select: p, transform: { slice: [0, 2] } }', '👍👍👍', '👍👍'],
    ['{ select: p, transform: { slice: -3 } }', 'abcdef', 'def'],
    ['{ select: p, transform: strip-tags }', '&lt;b>x&lt;/b> &amp;amp; y&lt;script>z&lt;/script>', 'x & y'],
    ['{ select: p, match: "(.+)€", transform: [{ replace: [",", "."] }], type: double }', '1,5€', 1.5],
    ["{ select: p, type: list, transform: [{ split: ' ' }, lower, unique, sort] }", 'b A b c', ['a', 'b', 'c']],
    ["{ select: p, type: list, items: int, transform: [{ split: '|' }, reverse] }", '1|2|3', [3, 2, 1]],
  ])('%s of %s', (field, text, expected) => {
    expect(fieldFrom(field, `<p>${text}</p>`)).toEqual(expected)
  })

  it('sees all that its source found, in order', () => {
    const html = '<li>a</li><li>b</li><li>c</li>'
    expect(fieldFrom("{ select: li, transform: { join: ', ' } }", html)).toBe('a, b, c')
    expect(fieldFrom('{ select: li, transform: { item: -1 } }', html)).toBe('c')
    expect(fieldFrom('{ select: li, type: list, transform: { items: [0, 2] } }', html)).toEqual(['a', 'b'])
  })

  it('keeps the white space that it made, and attributes as they are written until it says collapse', () => {
    const html = '<li>a</li><li>b</li><p title=" x  y ">'
    expect(fieldFrom('{ select: li, transform: { join: "\\n" } }', html)).toBe('a\nb')
    expect(fieldFrom('{ select: p, attr: title }', html)).toBe('x y')
    expect(fieldFrom('{ select: p, attr: title, transform: upper }', html)).toBe('X  Y')
    expect(fieldFrom('{ select: p, attr: title, transform: [collapse, upper] }', html)).toBe('X Y')
  })

  it('that leaves nothing lets the next source have its turn', () => {
    const html = '<p>n/a</p><b>5</b>'
    expect(fieldFrom("{ any: [{ select: p, transform: { remove: 'n/a' } }, b], type: int }", html)).toBe(5)
    // One of the field is that of each source that has none of its own.
    expect(
      fieldFrom("{ any: [{ select: i }, { select: b, transform: { suffix: '0' } }], transform: { prefix: '9' }, type: int }", html),
    ).toBe(50)
  })

  it.each([
    '{ prefix: SKU- }',
    '{ suffix: -z }',
    "{ join: ', ' }",
    "[{ join: ', ' }, { prefix: a }]",
    '[trim, { prefix: a }, { suffix: b }]',
  ])('makes nothing of nothing: %s', (transform) => {
    const html = '<p></p><p> </p><b>5</b>'
    expect(fieldFrom(`{ select: p, transform: ${transform} }`, html)).toBeNull()
    expect(fieldFrom(`{ select: p, transform: ${transform}, required: true }`, html)).toBe('EXTRACT_FIELD_MISSING')
    expect(fieldFrom(`{ select: p, transform: ${transform}, default: none }`, html)).toBe('none')
    expect(fieldFrom(`{ any: [{ select: p, transform: ${transform} }, b] }`, html)).toBe('5')
    expect(fieldFrom(`{ select: p, type: list, transform: ${transform} }`, html)).toBeNull()
    expect(dataFrom(`name: t\nversion: 1\nkey: x\nfields:\n  x: { select: p, transform: ${transform} }\n`, html)).toBe(
      'EXTRACT_KEY_MISSING',
    )
  })

  it('joins what is there', () => {
    expect(fieldFrom("{ select: p, transform: { join: ', ' } }", '<p>a</p><p></p><p>b</p>')).toBe('a, b')
  })

  it('makes a bounded number of parts', () => {
    const parts = fieldFrom("{ select: p, type: list, transform: { split: ',' } }", `<p>${'a,'.repeat(60_000)}</p>`)
    expect(parts).toHaveLength(50_000)
  })
})

describe('a condition', () => {
  const sale = '<div class=sale><b>5</b></div><i class=stock>In stock</i><u>9</u>'

  it.each([
    ['{ select: b, when: .sale }', sale, '5'],
    ['{ select: b, when: .gone }', sale, null],
    ['{ select: b, when: { select: .gone, not: true } }', sale, '5'],
    ["{ select: b, when: { select: .stock, match: '(?i)in stock' } }", sale, '5'],
    ["{ select: b, when: { select: .stock, match: 'out of' } }", sale, null],
    ['{ select: b, when: { select: .stock, attr: title } }', sale, null],
    ['{ select: b, when: .gone, default: none }', sale, 'none'],
    ['{ any: [{ select: b, when: .gone }, u] }', sale, '9'],
    ['{ any: [{ select: b, when: { select: .stock, match: In } }, u] }', sale, '5'],
    ['{ select: b, when: { jsonld: Product } }', `<script type="application/ld+json">{"@type":"Product"}</script>${sale}`, '5'],
    ['{ select: b, when: { meta: "og:type", match: product } }', `<meta property=og:type content=website>${sale}`, null],
  ])('%s', (field, html, expected) => {
    expect(fieldFrom(field, html)).toBe(expected)
  })

  it('says when a field is required', () => {
    const field = '{ select: .price, required: true, when: { select: .gone, not: true } }'
    expect(fieldFrom(field, '<p>x</p>')).toBe('EXTRACT_FIELD_MISSING')
    expect(fieldFrom(field, '<p class=gone>sold</p>')).toBeNull()
  })
})
