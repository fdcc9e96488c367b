import { describe, expect, it } from 'vitest'
import { JsonGraph, nameOf, parseJsonPath } from '../../../../src/extract/sources/json-node.ts'
import { parseJsonLd } from '../../../../src/extract/sources/jsonld.ts'

const types = (...scripts: string[]): unknown[] => parseJsonLd(scripts).nodes.map((node) => node['@type'])
const values = (path: string, ...scripts: string[]): unknown => {
  const parsed = parseJsonPath(path, { relative: false })
  if (parsed === undefined) throw new Error(`no path: ${path}`)
  return new JsonGraph(parseJsonLd(scripts).nodes).values(parsed)
}
const one = (path: string, ...scripts: string[]): unknown => {
  const parsed = parseJsonPath(path, { relative: false })
  if (parsed === undefined) throw new Error(`no path: ${path}`)
  return new JsonGraph(parseJsonLd(scripts).nodes).values(parsed, { single: true })
}

describe('JSON-LD blocks', () => {
  it('C110: are repaired where something stands behind them or before a bracket, and that is noted', () => {
    const { nodes, notes } = parseJsonLd(['{"@type":"Product","name":"A"};', '{"@type":"B","x":[1,2,],}'])
    expect(nodes).toEqual([
      { '@type': 'Product', name: 'A' },
      { '@type': 'B', x: [1, 2] },
    ])
    expect(notes.map(({ block, kind }) => [block, kind])).toEqual([
      [0, 'repaired'],
      [1, 'repaired'],
    ])
  })

  it('C112: lose their CDATA wrapper and keep the slashes of their URLs', () => {
    const wrapped = '// <![CDATA[\n{"@type":"Organization","url":"https://example.test/"}\n// ]]>'
    expect(parseJsonLd([wrapped]).nodes).toEqual([{ '@type': 'Organization', url: 'https://example.test/' }])
    expect(types('/*<![CDATA[*/{"@type":"A"}/*]]>*/', '<!--{"@type":"B"}-->')).toEqual(['A', 'B'])
  })

  it('C114: that are null, a number, empty or a list give what nodes there are', () => {
    expect(types('null', '', '3', '[{"@type":"A"},{"@type":"B"}]')).toEqual(['A', 'B'])
    expect(types('[[{"@type":"A"}],[[{"@type":"B"},{"@type":"C"}]]]')).toEqual(['A', 'B', 'C'])
  })

  it('C116: do not hide each other, and a broken one is named', () => {
    const { nodes, notes } = parseJsonLd(['{"@type":"A"}', '{bad}', '{"@type":"B"}'])
    expect(nodes.map((node) => node['@type'])).toEqual(['A', 'B'])
    expect(notes).toEqual([{ block: 1, kind: 'broken', detail: expect.stringContaining('JSON') as string }])
  })

  it.each([
    ['a comma at the end', '{"@type":"A","x":[1,2,],},'],
    ['two commas', '{"@type":"A",,"x":[1,,2]}'],
    ['no comma between two properties', '{"@type":"A"\n"x":[1 2]}'],
    ['no comma between two properties on a line', '{"@type":"A" "x":[1,2]}'],
    ['a comment with quotes on a line of its own', '{"@type":"A",\n// "x":[3],\n"x":[1,2] // "two"\n}'],
    ['a brace too many', '{"@type":"A","x":[1,2]}}'],
    ['comments', '/* shop */ {"@type":"A", // http://x.test/\n"x":[1,/* , */2]} // end'],
    ['comments of HTML', '<!-- by a plugin -->\n{"@type":"A",<!-- { -->"x":[1,2]}'],
    ['a wrapper in comments, as one system writes it', '<!--//--><![CDATA[// ><!--\n{"@type":"A","x":[1,2]}\n//--><!]]>'],
    ['a wrapper on one line', '//<![CDATA[ {"@type":"A","x":[1,2]} //]]>'],
    ['white space that JSON does not know', '\ufeff\u00a0{"@type":"A",\u00a0"x":\u200b[1,2]}'],
    ['entities', '{&quot;@type&quot;:&quot;A&quot;,&#34;x&#34;:[1,2],}'],
  ])('C110: are repaired where they have %s', (_what, text) => {
    const { nodes, notes } = parseJsonLd([text])
    expect(nodes).toEqual([{ '@type': 'A', x: [1, 2] }])
    expect(notes).toMatchObject([{ block: 0, kind: 'repaired' }])
  })

  it('C110: may hold several values in a row', () => {
    const [a, b] = ['{"@type":"A"}', '{"@type":"B"}']
    expect(types(`${a}${b}`)).toEqual(['A', 'B'])
    expect(types(`${a},\n[${b}];`)).toEqual(['A', 'B'])
    expect(types(`${a};{bad}`, b)).toEqual(['B'])
  })

  it('C110: have nulls where a template had no value, and characters as they are where it escaped them in vain', () => {
    const read = (text: string): unknown => parseJsonLd([text]).nodes[0]
    expect(read('{"@type":"A","x":,"y":undefined,"z":NaN,"n":}')).toEqual({ '@type': 'A', x: null, y: null, z: null, n: null })
    expect(read(String.raw`{"@type":"A","d":"it\'s \- \x41\u0042 \"q\" \\",}`)).toEqual({ '@type': 'A', d: `it's - AB "q" \\` })
    expect(read('{"@type":"A","d":"a\u0000\u001f\\\nb"}')).toEqual({ '@type': 'A', d: 'a\u0000\u001fb' })
  })

  it.each([
    '{"d":"5" TV"}',
    '{"d":"a',
    '{"@type":"A","x":[1,2',
    "{'@type':'A'}",
    '{"d":"\\q"}',
    'not found',
    '<p>{"@type":"A"}</p>',
    '// nothing',
    '{"@type":"A","d":"see "//x",\n"e":1}',
    '{"@type":"A","d":"see ", // x",\n"e":1}',
    '{"@type":"A","d":"see "/* x","e":"*/}',
    '{"@type":"A","d":"see "//x"\n}',
    '{"@type":"A","d":["see "-->" x"]}',
    '{"@type":"A","d":["a "5" b"]}',
    '{"@type":"A","d":["a "[]" b"]}',
    '{"@type":"A","d":["a" "b"]}',
    '{"@type":"A","d":"say "":"b"}',
  ])('C116: are broken where a repair would be a guess: %s', (text) => {
    const { nodes, notes } = parseJsonLd([text, '{"@type":"B"}'])
    expect(nodes).toEqual([{ '@type': 'B' }])
    expect(notes).toMatchObject([{ block: 0, kind: 'broken' }])
  })

  it('never change valid text: commas and semicolons in strings stay', () => {
    expect(parseJsonLd(['{"@type":"A","d":"a,] ; b,}"};']).nodes[0]).toEqual({ '@type': 'A', d: 'a,] ; b,}' })
    expect(parseJsonLd(['{"@type":"A","d":"two\nlines\t!"}']).nodes[0]).toEqual({ '@type': 'A', d: 'two\nlines\t!' })
  })

  it('C196: pollute nothing', () => {
    const { nodes } = parseJsonLd([
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"p2":1}},"@type":"A"}',
      '{"\\u005f_proto__":{"p3":1},"@type":"B"}',
    ])
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    expect(({} as Record<string, unknown>).p2).toBeUndefined()
    expect(nodes.map((node) => Object.keys(node))).toEqual([['@type'], ['@type']])
  })

  it('keep whole numbers that JavaScript would round as they are written', () => {
    const [node] = parseJsonLd([
      '{"@type":"A","id":12345678901234567890,"n":-9007199254740993,"s":"9 12345678901234567890","p":4.6999999999999993,"ok":9007199254740991}',
    ]).nodes
    expect(node).toEqual({
      '@type': 'A',
      id: '12345678901234567890',
      n: '-9007199254740993',
      s: '9 12345678901234567890',
      p: 4.6999999999999993,
      ok: 9007199254740991,
    })
    expect(nameOf(Number.POSITIVE_INFINITY)).toBeUndefined()
  })

  it.each([
    ['graphs', `${'{"@graph":'.repeat(20_000)}{"@type":"A"}${'}'.repeat(20_000)}`, ['A', 'B']],
    ['lists', `${'['.repeat(20_000)}${']'.repeat(20_000)}`, ['B']],
    ['objects', `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`, [undefined, 'B']],
    ['unclosed lists', '['.repeat(100_000), ['B']],
  ])('may nest %s as deep as they like', (_what, deep, expected) => {
    expect(types(deep, '{"@type":"B"}')).toEqual(expected)
  })

  // Patterns that end in `$` took time by the square of these: minutes.
  it.each([' ', ';', ',', '\n', '/', '*', ']', '-', '"', '\\', '<!--', '/*', '//\n', '{', '&quot;', ':', 'x '])(
    'that are broken by many %j cost no more than reading them',
    (character) => {
      const { nodes, notes } = parseJsonLd([`{bad ${character.repeat(200_000)} x}`, '{"@type":"B"}'])
      expect(nodes).toEqual([{ '@type': 'B' }])
      expect(notes).toMatchObject([{ block: 0, kind: 'broken' }])
    },
  )
})

describe('a JSON-LD path', () => {
  const product =
    '{"@graph":[{"@type":"WebSite","name":"W"},{"@type":["Product","Thing"],"name":"P","brand":{"@id":"#b"},"offers":[{"@type":"Offer","price":1.5},{"price":"2"}]},{"@id":"#b","@type":"Brand","name":"B"}]}'

  it('finds a type in graphs and lists, follows lists and references', () => {
    expect(values('Product.name', product)).toEqual(['P'])
    expect(values('Product.offers.price', product)).toEqual([1.5, '2'])
    expect(values('Product.offers[1].price', product)).toEqual(['2'])
    expect(values('Product.brand.name', product)).toEqual(['B'])
  })

  it('prefers a node of its own to one that is mentioned in another', () => {
    const page = '[{"@type":"Offer","itemOffered":{"@type":"Product","name":"inner"}},{"@type":"http://schema.org/Product","name":"outer"}]'
    expect(values('Product.name', page)).toEqual(['outer', 'inner'])
  })

  it('asked for one value looks at no node within another of its type: a related product is not that of the page', () => {
    const related = '{"@type":"Product","name":"A","isRelatedTo":[{"@type":"Product","name":"R","brand":{"name":"X"}}]}'
    const wrapped = `{"@type":"WebPage","mainEntity":${related}}`
    for (const page of [related, wrapped]) {
      expect(one('Product.name', page)).toEqual(['A'])
      expect(one('Product.brand.name', page)).toEqual([])
      expect(values('Product.brand.name', page)).toEqual(['X'])
    }
    expect(one('Review.author.name', '[{"@type":"Product","review":[{"@type":"Review","author":{"name":"N"}}]}]')).toEqual(['N'])
  })

  it('asked for one value takes all of them of the first node: another product says nothing of this one', () => {
    const page = '[{"@type":"Product","name":"A"},{"@type":"ItemList","item":{"@type":"Product","name":"B","offers":{"price":9}}}]'
    expect(one('Product.name', page)).toEqual(['A'])
    expect(one('Product.offers.price', page)).toEqual([])
    expect(values('Product.offers.price', page)).toEqual([9])
    const reference = '[{"@type":"Product","@id":"#p"},{"@type":"Product","name":"B","sku":1},{"@id":"#p","sku":2}]'
    expect(one('Product.sku', reference)).toEqual([2])
  })

  it('gives a bounded number of values where references multiply, and ends in lists without end', () => {
    const many = (id: string): unknown[] => Array.from({ length: 1000 }, () => ({ '@id': id }))
    const page = [
      { '@type': 'A', p: many('b') },
      { '@id': 'b', q: many('c') },
      { '@id': 'c', r: many('d') },
      { '@id': 'd', s: 1 },
    ]
    expect(values('A.p.q.r.s', JSON.stringify(page))).toHaveLength(50_000)
    expect(values('A.p', `{"@type":"A","p":${'{"@list":['.repeat(20_000)}1${']}'.repeat(20_000)}}`)).toEqual([])
    expect(values('A.p', '{"@type":"A","p":{"@list":[1,{"@list":[2]}]}}')).toEqual([1, 2])
  })

  it('finds what is in the graph of a node once', () => {
    const page = '{"@type":"WebPage","@graph":[{"@type":"Product","name":"a"},{"@type":"Product","name":"b"}]}'
    expect(values('Product.name', page)).toEqual(['a', 'b'])
    expect(one('Product.name', page)).toEqual(['a'])
    expect(one('Product[1].name', page)).toEqual(['b'])
    expect(values('Product[1].name', page)).toEqual(['b'])
  })

  it('sees own properties alone', () => {
    expect(values('A.toString', '{"@type":"A"}')).toEqual([])
    expect(values('A.constructor.name', '{"@type":"A"}')).toEqual([])
  })

  it('follows a reference that carries its type, and takes it for no node of its own', () => {
    const page = '{"@graph":[{"@type":"Product","offers":{"@type":"Offer","@id":"#o"}},{"@type":"Offer","@id":"#o","price":3}]}'
    expect(values('Product.offers.price', page)).toEqual([3])
    expect(values('Offer.price', page)).toEqual([3])
    const elsewhere = '{"@type":"Product","offers":{"@type":"Offer","@id":"https://a.example/#o"}}'
    expect(values('Offer.@id', elsewhere)).toEqual(['https://a.example/#o'])
  })

  it('puts together what is said of one thing in several places; where two say it, the outermost counts', () => {
    const page =
      '[{"@type":"Book","author":{"name":"X","@id":"#a"}},{"@type":"Person","@id":"#a","name":"Y","url":"u"},{"@type":"Person","@id":"#a","email":"e"}]'
    expect(values('Book.author.name', page)).toEqual(['X'])
    expect(values('Book.author.url', page)).toEqual(['u'])
    expect(values('Book.author.email', page)).toEqual(['e'])
    const twice = '[{"@type":"A","x":{"@id":"#a"}},{"@id":"#a","n":1},{"@id":"#a","n":2}]'
    expect(values('A.x.n', twice)).toEqual([1])
  })

  it('ends at references that go in circles', () => {
    expect(values('A.x.x.x.name', '[{"@type":"A","@id":"1","name":"n","x":{"@id":"1"}}]')).toEqual(['n'])
  })

  it('is refused where it is none', () => {
    expect(['', 'Product.', 'Product..a', '.a', 'a b', 'A[x]'].map((text) => parseJsonPath(text, { relative: false }))).toEqual(
      Array.from({ length: 6 }, () => undefined),
    )
  })
})
