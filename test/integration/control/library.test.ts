import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeTopics } from '../../../src/control/inspect/describe-topics.ts'
import { compareShadow } from '../../../src/control/replay/shadow-comparison.ts'
import { begunShadow } from '../../../src/control/replay/shadow-replay.ts'
import { loadDefinition } from '../../../src/extract/load-extractors.ts'
import { Millrace, type ReplayInPlaceReport, type ReplayShadowReport } from '../../../src/index.ts'
import { Deployment } from '../../support/deployment.ts'
import { eventually } from '../../support/eventually.ts'
import { brokers } from '../../support/services.ts'
import { BOOK_1, BOOK_2, BOOK_BAD, range, storePages } from '../../support/stored-shop.ts'

const PAGES = 24
let deployment: Deployment
let millrace: Millrace
let files: { readonly book: string; readonly book2: string; readonly bad: string }

function open(extractors: readonly string[]): Millrace {
  return new Millrace({
    brokers: brokers(),
    data: deployment.dataDir,
    extractors,
    'topics.prefix': deployment.prefix,
    'topics.partitions.urls': '4',
  })
}

beforeAll(async () => {
  deployment = await Deployment.open()
  files = {
    book: deployment.file('book.yaml', BOOK_1),
    book2: deployment.file('book2.yaml', BOOK_2),
    bad: deployment.file('bad.yaml', BOOK_BAD),
  }
  await deployment.read((runtime) => storePages(runtime, range(PAGES)))
  const first = open([files.book])
  await first.run()
  await first.stop()
  millrace = open([files.book, files.book2, files.bad])
})

afterAll(async () => {
  await millrace.stop()
  await deployment.close()
})

describe('Millrace as a library', () => {
  it('plans, previews, replays in place and tells how far it is', async () => {
    const plan = await millrace.replay.plan({ extractor: 'book:2' })
    expect(plan).toMatchObject({ topic: `${deployment.prefix}html`, offsets: BigInt(PAGES), gone: 0n })
    const first = plan.partitions[0]?.partition ?? 0
    const part = await millrace.replay.plan({ extractor: 'book:2', partitions: [first] })
    expect(part.partitions.map(({ partition }) => partition)).toEqual([first])
    const preview = await millrace.replay.preview({ extractor: 'book:2', sample: 'all' })
    expect([preview.records.changed + preview.records.same, preview.fields.stock?.nullsBefore]).toEqual([PAGES, PAGES])
    expect((await millrace.replay.preview({ extractor: files.book2, against: files.book })).before.kind).toBe('extractor')

    await expect(millrace.replay.run({ mode: 'in-place', extractor: 'book:3' })).rejects.toMatchObject({ code: 'EXTRACTOR_HELD' })
    const begun: ReplayInPlaceReport = await millrace.replay.run({
      mode: 'in-place',
      extractor: 'book:2',
      replayId: 'r',
      expect: preview.hash,
    })
    expect(begun).toMatchObject({ replayId: 'r', start: 'stopped', status: { state: 'open', doneOffsets: 0, offsets: PAGES } })
    // Asked for again under its name it is the same one, and nothing is set back.
    const again = await millrace.replay.run({ mode: 'in-place', extractor: 'book:2', replayId: 'r' })
    expect(again).toMatchObject({ start: 'stopped', plan: { offsets: BigInt(PAGES) }, status: { state: 'open', doneOffsets: 0 } })
    // What would count for nothing is refused.
    await expect(
      millrace.replay.run({ mode: 'in-place', extractor: 'book:2', expect: preview.hash, partitions: [first] }),
    ).rejects.toMatchObject({ code: 'USAGE', message: expect.stringContaining('leave out `start`, `until` and `partitions`') })
    await expect(millrace.replay.run({ mode: 'in-place', extractor: 'book:2', replayId: 'r', rate: 5 })).rejects.toMatchObject({
      code: 'REPLAY_REFUSED',
      message: expect.stringContaining('was begun without --rate'),
    })
    // The same line again goes on, that of another preview does not.
    await expect(
      millrace.replay.run({ mode: 'in-place', extractor: 'book:2', replayId: 'r', expect: preview.hash }),
    ).resolves.toMatchObject({ start: 'stopped' })
    await expect(
      millrace.replay.run({ mode: 'in-place', extractor: 'book:2', replayId: 'r', expect: '0123456789abcdef' }),
    ).rejects.toMatchObject({
      code: 'REPLAY_REFUSED',
      message: expect.stringContaining(`was begun with --expect ${preview.hash}, and keeps its range`),
    })
    await expect(millrace.replay.run({ mode: 'in-place', extractor: 'book:1', replayId: 'r' })).rejects.toMatchObject({
      code: 'REPLAY_REFUSED',
      message: expect.stringContaining('was begun as book version 2'),
    })
    await expect(millrace.replay.run({ mode: 'in-place', extractor: 'book:2' })).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
    expect((await millrace.replay.list()).map(({ replayId, state }) => [replayId, state])).toEqual([['r', 'open']])

    const worker = open([files.book2])
    await worker.run()
    await worker.stop()
    expect(await millrace.replay.status('r')).toMatchObject({ state: 'done', doneOffsets: PAGES, totals: { records: PAGES } })
    expect(await millrace.replay.tombstones('r')).toEqual({ keys: [], written: 0 })
    const replayed = (await deployment.records()).filter(({ value }) => value.replayId === 'r')
    expect(replayed.map(({ value }) => value.extractorVersion)).toEqual(Array(PAGES).fill(2))
  })

  it('writes no task of which no request could be made', async () => {
    const refused = { code: 'TASK_FIELD_INVALID', message: expect.stringContaining('method') }
    await expect(millrace.produce(['http://a.test/'], { method: 'get' })).rejects.toMatchObject(refused)
    await expect(millrace.produce(['http://a.test/'], { headers: { Host: 'b.test' } })).rejects.toMatchObject({
      code: 'TASK_FIELD_INVALID',
    })
  })

  it('calls a replay off', async () => {
    await millrace.replay.run({ mode: 'in-place', extractor: 'book:2', replayId: 'off' })
    expect(await millrace.replay.cancel('off')).toMatchObject({ state: 'cancelled' })
    await expect(millrace.replay.status('nothing')).rejects.toMatchObject({ code: 'USAGE' })
  })

  it('replays beside live work, to the end, with the comparison', async () => {
    const report: ReplayShadowReport = await millrace.replay.run({
      mode: 'shadow',
      extractor: 'book:2',
      replayId: 's',
      filter: { domain: 'odd.shop-books.com' },
    })
    expect(report).toMatchObject({ topic: `${deployment.prefix}records.shadow.s`, records: PAGES / 2, interrupted: false })
    expect(report.comparison?.records).toMatchObject({ removed: 0, failed: 0 })
    // More records than may be in memory are compared in parts.
    const extractor = loadDefinition('book.yaml', BOOK_2)
    const inParts = await deployment.read(async (runtime) => {
      const begun = await begunShadow(runtime, 's')
      if (begun === undefined) throw new Error('there is no shadow s')
      return compareShadow(runtime, { replayId: 's', topic: begun.topic }, extractor, begun, { comparedBytes: 1_000 })
    })
    expect([inParts.records, inParts.fields]).toEqual([report.comparison?.records, report.comparison?.fields])
    // Asked for again under its name it has ended.
    const again = await millrace.replay.run({
      mode: 'shadow',
      extractor: 'book:2',
      replayId: 's',
      filter: { domain: 'odd.shop-books.com' },
    })
    expect([again.records, again.comparison?.records]).toEqual([PAGES / 2, report.comparison?.records])
    await expect(
      millrace.replay.run({
        mode: 'shadow',
        extractor: 'book:2',
        replayId: 's',
        filter: { domain: 'odd.shop-books.com' },
        expect: '0123456789abcdef',
      }),
    ).rejects.toMatchObject({ code: 'REPLAY_REFUSED', message: expect.stringContaining('was begun without --expect') })
    expect(await millrace.replay.status('s')).toMatchObject({
      state: 'done',
      shadowTopic: `${deployment.prefix}records.shadow.s`,
      offsets: PAGES,
      doneOffsets: PAGES,
      totals: { pages: PAGES / 2, records: PAGES / 2 },
    })
    await expect(millrace.replay.tombstones('s')).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
  })

  it('forgets a shadow that has ended, with its topic, and nothing else', async () => {
    const topic = `${deployment.prefix}records.shadow.s`
    const shadows = () =>
      deployment.read(async (runtime) => (await describeTopics(runtime)).filter(({ replayId }) => replayId !== undefined))
    expect(await shadows()).toEqual([expect.objectContaining({ topic, replayId: 's' })])
    await expect(millrace.replay.forget('r')).rejects.toMatchObject({
      code: 'REPLAY_REFUSED',
      message: expect.stringContaining('in place'),
    })
    await expect(millrace.replay.forget('nothing')).rejects.toMatchObject({ code: 'USAGE' })
    expect(await millrace.replay.forget('s')).toEqual({ replayId: 's', topic, isDeleted: true })
    // A broker answers before the topic has gone.
    await eventually(async () => (await shadows()).length === 0, { what: 'the topic to go' })
    expect(await deployment.read((runtime) => runtime.admin.listTopics())).not.toContain(topic)
    expect((await millrace.replay.list()).map(({ replayId }) => replayId)).not.toContain('s')
    await expect(millrace.replay.forget('s')).rejects.toMatchObject({ code: 'USAGE' })
    // Under its id there would be nothing to compare.
    const filter = { domain: 'odd.shop-books.com' }
    await expect(millrace.replay.run({ mode: 'shadow', extractor: 'book:2', replayId: 's', filter })).rejects.toMatchObject({
      code: 'REPLAY_REFUSED',
      message: expect.stringContaining('forgotten'),
    })
  })

  it('gives records to no topic of other messages', async () => {
    const html = `${deployment.prefix}html`
    await expect(millrace.replay.run({ mode: 'shadow', extractor: 'book:2', out: html })).rejects.toMatchObject({ code: 'USAGE' })
    const stray = deployment.file('stray.yaml', BOOK_1.replace('name: book', `name: stray\ntopic: ${deployment.prefix}urls`))
    await expect(millrace.replay.run({ mode: 'shadow', extractor: stray })).rejects.toMatchObject({ code: 'EXTRACTOR_INVALID' })
  })

  it('begins no shadow over nothing', async () => {
    const at = { kind: 'time', at: Date.now() + 86_400_000 } as const
    await expect(millrace.replay.run({ mode: 'shadow', extractor: 'book:2', start: at, replayId: 'nothing' })).rejects.toMatchObject({
      code: 'REPLAY_REFUSED',
    })
    expect((await millrace.replay.list()).map(({ replayId }) => replayId)).not.toContain('nothing')
    // A time before 1970 is one before all pages; to Kafka -1 is the end.
    const plan = await millrace.replay.plan({ extractor: 'book:2', start: { kind: 'time', at: -1 } })
    expect(plan.offsets).toBe(BigInt(PAGES))
  })

  it('tells of a shadow while it runs, and calls it off', async () => {
    const options = { mode: 'shadow', extractor: 'book:2', replayId: 'slow', rate: 0.25 } as const
    const running = millrace.replay.run(options)
    await eventually(async () => (await millrace.replay.status('slow')).doneOffsets > 0)
    expect(await millrace.replay.status('slow')).toMatchObject({ state: 'open', offsets: PAGES })
    await expect(millrace.replay.forget('slow')).rejects.toMatchObject({
      code: 'REPLAY_REFUSED',
      message: expect.stringContaining('not ended'),
    })
    expect((await millrace.replay.list()).at(-1)).toMatchObject({ replayId: 'slow', state: 'open' })

    const off = await millrace.replay.cancel('slow')
    expect(off).toMatchObject({ state: 'cancelled', offsets: PAGES })
    expect(off.doneOffsets).toBeLessThan(PAGES)
    expect(await running).toMatchObject({ interrupted: true, cancelled: true, comparison: undefined })
    // What it had taken was finished, and is counted.
    const ended = await millrace.replay.status('slow')
    expect(ended.state).toBe('cancelled')
    expect(ended.doneOffsets).toBeGreaterThanOrEqual(off.doneOffsets)
    expect(ended.doneOffsets).toBeLessThan(PAGES)
    await expect(millrace.replay.run(options)).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
  })

  it('goes on with a shadow that was cut short by the range of its first time, however html has grown', async () => {
    const options = { mode: 'shadow', extractor: 'book:2', replayId: 'cut', out: `${deployment.prefix}records.cut` } as const
    const first = open([files.book2])
    const cut = first.replay.run({ ...options, filter: { fetchedFrom: 1_000, ago: { fetchedFrom: 5_000 } }, rate: 1 })
    await eventually(async () => (await millrace.replay.status('cut')).doneOffsets > 0)
    const before = await millrace.replay.status('cut')
    await first.stop()
    expect(await cut).toMatchObject({ interrupted: true, cancelled: false, comparison: undefined })
    await deployment.read((runtime) => storePages(runtime, range(8, PAGES)))

    // Said again later, `5s ago` is another time and the same request.
    const filter = { fetchedFrom: 3_000, ago: { fetchedFrom: 5_000 } }
    await expect(millrace.replay.run({ ...options, filter: { fetchedFrom: 3_000 } })).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
    await expect(millrace.replay.run({ ...options, filter, out: `${deployment.prefix}records.other` })).rejects.toMatchObject({
      code: 'REPLAY_REFUSED',
    })
    // Where it goes need not be said again.
    const report = await millrace.replay.run({ mode: 'shadow', extractor: 'book:2', replayId: 'cut', filter })
    expect(report).toMatchObject({ topic: `${deployment.prefix}records.cut`, pages: BigInt(PAGES), records: PAGES, interrupted: false })
    expect(report.comparison?.records).toMatchObject({ added: 0, removed: 0, failed: 0 })
    const after = await millrace.replay.status('cut')
    expect(after).toMatchObject({ state: 'done', offsets: PAGES, doneOffsets: PAGES })
    // A topic that was named may be that of others.
    expect(await millrace.replay.forget('cut')).toMatchObject({ topic: `${deployment.prefix}records.cut`, isDeleted: false })
    expect(await deployment.read((runtime) => runtime.admin.listTopics())).toContain(`${deployment.prefix}records.cut`)
    expect(after.partitions.map(({ from, until }) => [from, until])).toEqual(before.partitions.map(({ from, until }) => [from, until]))
  })

  it('refuses a second run while one is under way, which goes on to its end', async () => {
    const runs = await Promise.allSettled([millrace.run(), millrace.run()])
    expect(runs.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(runs.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'USAGE' } })
  })

  it('promotes a version, and back', async () => {
    await expect(millrace.promote('book', 3)).rejects.toMatchObject({ code: 'EXTRACTOR_HELD' })
    await expect(millrace.promote('book', 9)).rejects.toMatchObject({ code: 'USAGE' })
    expect(await millrace.promote('book', 2)).toMatchObject({ version: 2, previous: 1, running: [], others: [] })
    expect(await millrace.promote('book', 1)).toMatchObject({ version: 1, previous: 2 })
  })
})
