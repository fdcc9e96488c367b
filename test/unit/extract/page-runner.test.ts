import { describe, expect, it } from 'vitest'
import { deriveSchema } from '../../../src/extract/derive-schema.ts'
import type { ExtractorSource } from '../../../src/extract/extractor-source.ts'
import { readDefinition } from '../../../src/extract/language/read-definition.ts'
import type { NativeParse } from '../../../src/extract/native/native-parser.ts'
import { createPageRunner, type PageJob, type RunResult } from '../../../src/extract/page-runner.ts'
import { recordId } from '../../../src/message/ids.ts'
import { packPageBody } from '../../../src/message/page-body.ts'
import { nativeParse } from '../../support/both-parsers.ts'
import { corpusNote, corpusPages, hasCorpus } from '../../support/corpus.ts'
import { outcomeOf, testJob, testPage } from '../../support/extraction.ts'

const BOOK = 'name: book\nversion: 2\nkey: sku\nfields: { sku: .sku, title: h1, price: { select: .price, type: decimal, scale: 2 } }'
const declarative = (text: string): ExtractorSource => ({ kind: 'declarative', file: 'x.yaml', text })
const code = (name: string, body: string, fields = '[{ name: "v", type: "string" }]'): ExtractorSource => ({
  kind: 'code',
  file: `/x/${name}.js`,
  shown: `${name}.js`,
  sourceMap: JSON.stringify({ version: 3, sources: [], mappings: '' }),
  code: `exports.default = { name: ${JSON.stringify(name)}, version: 1, schema: { type: 'record', name: 'X', fields: ${fields} }, extract({ $, url, page, jsonld }) { ${body} } }`,
})

function run(sources: readonly ExtractorSource[], job: PageJob): RunResult[] {
  const results: RunResult[] = []
  createPageRunner(sources).run(job, (result) => results.push(result))
  return results
}

function decoded(text: string, result: RunResult | undefined): unknown[] {
  const { definition } = readDefinition(text)
  if (definition === undefined || result?.kind !== 'records') throw new Error(JSON.stringify(result))
  const schema = deriveSchema(definition)
  return result.records.map(({ value }) => JSON.parse(JSON.stringify(schema.decode(value))) as unknown)
}

describe('a record', () => {
  const page = testPage('<h1>T</h1><p class=sku>S1<p class=price>9,90', 'http://shop.example.test/p/1', {
    crawlId: 'c',
    jobId: 'j',
    traceId: 't'.repeat(32),
    meta: { a: 'b' },
  })

  it('C178: is the same when its page is extracted again, but for the replay and the time of extraction', () => {
    const [live] = run([declarative(BOOK)], testJob(page, ['book']))
    const [again] = run([declarative(BOOK)], { ...testJob(page, ['book']), extractedAt: 1_800_000_000_000, replayId: 'r1' })
    const [one] = decoded(BOOK, live) as object[]
    const [other] = decoded(BOOK, again) as object[]
    expect(one).toMatchObject({ replayId: null, extractedAt: 1_700_000_001_000, fetchedAt: 1_700_000_000_000 })
    expect(other).toEqual({ ...one, replayId: 'r1', extractedAt: 1_800_000_000_000 })
    const keysOf = (result: RunResult | undefined) => (result?.kind === 'records' ? result.records.map(({ key }) => key) : undefined)
    expect(keysOf(again)).toEqual(keysOf(live))
  })

  it('names the bytes and the extractor that made it', () => {
    const [result] = run([declarative(BOOK)], { ...testJob(page, ['book']), replayId: 'r1' })
    expect(result).toMatchObject({ kind: 'records', records: [{ key: 'book/S1' }] })
    expect(decoded(BOOK, result)).toEqual([
      {
        recordId: recordId(page.fetchId, 'book', 2, 0),
        url: 'http://shop.example.test/p/1',
        extractor: 'book',
        extractorVersion: 2,
        recordVersion: { fetchedAt: 1_700_000_000_000, extractorVersion: 2 },
        itemIndex: 0,
        entityKey: 'S1',
        source: { topic: 'scrape.html', partition: 3, offset: 41 },
        bodySha256: page.bodySha256,
        fetchedAt: 1_700_000_000_000,
        extractedAt: 1_700_000_001_000,
        crawlId: 'c',
        jobId: 'j',
        replayId: 'r1',
        traceId: 't'.repeat(32),
        meta: { a: 'b' },
        data: { sku: 'S1', title: 'T', price: '9.90' },
      },
    ])
  })

  it('is the same, byte for byte, for the same page', () => {
    const sources = [
      declarative(BOOK),
      code('rnd', 'return [{ key: url, data: { v: String([Math.random(), Date.now(), new Date().toISOString()]) } }]'),
    ]
    const job = testJob(page, ['book', 'rnd'])
    expect(run(sources, job)).toEqual(run(sources, job))
    const other = run(sources, testJob({ ...page, fetchId: 'f'.repeat(32) }, ['rnd']))
    expect(other).not.toEqual(run(sources, testJob(page, ['rnd'])))
  })
})

describe('the body of a page', () => {
  it('is unpacked and decoded by the charset that was decided', async () => {
    const bytes = Buffer.from('<h1>\xd6\xe5\xed\xe0</h1>'.padEnd(600, ' '), 'latin1')
    const packed = await packPageBody({ body: bytes, encoding: 'identity', decoded: bytes })
    expect(packed.bodyEncoding).not.toBe('identity')
    const page = testPage(bytes, 'http://a.example.test/', { ...packed, charset: 'windows-1251' })
    const [result] = run([declarative(BOOK.replace('key: sku\n', ''))], testJob(page, ['book']))
    expect(decoded(BOOK, result)).toMatchObject([{ data: { title: 'Цена' } }])
  })

  it('C106: has its links resolved against the URL that answered, at the first extraction and at each replay', () => {
    const links = 'name: links\nversion: 1\nfields: { to: { select: "a@href", type: url }, own: { link: canonical } }'
    const page = testPage('<link rel=canonical href=c><a href="p">', 'http://example.test/old', {
      finalUrl: 'http://example.test/new/dir/',
    })
    const job = testJob(page, ['links'])
    for (const each of [job, { ...job, replayId: 'r1' }]) {
      const [result] = run([declarative(links)], each)
      expect(decoded(links, result)).toMatchObject([
        { data: { to: 'http://example.test/new/dir/p', own: 'http://example.test/new/dir/c' } },
      ])
    }
  })

  it('that is broken fails all extractors, and is never half a record', () => {
    const page = testPage('<h1>T', 'http://a.example.test/', { bodyEncoding: 'gzip' })
    const results = run([declarative(BOOK), declarative(BOOK.replace('name: book', 'name: other'))], testJob(page, ['book', 'other']))
    expect(results.map(outcomeOf)).toEqual(['book: EXTRACT_PAGE_BROKEN', 'other: EXTRACT_PAGE_BROKEN'])
  })

  it('that is nested without end fails all extractors, whatever they would take of it', () => {
    const results = run([declarative(BOOK), code('x', 'return []')], testJob(testPage('<div>'.repeat(20_000)), ['book', 'x']))
    expect(results.map(outcomeOf)).toEqual(['book: EXTRACT_PAGE_BROKEN', 'x: EXTRACT_PAGE_BROKEN'])
  })
})

describe('a code extractor', () => {
  const page = testPage('<h1>T</h1><script type="application/ld+json">{"@graph":[{"@type":"A"}]}</script>')
  const one = (body: string): RunResult | undefined => run([code('x', body)], testJob(page, ['x']))[0]

  it('gets the page, its parsed tree, its URL and its JSON-LD', () => {
    const given = "return [{ key: 7, data: { v: [$('h1').text(), url, page.status, page.text.length, jsonld[0]['@type']].join() } }]"
    const result = one(given)
    expect(result).toMatchObject({ kind: 'records', records: [{ key: 'x/7' }] })
    expect(result?.kind === 'records' && result.records[0]?.value.includes(`T,http://shop.example.test/p/1,200,${page.bodyLength},A`)).toBe(
      true,
    )
  })

  it.each([
    ["throw new TypeError('boom')", 'EXTRACT_FAILED', 'TypeError: boom'],
    ['null.x', 'EXTRACT_FAILED', 'null'],
    ['return', 'EXTRACT_RECORD_INVALID', 'extract gave undefined'],
    ['return 42', 'EXTRACT_RECORD_INVALID', '42'],
    ['return [null]', 'EXTRACT_RECORD_INVALID', 'item 0 is null'],
    ['return [{ key: 1 }]', 'EXTRACT_RECORD_INVALID', 'expected { key, data }'],
    ['return [{ key: {}, data: { v: "" } }]', 'EXTRACT_RECORD_INVALID', 'the key of item 0 is an object'],
    ['return Symbol()', 'EXTRACT_RECORD_INVALID', 'extract gave Symbol();'],
    ['return Symbol("s")', 'EXTRACT_RECORD_INVALID', 'extract gave Symbol(s);'],
    ['return 10n', 'EXTRACT_RECORD_INVALID', 'extract gave 10n;'],
    ['return NaN', 'EXTRACT_RECORD_INVALID', 'extract gave NaN;'],
    ['return () => 1', 'EXTRACT_RECORD_INVALID', 'extract gave a function;'],
    ['return { toJSON() { throw 1 } }', 'EXTRACT_RECORD_INVALID', 'extract gave an object;'],
    ['return "a\\n" + "b".repeat(100)', 'EXTRACT_RECORD_INVALID', `extract gave "a\\n${'b'.repeat(58)}…";`],
    ['return [Symbol()]', 'EXTRACT_RECORD_INVALID', 'item 0 is Symbol();'],
    ['return [() => 1]', 'EXTRACT_RECORD_INVALID', 'item 0 is a function;'],
    ['return [{ key: Symbol("k"), data: {} }]', 'EXTRACT_RECORD_INVALID', 'the key of item 0 is Symbol(k);'],
    ['return [{ key: 7n, data: {} }]', 'EXTRACT_RECORD_INVALID', 'the key of item 0 is 7n;'],
    ['const p = Proxy.revocable([], {}); p.revoke(); return p.proxy', 'EXTRACT_RECORD_INVALID', "what extract gave can't be read: Cannot"],
    ['return new Proxy({}, { getPrototypeOf() { throw new Error("no") } })', 'EXTRACT_RECORD_INVALID', "gave can't be read: no"],
    ['return new Proxy([1], { get() { throw Symbol("s") } })', 'EXTRACT_RECORD_INVALID', "gave can't be read: Symbol(s)"],
    ['return [{ get key() { throw new Error("no") }, data: {} }]', 'EXTRACT_RECORD_INVALID', "gave can't be read: no"],
    ['throw Symbol("s")', 'EXTRACT_FAILED', 'Symbol(s)'],
    ['throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 } })', 'EXTRACT_FAILED', 'something without a text was thrown'],
    ['throw Object.assign(new Error(), { message: Symbol("s") })', 'EXTRACT_FAILED', 'Symbol(s)'],
    ['return [{ key: 1, data: { v: Symbol("s") } }]', 'EXTRACT_RECORD_INVALID', 'field data.v: is Symbol(s); expected text'],
    ['return [{ key: 1, data: { v: 7n } }]', 'EXTRACT_RECORD_INVALID', 'field data.v: is 7n; expected text'],
    ['return [{ key: 1, data: { v: () => 1 } }]', 'EXTRACT_RECORD_INVALID', 'field data.v: is a function; expected text'],
    ['return [{ key: 1, data: { v: 3 } }]', 'EXTRACT_RECORD_INVALID', 'field data.v: is 3; expected text'],
    ['return [{ key: 1, data: { v: "", w: 1 } }]', 'EXTRACT_RECORD_INVALID', 'data.w'],
    ['return [{ key: 1, data: { v: new Date(0) } }]', 'EXTRACT_RECORD_INVALID', 'data.v'],
    ['return [{ key: "a", data: { v: "" } }, { key: "", data: { v: "" } }]', 'EXTRACT_KEY_MISSING', 'item 1'],
    ['return [{ data: { v: "" } }]', 'EXTRACT_KEY_MISSING', 'item 0'],
    ['return Promise.reject(new Error("late"))', 'EXTRACT_RECORD_INVALID', 'promise'],
    ['return fetch("http://x")', 'EXTRACT_FAILED', 'never sees the network'],
    ['setTimeout(() => 1)', 'EXTRACT_FAILED', 'setTimeout'],
    ['require("node:http").get("http://x")', 'EXTRACT_FAILED', 'node:http'],
    ['const f = () => f(); f()', 'EXTRACT_FAILED', 'call stack'],
  ])('that does %s costs its record and says why', (body, expectedCode, text) => {
    const result = one(body)
    expect(result).toMatchObject({ kind: 'failure', code: expectedCode })
    expect(result?.kind === 'failure' ? result.message : '').toContain(text)
  })

  it('sees the tree as the page has it, whatever another one did to its own', () => {
    const spoil = code('spoil', "$('h1').remove(); return []")
    const spoilToo = code('spoil-too', "$('h1').remove(); return []")
    const read = (name: string): ExtractorSource => code(name, "return [{ key: 1, data: { v: $('h1').text() } }]")
    const sources = [spoil, spoilToo, read('a'), read('b'), declarative(BOOK.replace('key: sku\n', ''))]
    const results = run(sources, testJob(page, ['spoil', 'spoil-too', 'a', 'b', 'book']))
    const alone = run([read('a')], testJob(page, ['a']))
    expect(results.find(({ extractor }) => extractor === 'a')).toEqual(alone[0])
    expect(results.map(outcomeOf).toSorted()).toEqual([
      'a: 1 records',
      'b: 1 records',
      'book: 1 records',
      'spoil-too: 0 records',
      'spoil: 0 records',
    ])
    expect(
      decoded(
        BOOK,
        results.find(({ extractor }) => extractor === 'book'),
      ),
    ).toMatchObject([{ data: { title: 'T' } }])
  })
})

describe('JSON-LD that is none', () => {
  const scripts = ['{"@type":"A"}', '{bad}', '{"@type":"B"};', '{worse}'].map(
    (text) => `<script type="application/ld+json">${text}</script>`,
  )
  const page = testPage(`<h1>T</h1>${scripts.join('')}`)
  const read = (name: string, more = ''): ExtractorSource =>
    declarative(`name: ${name}\nversion: 1\nfields: { n: { jsonld: A.n } }\n${more}`)
  const faults = (sources: readonly ExtractorSource[], names: readonly string[], parse?: NativeParse): unknown[] => {
    const seen: unknown[] = []
    const job = testJob(page, names)
    createPageRunner(sources, parse).run(
      job,
      () => undefined,
      (each) => seen.push(each),
    )
    return seen
  }

  it('is counted once for a page, however many extractors read it, on however many trees', () => {
    const once = [{ repaired: 1, broken: 2 }]
    expect(faults([read('a')], ['a'])).toEqual(once)
    expect(faults([read('a'), read('b')], ['a', 'b'], nativeParse())).toEqual(once)
    const inCode = code('x', 'jsonld; jsonld; return []')
    expect(faults([inCode], ['x'])).toEqual(once)
    expect(faults([read('a'), read('b', 'parse: fragment\n'), inCode], ['a', 'b', 'x'])).toEqual(once)
  })

  it('is not looked for where nobody reads it', () => {
    const title = declarative('name: a\nversion: 1\nfields: { title: h1 }\n')
    expect(faults([title], ['a'])).toEqual([])
    expect(faults([title], ['a'], nativeParse())).toEqual([])
  })
})

describe('a page that has ended a process', () => {
  it('is read without the native parser, and gives the same', () => {
    const source = declarative('name: book\nversion: 1\nfields: { title: h1 }\n')
    const job = testJob(testPage(Buffer.from('<h1>Soumission</h1>')), ['book'])
    let parses = 0
    const parse = (text: string): ReturnType<NativeParse> => {
      parses += 1
      return nativeParse()(text)
    }
    const runner = createPageRunner([source], parse)
    const resultsOf = (given: PageJob): RunResult[] => {
      const results: RunResult[] = []
      runner.run(given, (result) => results.push(result))
      return results
    }
    const first = resultsOf(job)
    expect(parses).toBe(1)
    expect(resultsOf({ ...job, withoutNative: true })).toEqual(first)
    expect(parses).toBe(1)
  })
})

describe.skipIf(!hasCorpus)(`real pages${corpusNote}`, () => {
  it('give one record each, the same every time', () => {
    const text = `name: page\nversion: 1\nfields:
  title: title
  canonical: { select: 'link[rel=canonical]@href', type: url }
  description: { meta: description }
  headings: { select: 'h1, h2', type: list }
  links: { select: 'a@href', type: list, items: url }\n`
    const runner = createPageRunner([declarative(text)])
    const results = (): RunResult[] => {
      const all: RunResult[] = []
      for (const { id, bytes } of corpusPages({ every: 16 })) {
        runner.run(testJob(testPage(bytes, `http://a.example.test/${id}`), ['page']), (result) => all.push(result))
      }
      return all
    }
    const first = results()
    expect(first.length).toBeGreaterThan(8)
    expect(new Set(first.map(outcomeOf))).toEqual(new Set(['page: 1 records']))
    expect(results()).toEqual(first)
    const titles = first.map((result) => (decoded(text, result)[0] as { data: { title: string | null; links: string[] | null } }).data)
    expect(titles.every(({ title, links }) => title !== null && links !== null && links.length > 0)).toBe(true)
  })
})
