import { describe, expect, it } from 'vitest'
import { JsonGraph, parseJsonPath } from '../../../../src/extract/sources/json-node.ts'
import { parseJsonLd } from '../../../../src/extract/sources/jsonld.ts'

const types = (...scripts: string[]): unknown[] => parseJsonLd(scripts).nodes.map((node) => node['@type'])
const values = (path: string, ...scripts: string[]): unknown => {
  const parsed = parseJsonPath(path, { relative: false })
  if (parsed === undefined) throw new Error(`no path: ${path}`)
  return new JsonGraph(parseJsonLd(scripts).nodes).values(parsed)
}

describe('JSON-LD blocks', () => {
  it('are repaired where something stands behind them or before a bracket, and that is noted (scrapinghub/extruct#109)', () => {
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

  it('lose their CDATA wrapper and keep the slashes of their URLs (scrapinghub/extruct#143)', () => {
    const wrapped = '// <![CDATA[\n{"@type":"Organization","url":"https://example.test/"}\n// ]]>'
    expect(parseJsonLd([wrapped]).nodes).toEqual([{ '@type': 'Organization', url: 'https://example.test/' }])
    expect(types('/*<![CDATA[*/{"@type":"A"}/*]]>*/', '<!--{"@type":"B"}-->')).toEqual(['A', 'B'])
  })

  it('that are null, a number, empty or a list give what nodes there are (tox-dev/turbohtml#449)', () => {
    expect(types('null', '', '3', '[{"@type":"A"},{"@type":"B"}]')).toEqual(['A', 'B'])
  })

  it('do not hide each other, and a broken one is named (scrapinghub/extruct#255)', () => {
    const { nodes, notes } = parseJsonLd(['{"@type":"A"}', '{bad}', '{"@type":"B"}'])
    expect(nodes.map((node) => node['@type'])).toEqual(['A', 'B'])
    expect(notes).toMatchObject([{ block: 1, kind: 'broken' }])
  })

  it('never change valid text: commas and semicolons in strings stay', () => {
    expect(parseJsonLd(['{"@type":"A","d":"a,] ; b,}"};']).nodes[0]).toEqual({ '@type': 'A', d: 'a,] ; b,}' })
    expect(parseJsonLd(['{"@type":"A","d":"two\nlines\t!"}']).nodes[0]).toEqual({ '@type': 'A', d: 'two\nlines\t!' })
  })

  it('pollute nothing (salesforce/tough-cookie#282)', () => {
    const { nodes } = parseJsonLd([
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"p2":1}},"@type":"A"}',
      '{"\\u005f_proto__":{"p3":1},"@type":"B"}',
    ])
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    expect(({} as Record<string, unknown>).p2).toBeUndefined()
    expect(nodes.map((node) => Object.keys(node))).toEqual([['@type'], ['@type']])
  })
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

  it('sees own properties alone', () => {
    expect(values('A.toString', '{"@type":"A"}')).toEqual([])
    expect(values('A.constructor.name', '{"@type":"A"}')).toEqual([])
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
