import { describe, expect, it } from 'vitest'
import { readDefinition } from '../../../../src/extract/language/read-definition.ts'

const problems = (text: string): string[] =>
  readDefinition(text).problems.map(
    ({ severity, line, column, message }) => `${line}:${column} ${severity === 'warning' ? 'warning ' : ''}${message}`,
  )
const head = 'name: book\nversion: 1\n'

describe('an extractor file', () => {
  it('is read with its short forms written out', () => {
    const { definition } = readDefinition(`${head}match: { hosts: books.example, status: 2xx }
fields:
  title: h1
  cover: 'img.cover@src'
  price: { select: .price, type: decimal, scale: 2, required: true, default: 1 }
  tags: { select: 'ul li', type: list, items: url }
  sale: { any: [{ jsonld: Product.offers.price }, .sale-price], match: '(.*)' }
links: { select: 'a@href', allow: '/x/*' }`)
    expect(definition).toMatchObject({
      name: 'book',
      version: 1,
      parse: 'document',
      match: { hosts: ['books.example'], paths: [], status: ['2xx'], types: [] },
      links: { select: 'a@href', allow: ['/x/*'], deny: [] },
    })
    expect(definition?.fields).toMatchObject([
      { name: 'title', type: { kind: 'string' }, sources: [{ kind: 'css', selector: 'h1', attribute: undefined }] },
      { name: 'cover', sources: [{ kind: 'css', selector: 'img.cover', attribute: 'src' }] },
      { name: 'price', type: { kind: 'decimal', scale: 2 }, required: true, default: '1.00' },
      { name: 'tags', type: { kind: 'list', items: { kind: 'url' } } },
      {
        name: 'sale',
        sources: [
          { kind: 'jsonld', match: '(.*)' },
          { kind: 'css', selector: '.sale-price', match: '(.*)' },
        ],
      },
    ])
  })

  it.each([
    ["hosts: '127.0.0.1:8321'", 17, '"hosts[0]" is "127.0.0.1:8321"; expected a host without scheme'],
    ["hosts: [a.example, 'https://books.example']", 29, '"hosts[1]" is "https://books.example"; expected a host without scheme'],
    ["paths: ['catalogue/*']", 18, '"paths[0]" is "catalogue/*"; expected a pattern that begins with /'],
    ["types: ['text/html; charset=utf-8']", 18, '"types[0]" is "text/html; charset=utf-8"; expected a media type without parameters'],
    ['types: html', 17, '"types[0]" is "html"; expected a media type'],
  ])('could match no page by %s, and is refused', (match, column, message) => {
    expect(problems(`${head}match: { ${match} }\nfields: { x: h1 }`)).toEqual([expect.stringContaining(`3:${column} ${message}`)])
  })

  it('is known by its patterns as they are written', () => {
    const { definition } = readDefinition(
      `${head}match: { hosts: Bücher.example, paths: /straße/* }\nlinks: { deny: /ä }\nfields: { x: h1 }`,
    )
    expect(definition).toMatchObject({ match: { hosts: ['Bücher.example'], paths: ['/straße/*'] }, links: { deny: ['/ä'] } })
    expect(problems(`${head}links: { deny: [ä] }\nfields: { x: h1 }`)).toEqual([expect.stringMatching(/^3:17 "deny\[0\]" is "ä"/)])
  })

  it('may be JSON', () => {
    expect(readDefinition('{"name":"a","version":1,"fields":{"x":"h1"}}').definition?.fields).toHaveLength(1)
  })

  it('shows all that is wrong at its line and column, with the name that was probably meant', () => {
    const text = `name: Bad
version: 0
feilds: {}
fields:
  a: 'a['
  b: { selct: x }
  c: { select: p, type: strin }
  d: { select: p, match: '(' }
  __proto__: h1
  1x: h1
  e: { type: decimal, select: x }
  f: { select: p, meta: q }
  g: 3
  h: { select: p, type: int, default: many }
  i: { jsonld: 'a b' }
  j: { link: canonical, default: /none.png }
  k: { meta: 'og:image', type: url, default: //cdn.example/none.png }
  l: { meta: 'og:image', type: url, default: 'http:none.png' }
match: { hots: [x] }
`
    expect(problems(text)).toEqual([
      '1:7 "name" is "Bad"; expected a lower case name of letters, digits and hyphens, at most 48 characters',
      '2:10 "version" is 0; expected number to be >=1',
      '3:1 unknown key "feilds": did you mean "fields"?',
      expect.stringMatching(/^5:6 the selector "a\[" can't be used: /),
      '6:8 unknown key "selct": did you mean "select"?',
      expect.stringMatching(/^7:25 "type" is "strin"; expected one of .*; did you mean string\?$/),
      expect.stringMatching(/^8:26 the pattern "\(" can't be used: /),
      expect.stringMatching(/^9:14 "__proto__" can't be the name of a field/),
      expect.stringMatching(/^10:7 "1x" can't be the name of a field/),
      '11:6 a decimal needs its "scale": the number of digits behind the point',
      '12:6 the field has select and meta; expected one of select, jsonld, meta, microdata, rdfa, link, table, article, any',
      '13:6 field g is 3; expected a selector or a map with select, jsonld, meta and so on',
      '14:39 the default is "many"; expected a value of type int',
      expect.stringMatching(/^15:16 "a b" is no path/),
      '16:34 the default is "/none.png"; expected a URL that is absolute, such as https://example.com/none.png',
      '17:46 the default is "//cdn.example/none.png"; expected a URL that is absolute, such as https://example.com/none.png',
      '18:46 the default is "http:none.png"; expected a URL that is absolute, such as https://example.com/none.png',
      '19:10 unknown key "hots": did you mean "hosts"?',
    ])
  })

  it.each([
    '.lg:prose-xl',
    'i.My(8)',
    'esi:foo',
    'p::text b',
    'p::before',
    'a[',
    'a >> b',
    '.a/2',
    'p:is(b/2)',
    '/2',
    'a >',
    'p:nth-child(x)',
    'p:has(',
    '.a..b',
    'p..price',
    'p.#x',
    '#.x',
    'p:not(.)',
    'p[=x]',
    'p[ =x]',
    'p[a=]',
    'p[a= ]',
    'b:is(i, a[href=])',
  ])('C102: refuses the selector %s when it is loaded', (selector) => {
    expect(problems(`${head}fields:\n  x: { select: '${selector}' }`)).toEqual([
      expect.stringContaining(`the selector ${JSON.stringify(selector)}`),
    ])
    expect(problems(`${head}each: '${selector}'\nfields: { x: h1 }`)).toEqual([expect.stringMatching(/^3:7 /)])
  })

  it.each([
    '.lg\\:prose-xl',
    'i.My\\(8\\)',
    'esi\\:foo',
    '.w-1\\/2',
    '.a\\@b',
    '.\\.b',
    '#a\\.b',
    'a[href="..[=x]"]',
    'a[href=a.#b]',
    'a[x=""]',
    'a[ x = y ]',
    '.2col',
    '.é',
    'p:contains(a. b)',
    "p:contains(it''s 5.)",
    'p:contains(a (b) c. d)',
    'p:contains("a" 5.)',
  ])('C102: takes the selector %s', (selector) => {
    expect(problems(`${head}fields:\n  x: { select: '${selector}' }`)).toEqual([])
  })

  it('takes an attribute alone: of the whole page it is that of the root element', () => {
    for (const select of ['.@lang', '@lang', '::attr(lang)']) expect(problems(`${head}fields: { x: '${select}' }`)).toEqual([])
    expect(problems(`${head}each: a\nfields: { x: '@md' }`)).toEqual([])
    expect(problems(`${head}fields: { x: { select: a, type: list, fields: { y: '@md' } } }`)).toEqual([])
  })

  it('shows every fault in one run, whatever else is wrong beside it', () => {
    const text = `name: Bad
version: 1
each: 'a['
key: titel
links: { select: 'b[', alow: [x] }
match: { status: [200, 999] }
fields:
  title: { selct: x, select: 'c[', match: '(', fields: { y: 'd[' } }
  other: { any: ['e[', { jsonld: 'a b' }], meta: m }
`
    expect(problems(text).map((line) => line.replace(/ .*?(["'])/, ' $1').slice(0, 24))).toEqual([
      expect.stringMatching(/^1:7 "name"/),
      expect.stringMatching(/^3:7 "a\["/),
      expect.stringMatching(/^4:6 "titel"/),
      expect.stringMatching(/^5:18 "b\["/),
      expect.stringMatching(/^5:24 "alow"/),
      expect.stringMatching(/^6:24 "status\[1\]"/),
      expect.stringMatching(/^8:12 "selct"/),
      expect.stringMatching(/^8:30 "c\["/),
      expect.stringMatching(/^8:43 "\("/),
      expect.stringMatching(/^8:61 "d\["/),
      expect.stringMatching(/^9:18 "e\["/),
      expect.stringMatching(/^9:34 "a b"/),
      expect.stringMatching(/^9:50 "any" or "meta"/),
    ])
  })

  it('refuses two nested records that would be one type of the schema', () => {
    const text = `${head}fields:
  a: { select: p, fields: { bC: { select: q, fields: { d: e } } } }
  aB: { select: p, fields: { c: { select: q, fields: { d: e } } } }`
    expect(problems(text)).toEqual([expect.stringMatching(/^5:33 its record has the type name \w+ABC, which that of a\.bC has already/)])
  })

  it.each([
    ['#t > tr', /a parser puts <tr> into <tbody>/],
    ['table>TR td', /a parser puts <tr> into <tbody>/],
    ['p, .list > tr.odd', /a parser puts <tr> into <tbody>/],
    ['table > td', /a parser puts <td> into <tr>/],
    ['p.a > div', /a parser ends <p> before <div>/],
  ])('C092: warns of the selector %s, which a parser leaves nothing to match', (selector, reason) => {
    expect(problems(`${head}fields: { x: '${selector}' }`)).toEqual([expect.stringMatching(/^3:14 warning /)])
    expect(problems(`${head}each: '${selector}'\nfields: { x: ::text }`)).toEqual([expect.stringMatching(reason)])
  })

  it.each(['tbody > tr', 'table tr', 'thead.a > tr > th', '.row > td', ':scope > tr', '> tr', 'p > span', 'tr > td'])(
    'C092: does not warn of the selector %s',
    (selector) => {
      expect(problems(`${head}fields: { x: '${selector}' }`)).toEqual([])
    },
  )

  it('C102: takes ::text as what it is elsewhere for a field, and refuses it where no text is taken', () => {
    expect(problems(`${head}fields: { x: 'p::text' }`)).toEqual([])
    expect(problems(`${head}each: 'p::text'\nfields: { x: h1 }`)).toEqual([
      expect.stringMatching(/^3:7 the selector "p::text" can't be used/),
    ])
  })

  it('points at what YAML itself can not read', () => {
    expect(problems('name: a\n  version: 1')[0]).toMatch(/^1:7 Nested mappings/)
    expect(problems('name: a\nname: b\nversion: 1\nfields: {x: p}')).toEqual([expect.stringMatching(/^2:1 the key name is there twice$/)])
    expect(problems('')).toEqual(['1:1 the file holds no extractor; expected a map with name, version and fields'])
    expect(problems('- a')).toEqual([expect.stringContaining('holds no extractor')])
  })

  it('says what is missing', () => {
    expect(problems('name: a')).toEqual(['1:1 "version" is missing', '1:1 "fields" is missing'])
    expect(problems(`${head}fields: {}`)).toEqual(['3:9 "fields" is empty; expected at least one field'])
  })

  it('has a key that names one of its fields', () => {
    expect(problems(`${head}key: upd\nfields: { upc: p }`)).toEqual([
      '3:6 key names the field "upd", which is not there: did you mean upc?',
    ])
    expect(problems(`${head}key: l\nfields: { l: { select: p, type: list } }`)).toEqual(['3:6 the field l is a list; a key is one value'])
  })

  it('has options only where they mean something', () => {
    expect(problems(`${head}fields: { x: { select: p, type: int, scale: 2 } }`)).toEqual([
      '3:45 "scale" belongs to decimal, money; the field is a int',
    ])
    expect(problems(`${head}fields: { x: { select: p, type: date, format: HH } }`)).toEqual([
      expect.stringContaining('names no year, month and day'),
    ])
    expect(problems(`${head}fields: { x: { select: p, items: int } }`)).toEqual([expect.stringContaining('add "type: list"')])
    expect(problems(`${head}fields: { x: { select: 'p@a', fields: { y: b } } }`)).toEqual([expect.stringContaining('no attribute')])
  })

  it.each(['fa', 'fa-IR', 'ps', 'ja-JP-u-ca-japanese'])('has no format in the language %s, whose calendar is not read', (locale) => {
    const field = (type: string): string => `${head}fields:\n  a: { select: p, type: ${type}, locale: ${locale} }\n`
    expect(problems(field('date'))).toEqual([])
    expect(problems(field('timestamp'))).toEqual([])
    const refused = `^4:\\d+ dates of ${locale} are in the calendar \\w+, which is not read; .* say ${locale.replace(/-u-.*/, '')}-u-ca-gregory$`
    expect(problems(field("date, format: 'YYYY/MM/DD'"))).toEqual([expect.stringMatching(refused)])
  })

  it('points at a transform, a condition or a currency that is none', () => {
    const text = `${head}when: 3
fields:
  a: { select: p, transform: [lower, uper, { replace: x }, { split: { match: '(' } }, join, { slice: [0, 1, 2] }, {}] }
  b: { select: p, when: { select: 'q[', matsch: x } }
  c: { any: [{ select: p, when: { jsonld: 'a b' } }], transform: { lower: 1 } }
  d: { select: p, type: money, currency: EURO }
  e: { select: p, type: int, currency: EUR }
  f: { select: p, hreflang: de }
  g: { column: Price }
  h: { table: 'x[', type: list, fields: { i: { column: 0 } } }
  j: { link: 'a b' }
  k: { select: p, fields: { l: b }, transform: lower }
  m: { select: p, type: date, zone: Mars/Olympus }
  n: { select: p, type: date, locale: x_y }
  o: { select: p, type: date, zone: +02:00, format: DD.MM.YYYY Uhr, locale: de }
  q: { select: p, type: date, zone: +02:00, format: DD.MM.YYYY, locale: x_y }
`
    expect(problems(text).map((line) => line.slice(0, 50))).toEqual([
      '3:7 "when" is 3; expected a selector, or a map suc',
      '5:38 unknown transform "uper": did you mean upper?',
      '5:55 replace is "x"; expected { replace: [\'pattern',
      '5:78 the pattern "(" can\'t be used: Invalid regula',
      "5:87 the transform join needs a value: { join: ', ",
      '5:102 slice is [0,1,2]; expected { slice: [0, 10] ',
      '5:115 a transform is a map of 0 names; expected on',
      '6:41 unknown key "matsch": did you mean "match"?',
      '7:14 the transform lower takes no value; write low',
      '7:43 "a b" is no path; expected a type and propert',
      '8:42 "EURO" is no currency; expected a code of ISO',
      '9:40 "currency" belongs to money',
      '10:29 "hreflang" belongs to link',
      '11:16 "column" belongs to the fields of a table',
      expect.stringMatching(/^12:/),
      expect.stringMatching(/^12:/),
      '13:14 "link" is "a b"; expected the name of a link',
      '14:48 a field with "fields" has no "transform": sa',
      '15:37 "Mars/Olympus" is no zone; expected UTC, an ',
      expect.stringMatching(/^16:39 /),
      '17:53 the format "DD.MM.YYYY Uhr": in "Uhr" are le',
      expect.stringMatching(/^18:73 /),
    ])
  })

  it.each([
    ['{ any: [{ link: alternate }], hreflang: de }', 46, '"hreflang" is said of an entry of "any"'],
    ["{ any: ['img.a'], attr: src }", 30, '"attr" is said of an entry of "any"'],
    ['{ meta: description, attr: content }', 33, '"attr" belongs to select and column'],
    ['{ any: [h1, { jsonld: A.b, attr: c }] }', 39, '"attr" belongs to select and column'],
    ["{ table: '#t' }", 15, 'a table has rows: add "fields"'],
    ["{ any: [h1, { table: '#t' }] }", 27, 'a table has rows: add "fields"'],
    ['{ select: p, when: { table: t, match: y } }', 44, 'a table has rows and no text'],
    ['{ select: p, type: money, currency: { table: t } }', 51, 'a table has rows and no currency'],
    ['{ article: text, fields: { y: h1 } }', 17, 'an article has no "fields"'],
    ["{ jsonld: 'http://schema.org/Product.name' }", 16, '"http://schema.org/Product.name" is no path'],
    ['{ rdfa: schema:Product.name }', 14, '"schema:Product.name" is no path'],
    ['{ jsonld: $.Product.price }', 16, '"$.Product.price" is no path'],
    ['{ jsonld: Product.offers.0.price }', 16, '"Product.offers.0.price" is no path'],
    [
      '{ jsonld: Product.offers, fields: { y: { jsonld: Product.offers.price } } }',
      55,
      '"Product.offers.price" begins with a type; within a node',
    ],
  ])('refuses what can never give a value: %s', (field, column, message) => {
    expect(problems(`${head}fields:\n  x: ${field}`)).toEqual([expect.stringContaining(`4:${column} ${message}`)])
  })

  it.each([
    '{ jsonld: 3DModel.name }',
    '{ jsonld: Product.@id }',
    "{ any: [{ link: alternate, hreflang: de }, 'img@src', { select: img, attr: src }] }",
    '{ jsonld: Product, fields: { y: { select: div, fields: { z: { microdata: Offer.price } } } } }',
    '{ jsonld: Product.offers, fields: { y: { jsonld: SKU } } }',
    "{ meta: 'og:image', fields: { y: { jsonld: Product.image } } }",
    '{ any: [{ jsonld: Product.offers }, .offer], fields: { y: { any: [{ jsonld: price }, .price] } } }',
    '{ select: p, when: { table: t } }',
  ])('takes %s', (field) => {
    expect(problems(`${head}fields:\n  x: ${field}`)).toEqual([])
  })

  it('refuses a column where no row is left', () => {
    const inner = '{ select: td, fields: { z: { column: Size } } }'
    expect(problems(`${head}fields:\n  x: { table: t, type: list, fields: { y: ${inner} } }`)).toEqual([
      expect.stringContaining('"column" belongs to the fields of a table'),
    ])
  })

  it('warns of JSON-LD in the records of a page, which may be the same for all', () => {
    const warning = /^4:24 warning a script within the element is read, else JSON-LD is of the whole page/
    expect(problems(`${head}each: p\nfields: { x: { jsonld: A.b } }`)).toEqual([expect.stringMatching(warning)])
    expect(problems(`${head}fields: { l: { select: p, fields:\n  { xxxxx: { jsonld: A.b } } } }`)).toEqual([
      expect.stringMatching(/^4:22 warning /),
    ])
    expect(problems(`${head}each: p\nfields: { x: { microdata: A.b } }`)).toEqual([])
  })

  it('can not make its reader run away', () => {
    const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${['b', 'c', 'd', 'e', 'f', 'g'].map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdef'[index]}`).join(',')}]`).join('\n')}`
    expect(problems(bomb)).toHaveLength(1)
    const deep = Array.from({ length: 12 }).reduce<string>((inner) => `{ select: p, fields: { x: ${inner} } }`, 'p')
    expect(problems(`${head}fields: { x: ${deep} }`)).toEqual([expect.stringContaining('nested deeper')])
  })
})
