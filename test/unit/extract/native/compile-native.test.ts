import { describe, expect, it } from 'vitest'
import { readDefinition } from '../../../../src/extract/language/read-definition.ts'
import { compileNative } from '../../../../src/extract/native/compile-native.ts'
import { bothParsers, isReadNatively } from '../../../support/both-parsers.ts'
import { fieldFrom } from '../../../support/extraction.ts'

function reason(rest: string): string | undefined {
  const { definition, problems } = readDefinition(`name: t\nversion: 1\n${rest}`)
  if (definition === undefined) throw new Error(problems.map(({ message }) => message).join('\n'))
  const compilation = compileNative(definition)
  return compilation.ok ? undefined : compilation.reason
}

describe('an extractor', () => {
  it('is for the native parser where all of it may be', () => {
    const fields = "a: h1\n  b: { meta: description }\n  c: { link: canonical }\n  d: { jsonld: Product.name }\n  e: 'a@href'"
    expect(reason(`each: .card\nwhen: h1\nfields:\n  ${fields}\n`)).toBeUndefined()
  })

  it.each([
    ['fields:\n  a: { microdata: Product.name }', 'the field a reads microdata'],
    ['fields:\n  a: { rdfa: Product.name }', 'the field a reads rdfa'],
    ['fields:\n  a: { article: title }', 'the field a reads article'],
    ['fields:\n  a: { select: p, type: html }', 'the field a is html'],
    ['fields:\n  a: { select: svg, attr: "xlink:href" }', 'the field a reads the attribute xlink:href'],
    ['fields:\n  a: { any: [h1, ":is(h2, h3)"] }', 'the field a has the selector ":is(h2, h3)": it has :is'],
    ['fields:\n  a: { select: h1, when: "p ~ a" }', 'the field a has the selector "p ~ a": it has the combinator ~'],
    ['each: "div:has(p)"\nfields:\n  a: h1', 'each has the selector "div:has(p)": it has :has'],
    ['when: "p:contains(x)"\nfields:\n  a: h1', 'when has the selector "p:contains(x)": it has :contains'],
    ['parse: fragment\nfields:\n  a: h1', 'it reads fragments'],
  ])('is for the default one as a whole, and says why: %s', (text, expected) => {
    expect(reason(`${text}\n`)).toBe(expected)
  })
})

const TITLES = 'name: titles\nversion: 1\nfields:\n  title: { select: "h1, svg, select, template, p", type: list, items: string }\n'
const CARDS = 'name: cards\nversion: 1\neach: .card\nfields:\n  name: .name\n'
const MICRODATA = 'name: micro\nversion: 1\nfields:\n  name: { microdata: Product.name }\n'

describe('a page', () => {
  it.each([
    ['<template>', '<template><p>in it</p></template><h1>x</h1>'],
    ['an element in <select>', '<select><b>x</b></select>'],
    ['a tag within <select> that leaves no trace in it', '<select><option>x<body class=y></select><p>z'],
    ['<isindex>', '<small><isindex></small><p>x'],
    ['a reference to a carriage return', '<table>&#13;<td><p>b'],
    ['<svg> where formatting was left open', '<s><small></s><li><svg></svg><p>x'],
    ['a CDATA section within HTML in <svg>', '<a><svg><foreignObject><![CDATA[q]]>'],
    ['an end tag of HTML in the <desc> of an <svg>', '<span><svg><desc></span><a>x'],
    ['HTML in the <mtext> of a formula', '<p>a <math><mtext><b>x</b></mtext></math>'],
    ['attributes with a namespace in <svg>', '<svg><a xlink:href=x></a></svg>'],
    ['a NUL', '<b><svg>\u0000\u0000'],
    ['a byte order mark in a class', '<p class="a\ufeffb">x'],
    ['a next line in a class', '<p class="a\u0085b">x'],
    ['more than 4,000 tags', '<i>'.repeat(4_001)],
  ])('is read by the default parser where it has %s', (_, html) => {
    expect(isReadNatively(html)).toBe(false)
  })

  it.each([
    ['<select> with options', '<select><optgroup><option>x<hr><option>y</select><p>z'],
    ['<svg> behind text, and in an element that opens formatting', '<p>a <svg></svg></p><a href=x><svg><title>t</title></svg></a><a>y</a>'],
    ['a formula', '<p>a <math><mi>x</mi><mo>=</mo><mn>2</mn></math> b'],
    ['<noscript>, and open formatting', '<p><b>x<p>y<noscript><p>z</noscript>'],
    ['nothing at all', ''],
    ['tables in tables', '<table><tr><td>x<table><td>y</table></table>'],
  ])('is read natively where it has %s, to the same records', (_, html) => {
    expect(isReadNatively(html)).toBe(true)
    const { parsed, native, nativeParses } = bothParsers([TITLES]).run(Buffer.from(html))
    expect(native).toEqual(parsed)
    expect(nativeParses).toBe(1)
  })

  it('gives the same URLs by both, their query in the encoding of the page', () => {
    const links = 'name: links\nversion: 1\nfields:\n  link: { select: "a@href", type: url }\n'
    const page = Buffer.from('<a href="/?q=\xf2">x</a>', 'latin1')
    const { parsed, native, nativeParses } = bothParsers([links]).run(page, undefined, { charset: 'windows-1251' })
    expect(nativeParses).toBe(1)
    expect(native).toEqual(parsed)
    expect(parsed.map((result) => result.kind === 'records' && Buffer.from(result.records[0]?.value ?? '').includes('/?q=%F2'))).toEqual([
      true,
    ])
  })

  it('gives the same JSON-LD by both, of the scripts within an element or of the page', () => {
    const script = (name: string) => `<script type="application/ld+json">{"@type":"Product","name":"${name}"}</script>`
    const names = 'name: names\nversion: 1\neach: li\nfields:\n  name: { jsonld: Product.name }\n'
    const html = `${script('page')}<ul><li>${script('A')}<li>x<li>${script('B')}</ul>`
    const { parsed, native, nativeParses } = bothParsers([names]).run(Buffer.from(html))
    expect(nativeParses).toBe(1)
    expect(native).toEqual(parsed)
    const [result] = parsed
    const texts = result?.kind === 'records' ? result.records.map(({ value }) => Buffer.from(value).toString('latin1')) : []
    expect(texts.map((text) => /page|A$|B$/.exec(text)?.[0])).toEqual(['A', 'page', 'B'])
  })

  it('gives the same money by both where no-break spaces group it', () => {
    const prices = 'name: prices\nversion: 1\nfields:\n  price: { select: p, type: money }\n'
    const { parsed, native, nativeParses } = bothParsers([prices]).run(Buffer.from('<p>PlayStation 5 <b>1&nbsp;299 €</b></p>'))
    expect(nativeParses).toBe(1)
    expect(native).toEqual(parsed)
  })

  it('gives the same numbers by both where elements part their digits', () => {
    const prices =
      'name: prices\nversion: 1\nfields:\n  price: { select: p, type: money, currency: EUR }\n  count: { select: i, type: int }\n  text: p\n'
    for (const html of [
      '<p>1<wbr>299<sup>90</sup> €</p><i>5<b>0</b></i>',
      '<p><b>12</b><script>x</script><b>99</b></p><i>1<wbr>2</i>',
      '<p><b><i></i>12<br></b>99</p><i>1<!-- -->2<b></b></i>',
      '<p><b>12</b><b></b>99<div>1</div>',
    ]) {
      const { parsed, native, nativeParses } = bothParsers([prices]).run(Buffer.from(html))
      expect([html, nativeParses]).toEqual([html, 1])
      expect(native).toEqual(parsed)
    }
  })

  it.each([
    ['.lg\\:prose-xl', '<p class="lg">y<p class="lg:prose-xl">x'],
    ['i.My\\(8\\)', '<b class="My(8)">y</b><i class="My(8)">x</i>'],
    ['esi\\:foo', '<foo>y</foo><esi:foo>x</esi:foo>'],
  ])('C102: has its elements found by an escaped selector, whichever parser may read it: %s', (selector, html) => {
    const field = `{ select: '${selector}', type: list }`
    expect(fieldFrom(field, html)).toEqual(['x'])
    const { parsed, native } = bothParsers([`name: t\nversion: 1\nfields:\n  x: ${field}\n`]).run(Buffer.from(html))
    expect(native).toEqual(parsed)
  })

  it('is read again by the default parser where records stand within each other', () => {
    const html = '<div class=card><b class=name>outer</b><div class=card><b class=name>inner</b></div></div>'
    const { parsed, native, nativeParses } = bothParsers([CARDS]).run(Buffer.from(html))
    expect(nativeParses).toBe(1)
    expect(native).toEqual(parsed)
    expect(parsed[0]).toMatchObject({ kind: 'records', records: [{}, {}] })
  })

  it('is parsed once, by the default parser, where one of its extractors needs that', () => {
    const { parsed, native, nativeParses } = bothParsers([TITLES, MICRODATA]).run(Buffer.from('<h1>x</h1>'))
    expect(nativeParses).toBe(0)
    expect(native).toEqual(parsed)
  })

  it('of 3,900 elements within each other is read natively without harm', () => {
    const { parsed, native, nativeParses } = bothParsers([CARDS]).run(Buffer.from(`${'<div>'.repeat(3_900)}<p class=card><i class=name>x`))
    expect(nativeParses).toBe(1)
    expect(native).toEqual(parsed)
  })
})
