import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { diffExtractors, type TrialOptions } from '../../src/control/trials/extractor-trial.ts'
import { watchExtractor } from '../../src/control/trials/extractor-watch.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { matchSnapshot, recordsOf, runExtractor } from '../../src/testing.ts'

/** What authors of extractors work with: run on a page, snapshot, difference, watch. */
const folder = mkdtempSync(join(tmpdir(), 'millrace-kit-'))
const write = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
const yaml = (price: string, version = 1): string =>
  `name: book\nversion: ${version}\nfields:\n  title: h1\n  price: { select: ${price}, type: decimal, scale: 2 }\n`
const html = '<h1>Lamp</h1><b class=price>9,90</b><i class=sale>8,50</i>'
const page = { kind: 'file', path: write('page.html', html), url: 'http://shop.example.test/1' } as const

const options = (signal: AbortSignal): Omit<TrialOptions, 'file' | 'target'> => ({
  config: loadConfig({ environment: {}, sets: [], flags: {} }).config,
  version: '0',
  clock: systemClock,
  openRuntime: () => Promise.reject(new Error('no broker is needed for a saved page')),
  onOutput: () => undefined,
  signal,
})

describe('millrace/testing', () => {
  it('runs an extractor on HTML or on a file, and says why a field is empty', async () => {
    const file = write('book.yaml', yaml('.prise'))
    const report = await runExtractor(file, { file: page.path, url: page.url })
    expect(report.records.map(({ record }) => record.data)).toEqual([{ title: 'Lamp', price: null }])
    expect(report.fields.find(({ field }) => field === 'price')?.why).toBe('null, since .prise: it matches nothing')
    // Strictly: of no class.
    expect(await recordsOf(write('good.yaml', yaml('.price')), { html, url: page.url })).toStrictEqual([
      { key: 'http://shop.example.test/1', data: { title: 'Lamp', price: '9.90' } },
    ])
  })

  it('gives no records of a page that the extractor does not match, as a crawl would', async () => {
    const file = write('matched.yaml', `${yaml('.price')}match: { paths: ['/1'] }\n`)
    expect(await recordsOf(file, { html, url: 'http://shop.example.test/1' })).toHaveLength(1)
    expect(await recordsOf(file, { html, url: 'http://shop.example.test/2' })).toEqual([])
    expect(await recordsOf(file, { html })).toHaveLength(1)
  })

  it('decodes bytes as the stage does, and throws the code of a dead letter', async () => {
    const file = write('required.yaml', yaml('.price').replace('scale: 2', 'scale: 2, required: true'))
    const bytes = Buffer.concat([Buffer.from('<h1>'), Buffer.from([0xd6, 0xe5, 0xed, 0xe0]), Buffer.from('</h1><b class=price>1</b>')])
    expect(await recordsOf(file, { html: bytes, contentType: 'text/html; charset=windows-1251' })).toMatchObject([
      { data: { title: 'Цена' } },
    ])
    const text = '<meta charset="windows-1251"><h1>Цена</h1><b class=price>1</b>'
    expect(await recordsOf(file, { html: text })).toMatchObject([{ data: { title: 'Цена' } }])
    await expect(recordsOf(file, { html: '<h1>x</h1>' })).rejects.toMatchObject({ code: 'EXTRACT_FIELD_MISSING' })
    await expect(recordsOf(file, {})).rejects.toMatchObject({ code: 'USAGE' })
  })

  it('runs code under its limits', async () => {
    const file = write(
      'loop.mjs',
      'export default { name: "loop", version: 1, schema: { type: "record", name: "L", fields: [] }, extract() { for (;;); } }',
    )
    await expect(recordsOf(file, { html }, { pageTimeoutMs: 300 })).rejects.toMatchObject({ code: 'EXTRACT_TIMEOUT' })
  })

  it('keeps a snapshot of records, and names the line that differs', () => {
    const file = join(folder, 'snapshots', 'book.json')
    matchSnapshot(file, [{ key: 'a', data: { b: 1, a: 2 } }])
    expect(existsSync(file)).toBe(true)
    matchSnapshot(file, [{ key: 'a', data: { a: 2, b: 1 } }])
    expect(() => matchSnapshot(file, [{ key: 'a', data: { a: 3, b: 1 } }])).toThrow(/book\.json:4 has .*"a\\": 2.*the records .*"a\\": 3/)
    matchSnapshot(file, [{ key: 'a', data: { a: 3 } }], { update: true })
    expect(readFileSync(file, 'utf8')).toContain('"a": 3')
  })
})

describe('the difference of two extractors', () => {
  it('is that of their records on the same pages, and of their schemas', async () => {
    const before = write('one.yaml', yaml('.price'))
    const after = write('two.yaml', yaml('.sale', 2).replace('title: h1', 'title: { select: h1, type: url }'))
    const { signal } = new AbortController()
    const diff = await diffExtractors({ before, after }, [page], options(signal))
    expect(diff).toMatchObject({ pages: 1, incompatible: [], records: { before: 1, after: 1, changed: 1 }, fields: { title: 1, price: 1 } })
    expect(diff.changes.find(({ field }) => field === 'price')).toMatchObject({ before: '9.90', after: '8.50' })
    const other = write('three.yaml', yaml('.price', 3).replace('type: decimal, scale: 2', 'type: decimal, scale: 3'))
    expect((await diffExtractors({ before, after: other }, [page], options(signal))).incompatible).toEqual([expect.stringMatching(/price/)])
  })
})

describe('the watch over an extractor', () => {
  it('shows what each save changes, and what is wrong with one', async () => {
    const file = write('watched.yaml', yaml('.price'))
    const controller = new AbortController()
    const updates = watchExtractor(file, [page], options(controller.signal))
    expect((await updates.next()).value).toMatchObject({ kind: 'changes', pages: 1, records: { before: 0, after: 1 } })
    const next = updates.next()
    writeFileSync(file, yaml('.sale'))
    expect((await next).value).toMatchObject({
      kind: 'changes',
      fields: { price: 1 },
      changes: [{ field: 'price', before: '9.90', after: '8.50' }],
    })
    const broken = updates.next()
    writeFileSync(file, yaml("'b['"))
    expect((await broken).value).toMatchObject({ kind: 'problems', problems: [expect.stringMatching(/watched\.yaml:5:/)] })
    const end = updates.next()
    controller.abort()
    expect(await end).toEqual({ done: true, value: undefined })
  })
})
