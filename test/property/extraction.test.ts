import type { Element } from 'domhandler'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileExtractor } from '../../src/extract/declarative-extractor.ts'
import { deriveSchema } from '../../src/extract/derive-schema.ts'
import { recordOf } from '../../src/extract/envelope.ts'
import { readDefinition } from '../../src/extract/language/read-definition.ts'
import { compileSelector } from '../../src/extract/language/selector.ts'
import { createPageSelectors, PageView } from '../../src/extract/page-view.ts'
import { createPageParser } from '../../src/extract/parse-page.ts'
import { repairedJson } from '../../src/extract/sources/json-repair.ts'
import { parseJsonLd } from '../../src/extract/sources/jsonld.ts'
import { srcsetUrls } from '../../src/extract/values/srcset.ts'
import { compileConverter } from '../../src/extract/values/value-type.ts'
import { testJob, testPage } from '../support/extraction.ts'

const parser = createPageParser()
const selectors = createPageSelectors()

const word = fc.constantFrom(
  'a',
  '1.299,00',
  '2024-05-06',
  ' ',
  'yes',
  '&amp;',
  'http://x/',
  '9'.repeat(30),
  '{"@type":"T","v":[1,]}',
  '\u0000',
  '𝒳',
)
const tag = fc.constantFrom('p', 'table', 'tr', 'td', 'ul', 'li', 'div', 'script', 'template', 'svg', 'b', 'select')
const markup = fc
  .array(
    fc.oneof(
      word,
      tag.map((name) => `<${name}>`),
      tag.map((name) => `</${name}>`),
      fc.tuple(tag, word).map(([name, value]) => `<${name} id="${value}" itemscope itemprop=v itemtype=T>`),
      fc.constantFrom(
        '<script type="application/ld+json">{"@type":"T","v":{"@id":"1"},"@id":"1"}</script>',
        '<meta property=v content=3>',
        '<base href=":">',
      ),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(''))

const kinds = ['string', 'int', 'long', 'double', 'boolean', 'date', 'timestamp', 'url', 'html']
const definitionText = `name: all\nversion: 1\neach: 'p, li, td'\nfields:\n${kinds
  .map(
    (kind) =>
      `  ${kind}1: { any: [{ select: . }, { jsonld: T.v }, { microdata: T.v }, { meta: v }], type: ${kind} }\n  ${kind}2: { select: '*@id', type: list, items: ${kind} }`,
  )
  .join('\n')}\n  dec: { select: ., type: decimal, scale: 2 }\n  sub: { select: '> *', type: list, fields: { x: b, y: '@id' } }\n`

describe('extraction from any markup', () => {
  const { definition, problems } = readDefinition(definitionText)
  if (definition === undefined) throw new Error(JSON.stringify(problems))
  const extractor = compileExtractor(definition)
  const schema = deriveSchema(definition)

  it('never throws, and what it gives always fits the schema and is the same again', () => {
    fc.assert(
      fc.property(markup, (html) => {
        const page = testPage(html)
        const bytes = (): Buffer[] =>
          parser.withPage(html, { mode: 'document' }, ({ root }) => {
            const extracted = extractor.extract(new PageView(root, page.finalUrl, selectors), page.canonicalUrl)
            if (!extracted.ok) throw new Error(extracted.message)
            const context = { ...testJob(page, []), extractor: 'all', version: 1 }
            return extracted.items.map((item, index) => schema.encode(recordOf(context, item, index)))
          })
        expect(bytes()).toEqual(bytes())
      }),
      { numRuns: 150 },
    )
  })
})

describe('a selector within an element', () => {
  const plain = [
    'p',
    'li, td',
    'div p',
    'ul > li',
    'tr td:first-child',
    'p ~ *',
    'b + *',
    ':not(b)',
    'div:has(> p)',
    'p:not(div *)',
    '[id] *',
  ]

  it('matches what it matches in the page and is within the element, in the same order', () => {
    fc.assert(
      fc.property(markup, fc.constantFrom(...plain), (html, text) =>
        parser.withPage(html, { mode: 'document' }, ({ root }) => {
          const selector = compileSelector(text)
          const inPage = selector.all(root)
          for (const scope of compileSelector('*').all(root)) {
            const within = inPage.filter((element) => isWithin(element, scope))
            expect(selector.all(scope).map((element) => inPage.indexOf(element))).toEqual(within.map((element) => inPage.indexOf(element)))
            expect(selector.first(scope) === within[0]).toBe(true)
          }
        }),
      ),
      { numRuns: 60 },
    )
  })

  function isWithin(element: Element, scope: Element): boolean {
    for (let node = element.parent; node !== null; node = node.parent) if (node === scope) return true
    return false
  }
})

describe('numbers', () => {
  const grouped = (value: bigint, mark: string): string => value.toString().replace(/\B(?=(\d{3})+(?!\d))/g, mark)

  it('are read back however they are grouped', () => {
    const convert = compileConverter({ kind: 'decimal', scale: 2 })
    const marks = fc.constantFrom(['.', ','], [',', '.'], [' ', ','], ["'", '.'], ['\u00a0', ','], ['', '.'])
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 10n ** 15n }),
        fc.integer({ min: 0, max: 99 }),
        marks,
        fc.boolean(),
        (whole, cents, [group, mark], minus) => {
          const fraction = String(cents).padStart(2, '0')
          const text = `${minus ? '-' : ''}${grouped(whole, group ?? '')}${mark}${fraction} €`
          const zero = whole === 0n && cents === 0
          expect(convert(text, false, '')).toEqual({ kind: 'value', value: `${minus && !zero ? '-' : ''}${whole}.${fraction}` })
        },
      ),
      { numRuns: 200 },
    )
  })

  it('in any text give a value of their type or a reason, never an error', () => {
    const converters = [
      { kind: 'int' },
      { kind: 'long' },
      { kind: 'double' },
      { kind: 'decimal', scale: 2 },
      { kind: 'date' },
      { kind: 'timestamp' },
    ] as const
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[\d.,' -]{0,20}$/), fc.double()), fc.boolean(), (raw, machine) => {
        for (const type of converters) {
          const converted = compileConverter(type)(raw, machine, '')
          if (converted.kind === 'value' && type.kind !== 'decimal' && type.kind !== 'date')
            expect(Number.isFinite(converted.value)).toBe(true)
        }
      }),
      { numRuns: 300 },
    )
  })
})

describe('what pages hold', () => {
  it('is read without error: JSON-LD, srcset', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.json(),
            fc.string(),
            fc.json().map((text) => `${text};`),
          ),
        ),
        fc.string(),
        (scripts, srcset) => {
          expect(Array.isArray(parseJsonLd(scripts).nodes)).toBe(true)
          for (const url of srcsetUrls(srcset)) expect(url).not.toMatch(/^\s|^$|,$/)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('never loses a valid block', () => {
    const node = fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.string()).map((rest) => ({ '@type': 'T', ...rest }))
    fc.assert(
      fc.property(fc.array(node, { minLength: 1, maxLength: 4 }), (nodes) => {
        expect(parseJsonLd(nodes.map((value) => JSON.stringify(value))).nodes).toEqual(nodes)
        // With something behind it, a block is repaired to the same value.
        expect(parseJsonLd(nodes.map((value) => ` ${JSON.stringify(value)} ;`)).nodes).toEqual(nodes)
      }),
      { numRuns: 100 },
    )
  })

  it('is JSON whose repair changes nothing that JSON itself reads', () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom('"', '/', '*', '-', '>', '<', '!', ',', ' ', '\n', '{', ']', ';') }),
    )
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 3 },
        text,
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.constant(null),
        tie('list'),
        tie('object'),
      ),
      list: fc.array(tie('any'), { maxLength: 4 }),
      object: fc.dictionary(text, tie('any'), { maxKeys: 4 }),
    })).any
    fc.assert(
      fc.property(value, fc.constantFrom(0, 1, '\t'), (any, indent) => {
        const json = JSON.stringify(any, null, indent)
        expect(repairedJson(json)?.map((each) => JSON.parse(each) as unknown)).toEqual([JSON.parse(json)])
      }),
      { numRuns: 500 },
    )
  })

  it('is JSON that is left out, not guessed at, where a string has quotes that nobody escaped', () => {
    const unit = fc.constantFrom('"', '"', '/', '*', '-', '>', '<', '!', ',', ' ', '5', 'x', '[', ']', '{', '}', ';')
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 12 }), fc.constantFrom('', '\n'), (raw, line) => {
        const scripts = [`{"@type":"A","d":"${raw}",${line}"e":"f"${line}}`, `{"@type":"A",${line}"d":"${raw}"${line}}`]
        for (const script of scripts.filter((each) => !isJson(each)))
          expect(parseJsonLd([script]).nodes.filter((node) => node.d !== raw)).toEqual([])
      }),
      { numRuns: 5_000 },
    )
  })
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
