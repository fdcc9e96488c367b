import { afterEach, describe, expect, it } from 'vitest'
import type { RunningCli } from '../support/cli.ts'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { expectInTime } from '../support/in-time.ts'
import { BOOK_1, BOOK_2, BOOK_BAD, caughtUp, range, storePages } from '../support/stored-shop.ts'

interface Status {
  readonly replayId: string
  readonly state: string
  readonly doneOffsets: number
  readonly offsets: number
  readonly totals: Record<string, number>
  readonly partitions: { partition: number; phase: string }[]
}

/** What a preview says. */
interface Said {
  readonly hash: string
  readonly records: Record<string, number>
  readonly fields: Record<string, { added: number; removed: number; changed: number }>
}

/** What a command that waits says meanwhile. */
interface Progress {
  readonly done: number
  readonly offsets: number
  readonly remainingMs: number | null
}

const progressOf = (command: RunningCli): Progress[] =>
  command
    .stderr()
    .split('\n')
    .filter((line) => line.startsWith('{"progress"') && line.endsWith('}'))
    .map((line) => (JSON.parse(line) as { readonly progress: Progress }).progress)

const PAGES = 40
let deployment: Deployment

afterEach(() => deployment.close())

/** A group that has read so many pages with the first version, and now runs the second. */
async function liveGroup(pages = PAGES): Promise<RunningCli> {
  deployment = await Deployment.open()
  deployment.file('book.yaml', BOOK_1)
  deployment.file('book2.yaml', BOOK_2)
  deployment.file('bad.yaml', BOOK_BAD)
  await deployment.read((runtime) => storePages(runtime, range(pages)))
  const first = deployment.start(['extract', '--extractor', 'book.yaml'])
  await caughtUp(deployment)
  first.child.kill('SIGTERM')
  await first.done
  return extract('book2.yaml')
}

async function extract(file: string): Promise<RunningCli> {
  const running = deployment.start(['extract', '--extractor', file])
  await eventually(() => running.stderr().includes('extract is running'), { what: 'the extract stage' })
  return running
}

async function replay(...args: string[]): Promise<Status> {
  const result = await deployment.run(['replay', ...args, '--json'])
  if (result.code !== 0) throw new Error(`${result.code}: ${result.stderr}`)
  return JSON.parse(result.stdout) as Status
}

/** The broker lets a dead member go when its session has run out; here at once. */
function forget(): Promise<void> {
  return deployment.read(async (runtime) => {
    const groupId = runtime.groups.extract()
    for (const { memberId } of (await runtime.admin.describeGroup(groupId)).members) await runtime.admin.evictMember(groupId, memberId)
  })
}

/** Keys of the records of the second version, by the replay that wrote them. */
async function written(): Promise<Map<string | null, string[]>> {
  const byReplay = new Map<string | null, string[]>()
  for (const { value } of await deployment.records()) {
    if (value.extractorVersion !== 2) continue
    byReplay.set(value.replayId, [...(byReplay.get(value.replayId) ?? []), value.entityKey].sort())
  }
  return byReplay
}

const keys = (count: number, from = 0): string[] => Array.from({ length: count }, (_, index) => `B${from + index}`).sort()

describe('a replay in place on a live group', () => {
  it('rewinds every partition, gives each page of the filter to the extractor once, and goes on with live pages', async () => {
    await liveGroup()
    const running = deployment.start([
      'replay',
      'run',
      '--in-place',
      '--extractor',
      'book2.yaml',
      '--id',
      'r1',
      '--rate',
      '20',
      '--wait',
      '--json',
    ])
    await eventually(async () => (await written()).size > 0, { what: 'the first replayed record', everyMs: 200 })
    await deployment.read((runtime) => storePages(runtime, range(12, PAGES)))
    const done = await running.done
    expect([done.code, JSON.parse(done.stdout)]).toMatchObject([
      0,
      { replayId: 'r1', start: 'live', state: 'done', doneOffsets: PAGES, totals: { records: PAGES } },
    ])
    await caughtUp(deployment)
    expect(await written()).toEqual(
      new Map([
        ['r1', keys(PAGES)],
        [null, keys(12, PAGES)],
      ]),
    )
    const { state } = await replay('status', 'r1')
    expect(state).toBe('done')
    // Nothing is left of it: the same group replays again, another part.
    const again = await replay('run', '--in-place', '--extractor', 'book2.yaml', '--id', 'r2', '--domain', 'odd.shop-books.com', '--wait')
    expect(again).toMatchObject({ state: 'done', totals: { records: (PAGES + 12) / 2 } })
    const odd = keys(PAGES + 12).filter((key) => Number(key.slice(1)) % 2 === 1)
    expect((await written()).get('r2')).toEqual(odd)
  })

  it('C174: begins again in every partition of two members, whoever has them, and writes what its preview has said', async () => {
    await liveGroup()
    await extract('book2.yaml')
    const members = await deployment.read(async (runtime) => (await runtime.admin.describeGroup(runtime.groups.extract())).members)
    expect(members).toHaveLength(2)
    const stored = await deployment.pages()
    const preview = await deployment.run(['replay', 'preview', '--extractor', 'book2.yaml', '--all', '--json'])
    const said = JSON.parse(preview.stdout) as Said
    const done = await replay('run', '--in-place', '--extractor', 'book2.yaml', '--expect', said.hash, '--id', 'r1', '--wait')
    expect(done).toMatchObject({ state: 'done', doneOffsets: PAGES, totals: { records: PAGES } })
    const partitions = new Set(stored.map(({ message }) => message.partition))
    expect(partitions.size).toBeGreaterThanOrEqual(4)
    expect(new Set(done.partitions.map(({ partition }) => partition))).toEqual(partitions)
    expect(await written()).toEqual(new Map([['r1', keys(PAGES)]]))
    const records = (await deployment.records()).map(({ value }) => value)
    const before = new Map(records.filter(({ extractorVersion }) => extractorVersion === 1).map(({ entityKey, data }) => [entityKey, data]))
    const differing = records
      .filter(({ replayId }) => replayId === 'r1')
      .map(({ entityKey, data }) => Object.keys(data).filter((field) => data[field] !== (before.get(entityKey)?.[field] ?? null)))
    const same = differing.filter((fields) => fields.length === 0).length
    expect(said.records).toEqual({ same, changed: PAGES - same, added: 0, removed: 0, failed: 0 })
    for (const [field, { added, removed, changed }] of Object.entries(said.fields))
      expect(added + removed + changed, field).toBe(differing.filter((fields) => fields.includes(field)).length)
    expect(same).toBeLessThan(PAGES)
  })

  it('gives live pages of the same partitions a turn every few seconds, however long it takes', { timeout: 300_000 }, async () => {
    await liveGroup(160)
    const command = deployment.start([
      'replay',
      'run',
      '--in-place',
      '--extractor',
      'book2.yaml',
      '--id',
      'l',
      '--rate',
      '6',
      '--wait',
      '--json',
    ])
    await eventually(async () => (await written()).has('l'), { what: 'a replayed record', timeoutMs: 90_000, everyMs: 200 })
    let live = 160
    let told: { readonly leftMs: number; readonly atMono: number } | undefined
    await deployment.read(async (runtime) => {
      while (command.child.exitCode === null) {
        const word = progressOf(command).find(({ done, offsets }) => done >= offsets / 2)
        if (word !== undefined) told ??= { leftMs: word.remainingMs ?? 0, atMono: performance.now() }
        await storePages(runtime, [{ index: live }])
        live += 1
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    })
    expect((await command.done).code).toBe(0)
    const { leftMs = 0, atMono = 0 } = told ?? {}
    const wasLeftMs = performance.now() - atMono
    await caughtUp(deployment)
    expect(await written()).toEqual(
      new Map([
        ['l', keys(160)],
        [null, keys(live - 160, 160)],
      ]),
    )
    const records = (await deployment.records()).map(({ value }) => value)
    const times = records.filter(({ replayId }) => replayId === 'l').map(({ extractedAt }) => extractedAt)
    const lags = records.flatMap(({ replayId, extractorVersion, extractedAt, fetchedAt }) =>
      replayId === null && extractorVersion === 2 ? [extractedAt - fetchedAt] : [],
    )
    const tookMs = Math.max(...times) - Math.min(...times)
    const [least, median, most] = [0, 0.5, 1].map((share) => lags.toSorted((a, b) => a - b)[Math.round(share * (lags.length - 1))] ?? 0)
    process.stdout.write(`replay in place of ${tookMs} ms, lag of ${lags.length} live pages: ${least} to ${most}, median ${median} ms\n`)
    process.stdout.write(`${Math.round(leftMs)} ms left by its word at half, and ${Math.round(wasLeftMs)} ms as it was\n`)
    expect(tookMs).toBeGreaterThan(20_000)
    // It takes half a minute: at the tenth two or three commits have been seen, and a turn of live work is as long as they were.
    expectInTime(Math.abs(leftMs - wasLeftMs), wasLeftMs / 2, 'what its word was off by')
    // Turns of three seconds each. One at the end of the replay would be half of its time in the median, and all of it at most.
    expectInTime(median ?? Number.NaN, tookMs / 4, 'the median lag')
    expectInTime(most ?? Number.NaN, tookMs / 2, 'the longest lag')
    for (const partition of new Set(records.map(({ source }) => source.partition))) {
      const kinds = records
        .filter(({ source, extractorVersion }) => source.partition === partition && extractorVersion === 2)
        .toSorted((one, other) => one.extractedAt - other.extractedAt)
        .map(({ replayId }) => replayId)
      expect(kinds.filter((kind, index) => index > 0 && kind !== kinds[index - 1]).length).toBeGreaterThanOrEqual(4)
    }
  })

  it('survives kill -9 of its worker: each page once, then live work', async () => {
    const worker = await liveGroup()
    const begun = await replay('run', '--in-place', '--extractor', 'book2.yaml', '--id', 'k', '--rate', '4')
    expect(begun.state).toBe('open')
    await eventually(async () => ((await written()).get('k')?.length ?? 0) >= 8, {
      what: 'a part of the replay',
      everyMs: 200,
    })
    worker.child.kill('SIGKILL')
    await worker.done
    await forget()
    const half = (await written()).get('k') ?? []
    expect(half.length).toBeLessThan(PAGES)
    await deployment.read((runtime) => storePages(runtime, range(5, PAGES)))
    const next = await extract('book2.yaml')
    await eventually(async () => (await replay('status', 'k')).state === 'done', {
      what: 'the end of the replay',
      everyMs: 500,
    })
    await caughtUp(deployment)
    expect(await written(), next.stderr()).toEqual(
      new Map([
        ['k', keys(PAGES)],
        [null, keys(5, PAGES)],
      ]),
    )
  })

  it('is the same replay when it is asked for again under its id, whether it goes on or has ended', async () => {
    await liveGroup()
    const line = ['run', '--in-place', '--extractor', 'book2.yaml', '--id', 'i', '--domain', 'odd.shop-books.com', '--rate', '10']
    const command = deployment.start(['replay', ...line, '--wait'])
    await eventually(async () => ((await written()).get('i')?.length ?? 0) > 0, {
      what: 'a replayed record',
      everyMs: 100,
    })
    command.child.kill('SIGKILL')
    await command.done
    const other = await deployment.run(['replay', 'run', '--in-place', '--extractor', 'book2.yaml', '--id', 'i'])
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('was begun as book version 2 in group')])
    expect(await replay(...line, '--wait')).toMatchObject({ state: 'done', totals: { records: PAGES / 2 } })
    expect(await replay(...line, '--wait')).toMatchObject({ start: 'done', state: 'done', totals: { records: PAGES / 2 } })
    expect((await written()).get('i')).toEqual(keys(PAGES).filter((key) => Number(key.slice(1)) % 2 === 1))
    const beside = await deployment.run(['replay', 'run', '--shadow', '--extractor', 'book2.yaml', '--id', 'i'])
    expect([beside.code, beside.stderr]).toEqual([2, expect.stringContaining('take another --id')])
  })

  it('is refused where a live member runs another version, and held back where the version gives less', async () => {
    const worker = await liveGroup()
    const held = await deployment.run(['replay', 'run', '--in-place', '--extractor', 'bad.yaml'])
    expect([held.code, held.stdout]).toEqual([2, ''])
    expect(held.stderr).toContain('40 pages that gave records would become dead letters (EXTRACT_FIELD_MISSING price)')
    const other = await deployment.run(['replay', 'run', '--in-place', '--extractor', 'bad.yaml', '--force', 'a test'])
    expect(other.code).toBe(2)
    expect(other.stderr).toContain('not every live member')
    expect(other.stderr).toContain('(version 2)')
    expect(other.stderr).toContain('`millrace promote book:3`')
    expect((await deployment.run(['replay', 'status', '--json'])).stdout.trim()).toBe('[]')
    expect(worker.child.exitCode).toBeNull()
  })

  it('is called off: its owners jump back to live work, and another may begin', async () => {
    await liveGroup()
    await replay('run', '--in-place', '--extractor', 'book2.yaml', '--id', 'c', '--rate', '0.5')
    const open = await deployment.run(['replay', 'run', '--in-place', '--extractor', 'book2.yaml', '--id', 'c2'])
    expect(open.stderr).toContain('replay c of group')
    await eventually(async () => ((await written()).get('c') ?? []).length > 0, { what: 'the first page' })
    await replay('cancel', 'c')
    await deployment.read((runtime) => storePages(runtime, range(8, PAGES)))
    await caughtUp(deployment)
    const found = await written()
    expect(found.get(null)).toEqual(keys(8, PAGES))
    expect((found.get('c') ?? []).length).toBeLessThan(PAGES)
    await eventually(async () => (await replay('status', 'c')).partitions.every(({ phase }) => phase === 'cancelled'), {
      what: 'the end of the replay',
      everyMs: 500,
    })
    // What the owners had taken when it was called off is counted too.
    const off = await replay('status', 'c')
    const pages = ((await written()).get('c') ?? []).length
    expect([off.doneOffsets, off.totals]).toEqual([pages, expect.objectContaining({ pages, records: pages })])
    const next = await replay('run', '--in-place', '--extractor', 'book2.yaml', '--id', 'n', '--wait')
    expect(next.state).toBe('done')
    expect((await written()).get('n')).toEqual(keys(PAGES + 8))
  })
})

describe('a replay in place on a stopped group', () => {
  it('sets the offsets at once, and the group replays when it starts; --wait waits for both', async () => {
    const worker = await liveGroup()
    worker.child.kill('SIGTERM')
    await worker.done
    const begun = await replay('run', '--in-place', '--extractor', 'book2.yaml', '--id', 's', '--shift-by', '-3')
    expect(begun).toMatchObject({ start: 'stopped', offsets: '12' })
    const refused = await deployment.run(['extract', '--extractor', 'book.yaml'])
    expect([refused.code, refused.stderr.includes('wants book version 2')]).toEqual([2, true])
    const line = 'replay run --in-place --extractor book2.yaml --id s --shift-by -3 --wait'
    const waiting = deployment.start(line.split(' '))
    await eventually(() => waiting.stderr().includes('no member of'), { what: 'word of the stopped group' })
    expect(waiting.child.exitCode).toBeNull()
    await extract('book2.yaml')
    expect((await waiting.done).code).toBe(0)
    expect((await replay('status', 's')).state).toBe('done')
    expect((await written()).get('s')?.length).toBe(12)
  })
})
