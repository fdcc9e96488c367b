import { describe, expect, it } from 'vitest'
import { compileExtractor } from '../../../src/extract/declarative-extractor.ts'
import { readDefinition } from '../../../src/extract/language/read-definition.ts'
import { createPageSelectors, PageView } from '../../../src/extract/page-view.ts'
import { createPageParser } from '../../../src/extract/parse-page.ts'
import { type FieldTrace, traceFields } from '../../../src/extract/trace-fields.ts'

function traces(fields: string, html: string): readonly FieldTrace[] {
  const { definition } = readDefinition(`name: t\nversion: 1\nfields: ${fields}`)
  if (definition === undefined) throw new Error('the file has problems')
  return createPageParser().withPage(html, { mode: 'document', locations: true }, ({ root }) =>
    traceFields(compileExtractor(definition), new PageView(root, 'http://a.example.test/', createPageSelectors())),
  )
}

describe('the trace of a field', () => {
  it('says which node gave the value, and how many match', () => {
    expect(traces('{ x: p }', '<h1>\n</h1>\n <p>one</p><p>two</p>')).toEqual([
      {
        item: 0,
        field: 'x',
        value: 'one',
        sources: [{ source: 'p', matched: 2, line: 3, column: 2, path: 'body > p:nth-of-type(1)', reason: undefined }],
        why: undefined,
      },
    ])
  })

  it.each([
    ['{ x: h2 }', 'null, since h2: it matches nothing'],
    ["{ x: 'p@src' }", 'null, since p@src: the first match has no attribute src'],
    ['{ x: b }', 'null, since b: what it matches is empty'],
    ["{ x: { select: p, match: '\\d' } }", 'null, since p: the pattern \\d finds nothing in "one"'],
    ['{ x: { select: p, type: int } }', 'null, since p: "one" is no number'],
    ['{ x: { select: p, type: int, required: true } }', 'missing and required, since p: "one" is no number'],
    ['{ x: { select: h2, default: d } }', 'the default, since h2: it matches nothing'],
    ['{ x: { any: [h2, { jsonld: A.b }] } }', 'null, since h2: it matches nothing; jsonld A.b: it matches nothing'],
    ['{ x: { select: p, when: h2 } }', 'null, since it counts only where there is h2, which is not so'],
    [
      '{ x: { any: [{ select: p, when: { select: b, not: true } }] } }',
      'null, since p: it counts only where there is no b, which is not so',
    ],
    ["{ x: { select: p, transform: { remove: '.' } } }", 'null, since p: its transforms leave nothing of "one"'],
  ])('says why %s is empty', (fields, why) => {
    expect(traces(fields, '<p>one</p><b> </b>')[0]?.why).toBe(why)
  })

  it('names the source of a list whose first match alone is empty', () => {
    const [trace] = traces('{ x: { select: li, type: list } }', '<ul><li><li>a</ul>')
    expect(trace).toMatchObject({ value: ['a'], sources: [{ source: 'li', matched: 2, reason: undefined }], why: undefined })
  })

  it('leads to the node from the nearest id, and shows the fields of nested records', () => {
    const html = '<ul id=l><li><b>1</b><li><i>x</i><b>2</b></ul><table><tr><td>a</table>'
    expect(
      traces('{ x: { select: li, type: list, fields: { n: b, m: i } } }', html).map(({ field, value, sources }) => [
        field,
        value,
        sources[0]?.path,
      ]),
    ).toEqual([
      [
        'x',
        [
          { n: '1', m: null },
          { n: '2', m: 'x' },
        ],
        '#l > li:nth-of-type(1)',
      ],
      ['x[0].n', '1', '#l > li:nth-of-type(1) > b'],
      ['x[0].m', null, undefined],
      ['x[1].n', '2', '#l > li:nth-of-type(2) > b'],
      ['x[1].m', 'x', '#l > li:nth-of-type(2) > i'],
    ])
    const [, cell] = traces('{ x: { table: table, fields: { y: { column: Price } } } }', `${html}<p>`)
    expect(cell).toBeUndefined()
    const [, missing] = traces('{ x: { table: table, fields: { y: { column: Price } } } }', '<table><tr><th>Name<tr><td>a</table>')
    expect(missing?.why).toBe('null, since column Price: the table has no such column')
  })

  it('says in which meta a value stands, and in which script of JSON-LD', () => {
    const html = [
      '<head><meta name=author content=A><meta property="og:image" content="/1.png"><meta property="og:image:width" content=5>',
      '<script type="application/ld+json">{"@type":"Person","name":"P"}</script>',
      '<script type="application/ld+json">[{"@type":"Offer","price":3},{"@type":"Product","brand":{"name":"B"},"x":{"@id":"#s"}}]</script>',
      '<script type="application/ld+json">broken</script>',
      '<script type="application/ld+json">{"@type":"Shop","@id":"#s","name":"S","rating":[{"stars":1},{"stars":2}]}</script></head>',
    ].join('\n')
    const places = (fields: string): unknown[] =>
      traces(fields, html).map(({ field, value, sources: [source] }) => [field, value, source?.line, source?.column, source?.path])
    expect(
      places("{ a: { meta: author }, w: { meta: 'og:image', type: list, fields: { n: { meta: 'og:image:width', type: int } } } }"),
    ).toEqual([
      ['a', 'A', 1, 7, 'html > head > meta:nth-of-type(1)'],
      ['w', [{ n: 5 }], 1, 35, 'html > head > meta:nth-of-type(2)'],
      ['w[0].n', 5, 1, 78, 'html > head > meta:nth-of-type(3)'],
    ])
    expect(
      places(
        '{ b: { jsonld: Product.brand.name }, p: { jsonld: Person.name }, s: { jsonld: "Shop.rating[1].stars", type: int }, r: { jsonld: Product.x, fields: { n: { jsonld: name } } } }',
      ),
    ).toEqual([
      ['b', 'B', 3, 1, 'html > head > script:nth-of-type(2)'],
      ['p', 'P', 2, 1, 'html > head > script:nth-of-type(1)'],
      ['s', 2, 5, 1, 'html > head > script:nth-of-type(4)'],
      ['r', { n: 'S' }, 3, 1, 'html > head > script:nth-of-type(2)'],
      ['r.n', 'S', 5, 1, 'html > head > script:nth-of-type(4)'],
    ])
    expect(places('{ z: { jsonld: Product.none }, m: { meta: none } }')).toEqual([
      ['z', null, undefined, undefined, undefined],
      ['m', null, undefined, undefined, undefined],
    ])
  })

  it('says which element of microdata and RDFa gave a value', () => {
    const places = (fields: string, html: string): unknown[] =>
      traces(fields, html).map(({ field, value, sources: [source] }) => [field, value, source?.line, source?.column, source?.path])
    const microdata = [
      '<div itemscope itemtype="https://schema.org/Product" itemref=more><b itemprop=name>Lamp</b>',
      '<p itemprop=offers itemscope itemtype="https://schema.org/Offer"><meta itemprop=price content="9.50"><i itemprop=priceCurrency>EUR</i></p>',
      '</div><a id=more itemprop=url href="/lamp">x</a>',
    ].join('\n')
    const fields = (source: string): string =>
      `{ n: { ${source}: Product.name }, p: { ${source}: Product.offers.price, type: double }, m: { ${source}: Product.offers, type: money }, u: { ${source}: Product.url, type: url }, o: { ${source}: Product.offers, type: list, fields: { c: { ${source}: priceCurrency } } }, z: { ${source}: Product.none } }`
    const money = { amount: '9.50', currency: 'EUR' }
    const url = 'http://a.example.test/lamp'
    expect(places(fields('microdata'), microdata)).toEqual([
      ['n', 'Lamp', 1, 67, 'body > div > b'],
      ['p', 9.5, 2, 66, 'body > div > p > meta'],
      ['m', money, 2, 1, 'body > div > p'],
      ['u', url, 3, 7, '#more'],
      ['o', [{ c: 'EUR' }], 2, 1, 'body > div > p'],
      ['o[0].c', 'EUR', 2, 102, 'body > div > p > i'],
      ['z', null, undefined, undefined, undefined],
    ])
    const rdfa = [
      '<div typeof=Product resource="#p"><b property=name>Lamp</b>',
      '<p property=offers typeof=Offer><meta property=price content="9.50"><i property=priceCurrency>EUR</i></p>',
      '</div><div resource="#p"><a property=url href="/lamp">x</a></div>',
    ].join('\n')
    expect(places(fields('rdfa'), rdfa)).toEqual([
      ['n', 'Lamp', 1, 35, 'body > div:nth-of-type(1) > b'],
      ['p', 9.5, 2, 33, 'body > div:nth-of-type(1) > p > meta'],
      ['m', money, 2, 1, 'body > div:nth-of-type(1) > p'],
      ['u', url, 3, 26, 'body > div:nth-of-type(2) > a'],
      ['o', [{ c: 'EUR' }], 2, 1, 'body > div:nth-of-type(1) > p'],
      ['o[0].c', 'EUR', 2, 69, 'body > div:nth-of-type(1) > p > i'],
      ['z', null, undefined, undefined, undefined],
    ])
  })
})
