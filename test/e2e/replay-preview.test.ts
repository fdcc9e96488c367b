import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { BOOK_1, BOOK_2, BOOK_BAD, caughtUp, ends, range, storePages } from '../support/stored-shop.ts'

interface Preview {
  readonly records: Record<string, number>
  readonly fields: Record<string, Record<string, number>>
  readonly compatibility: { ok: boolean; problems: object[] }
  readonly examples: { entityKey: string; field?: string; before: unknown; after: unknown; source: { partition: number; offset: string } }[]
  readonly range: { offsets: number; gone: number }
  readonly pages: { compared: number }
  readonly gate: { held: boolean; reasons: string[] }
  readonly hash: string
}

const PAGES = 40
/** Pages of the first crawl; the others are of the second. */
const FIRST_CRAWL = 16
/** Time of the first page, by the message; each has a second of its own. */
const since = Date.now() - 3_600_000
const timeOf = (index: number): string => new Date(since + index * 1_000).toISOString()

/** Some tenths of a second for each page. */
const SLOW = `import { defineExtractor } from 'millrace'

export default defineExtractor({
  name: 'slow',
  version: 1,
  schema: { type: 'record', name: 'Slow', fields: [{ name: 'sum', type: 'double' }] },
  extract({ url }) {
    let sum = 0
    for (let n = 1; n < 3e8; n += 1) sum += 1 / n
    return [{ key: url, data: { sum } }]
  },
})
`

let deployment: Deployment

beforeAll(async () => {
  deployment = await Deployment.open()
  deployment.file('book.yaml', BOOK_1)
  deployment.file('book2.yaml', BOOK_2)
  deployment.file('bad.yaml', BOOK_BAD)
  const pages = range(PAGES).map((page) => ({
    ...page,
    fetchedAt: since + page.index * 1_000,
    change: { crawlId: page.index < FIRST_CRAWL ? 'spring' : 'autumn' },
  }))
  await deployment.read((runtime) => storePages(runtime, pages))
  const extract = deployment.start(['extract', '--extractor', 'book.yaml'])
  await caughtUp(deployment)
  extract.child.kill('SIGTERM')
  await extract.done
})

afterAll(() => deployment.close())

async function preview(...args: string[]): Promise<Preview> {
  const result = await deployment.run(['replay', 'preview', '--json', ...args])
  if (result.code !== 0) throw new Error(result.stderr)
  return JSON.parse(result.stdout) as Preview
}

describe('replay plan', () => {
  it('tells pages, bytes and a time that was measured', async () => {
    const result = await deployment.run(['replay', 'plan', '--json', '--extractor', 'book2.yaml'])
    const plan = JSON.parse(result.stdout) as { offsets: string; estimate: Record<string, unknown> }
    const bytes = await deployment.pages()
    expect(plan.offsets).toBe(String(PAGES))
    expect(plan.estimate).toMatchObject({
      isExact: true,
      matched: PAGES,
      rateFrom: 'sample',
      bytes: bytes.reduce((sum, { message }) => sum + (message.value?.length ?? 0), 0),
    })
    expect(plan.estimate.seconds).toBeGreaterThan(0)
    const table = await deployment.run(['replay', '--extractor', 'book2.yaml'])
    expect(table.stdout).toContain('; 40 pages for book version 2')
    expect(table.stdout).toContain('nothing was changed')
  })

  it('reads from a time to a time, each in the middle of the log', async () => {
    const planned = async (...times: string[]): Promise<number> =>
      Number(JSON.parse((await deployment.run(['replay', 'plan', '--json', '--extractor', 'book2.yaml', ...times])).stdout).offsets)
    expect(await planned('--to-datetime', timeOf(10))).toBe(PAGES - 10)
    expect(await planned('--until', timeOf(25))).toBe(25)
    expect(await planned('--to-datetime', timeOf(10), '--until', timeOf(25))).toBe(15)
  })

  it('says what retention has taken of the range and what is left, and preview says so too', async () => {
    const own = await Deployment.open()
    own.file('book2.yaml', BOOK_2)
    await own.read(async (runtime) => {
      await storePages(
        runtime,
        range(PAGES).map((page) => ({ ...page, fetchedAt: Date.now() - 7_200_000 + page.index })),
      )
      await runtime.admin.deleteRecordsBefore(runtime.topics.html, new Map([0, 1, 2, 3].map((partition) => [partition, 3n])))
    })
    const byOffset = JSON.parse((await own.run(['replay', '--json', '--extractor', 'book2.yaml', '--to-offset', '1'])).stdout) as {
      gone: string
      offsets: string
      partitions: { note: string }[]
    }
    expect([byOffset.gone, byOffset.offsets]).toEqual(['8', String(PAGES - 12)])
    expect(byOffset.partitions[0]?.note).toContain('2 older offsets are gone by retention')
    const byTime = await own.run(['replay', '--json', '--extractor', 'book2.yaml', '--by-duration', '3h'])
    expect((JSON.parse(byTime.stdout) as typeof byOffset).partitions[0]?.note).toMatch(
      /pages from before .* are gone by retention, \d+ are left/,
    )
    const looked = ['replay', 'preview', '--extractor', 'book2.yaml', '--to-offset', '1']
    const { range: left } = JSON.parse((await own.run([...looked, '--json'])).stdout) as Preview
    expect(left).toEqual({ offsets: PAGES - 12, gone: 8 })
    expect((await own.run(looked)).stdout).toContain('8 offsets of the range are gone by retention; 28 are left')
    await own.close()
  })
})

describe('status --fields', () => {
  it('tells nulls and types of each field in the newest records, and records per page', async () => {
    const { stdout } = await deployment.run(['status', '--fields', '--json'])
    const fields = ['sku', 'title', 'price'].map((field) => ({ field, nullRatio: 0, types: ['string'] }))
    const all = { records: PAGES, pages: PAGES, recordsPerPage: 1, fields }
    expect(JSON.parse(stdout)).toEqual({
      fields: [{ extractor: 'book', version: 1, ...all, domains: [{ domain: 'shop-books.com', ...all }] }],
    })
    const text = (await deployment.run(['status', '--fields'])).stdout
    expect(text.split('\n')[1]?.split(/ {2,}/)).toEqual(['book:1', 'shop-books.com', 'sku', '0.0 %', 'string', String(PAGES), '1.00'])
  })
})

describe('replay preview', () => {
  it('tells per record and field what would change, with examples that name their page, and writes no message', async () => {
    const before = await deployment.read(ends)
    const report = await preview('--extractor', 'book2.yaml', '--all')
    expect(report.records).toEqual({ same: 8, changed: 32, added: 0, removed: 0, failed: 0 })
    expect(report.fields.price).toEqual({ added: 0, removed: 0, changed: 8, nullsBefore: 0, nullsAfter: 0 })
    expect(report.fields.stock).toEqual({ added: 30, removed: 0, changed: 0, nullsBefore: 40, nullsAfter: 10 })
    expect(report.compatibility).toEqual({ ok: true, problems: [] })
    const example = report.examples.find(({ field }) => field === 'price')
    const number = example?.entityKey.slice(1)
    expect([example?.before, example?.after]).toEqual([`${number}.99`, `${number}.50`])
    const page = (await deployment.pages()).find(
      ({ message }) => message.partition === example?.source.partition && String(message.offset) === String(example.source.offset),
    )
    expect(page?.value.url).toContain(`/b/${number}`)
    expect(await deployment.read(ends)).toEqual(before)
    const files = await preview('--extractor', 'book2.yaml', '--all', '--against', 'book.yaml')
    expect([files.records, files.fields, files.hash]).toEqual([report.records, report.fields, report.hash])
  })

  it('reads a sample from all parts of the range, and only pages of the scope', async () => {
    const sample = await preview('--extractor', 'book2.yaml', '--sample', '10')
    expect([sample.range.offsets, sample.pages.compared]).toEqual([PAGES, 10])
    const partitions = new Set(sample.examples.map(({ source }) => source.partition))
    expect(partitions.size).toBeGreaterThan(1)
    const odd = await preview('--extractor', 'book2.yaml', '--all', '--domain', 'odd.shop-books.com')
    expect(odd.pages.compared).toBe(PAGES / 2)
    expect(odd.hash).not.toBe(sample.hash)
  })

  it('tells of a filter that no page fits, and where to look', async () => {
    for (const verb of ['plan', 'preview']) {
      const none = await deployment.run(['replay', verb, '--extractor', 'book2.yaml', '--domain', 'shop-boks.com'])
      expect([none.code, none.stderr]).toEqual([0, expect.stringContaining('note: no page of the range fits: look at --domain')])
    }
  })

  it('ends with 130 when it is interrupted, and says that it has left nothing', async () => {
    deployment.file('slow.ts', SLOW)
    const running = deployment.start(['replay', 'preview', '--extractor', 'slow.ts', '--all'])
    await eventually(() => running.stderr().includes(' page'), { what: 'the preview is at work' })
    running.child.kill('SIGINT')
    const { code, stdout, stderr } = await running.done
    expect([code, stdout]).toEqual([130, ''])
    expect(stderr).toContain('stopped; nothing was written, and there is no hash')
  })

  it('shows an extractor that breaks as failed pages, and that it would be held back', async () => {
    const report = await preview('--extractor', 'bad.yaml', '--all')
    expect(report.records).toEqual({ same: 0, changed: 0, added: 0, removed: 0, failed: PAGES })
    expect(report.gate.held).toBe(true)
    expect(report.gate.reasons).toEqual(['40 pages that gave records would become dead letters (EXTRACT_FIELD_MISSING price)'])
    const table = await deployment.run(['replay', 'preview', '--extractor', 'bad.yaml', '--all'])
    expect(table.stdout).toContain('EXTRACT_FIELD_MISSING price: 40 pages, the first at')
    expect(table.stdout).toContain('held back: 40 pages')
  })

  it('says what a shadow replay then does', async () => {
    const said = await preview('--extractor', 'book2.yaml', '--all')
    const run = await deployment.run(['replay', 'run', '--json', '--shadow', '--extractor', 'book2.yaml', '--expect', said.hash])
    const done = (JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '') as { comparison: Preview }).comparison
    expect([run.code, done.records, done.fields]).toEqual([0, said.records, said.fields])
  })

  it('reads pages of one crawl alone, and so does its shadow, to which pages of others are none that gave nothing', async () => {
    const crawl = ['--extractor', 'book2.yaml', '--crawl', 'spring']
    const said = await preview('--all', ...crawl)
    expect([said.pages.compared, said.records]).toEqual([FIRST_CRAWL, { same: 3, changed: 13, added: 0, removed: 0, failed: 0 }])
    const run = await deployment.run(['replay', 'run', '--json', '--shadow', ...crawl])
    const done = JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '') as { pages: string; comparison: Preview }
    expect([done.pages, done.comparison.records]).toEqual([String(FIRST_CRAWL), said.records])
  })

  it('of a shadow counts the pages that failed in it, not those of other replays of that version', async () => {
    const shadow = async (...scope: string[]): Promise<{ deadLetters: number; comparison: Preview }> => {
      const run = await deployment.run(['replay', 'run', '--json', '--shadow', '--extractor', 'bad.yaml', ...scope])
      return JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '') as { deadLetters: number; comparison: Preview }
    }
    const all = await shadow('--id', 'all')
    expect([all.deadLetters, all.comparison.records.failed]).toEqual([PAGES, PAGES])
    const odd = await shadow('--id', 'odd', '--domain', 'odd.shop-books.com')
    expect([odd.deadLetters, odd.comparison.records.failed]).toEqual([PAGES / 2, PAGES / 2])
  })

  it('a shadow that is called off ends with 3 and tells on standard output how far it came', async () => {
    const run = deployment.start(['replay', 'run', '--json', '--shadow', '--extractor', 'book2.yaml', '--id', 'off', '--rate', '0.5'])
    const status = async (): Promise<{ doneOffsets: number; state: string }> =>
      JSON.parse((await deployment.run(['replay', 'status', 'off', '--json'])).stdout || '{}') as { doneOffsets: number; state: string }
    await eventually(async () => (await status()).doneOffsets > 0, { what: 'the shadow is at work' })
    expect((await deployment.run(['replay', 'cancel', 'off'])).code).toBe(0)
    const { code, stdout, stderr } = await run.done
    expect(code).toBe(3)
    expect(stderr).toContain('replay off was called off; the records so far are in')
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({ replayId: 'off', cancelled: true, interrupted: true })
  })

  it('refuses a hash of another extractor, of other pages, or of nobody', async () => {
    const { hash } = await preview('--extractor', 'book2.yaml')
    const other = await deployment.run(['replay', 'run', '--shadow', '--extractor', 'bad.yaml', '--expect', hash])
    expect([other.code, other.stdout]).toEqual([2, ''])
    expect(other.stderr).toContain('is another extractor')
    const pages = await deployment.run(['replay', 'run', '--shadow', '--extractor', 'book2.yaml', '--crawl', 'c', '--expect', hash])
    expect(pages.stderr).toContain('it was of other pages')
    const nobody = await deployment.run(['replay', 'run', '--shadow', '--extractor', 'book2.yaml', '--expect', '0000'])
    expect(nobody.stderr).toContain('no preview of the last 14 days has this hash')
  })

  it('is what `run --expect` goes by, and flags that would count for nothing are refused', async () => {
    const refused = (...flags: string[]) => deployment.run(['replay', 'run', '--extractor', 'book2.yaml', ...flags])
    const range = await refused(
      '--in-place',
      '--expect',
      '0123456789abcdef',
      '--to-datetime',
      '2026-03-01',
      '--topic',
      `${deployment.prefix}html:0`,
    )
    expect([range.code, range.stderr]).toEqual([2, expect.stringContaining('leave out --to-datetime, --topic')])
    const force = await refused('--shadow', '--force', 'as I say')
    expect([force.code, force.stderr]).toEqual([2, expect.stringContaining('--force goes with --in-place')])
  })
})
