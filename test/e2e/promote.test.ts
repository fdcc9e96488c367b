import { afterEach, describe, expect, it } from 'vitest'
import { lines } from '../support/cli.ts'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { BOOK_1, BOOK_2, BOOK_BAD, caughtUp, range, storePages } from '../support/stored-shop.ts'

let deployment: Deployment

afterEach(() => deployment.close())

const named = (...files: string[]): string[] => files.flatMap((file) => ['--extractor', file])
const FILES = named('book.yaml', 'book2.yaml', 'bad.yaml')

/** As the second version, without a price on any page, and no page is a dead letter for it. */
const BOOK_PRICELESS = BOOK_BAD.replace('version: 3', 'version: 4').replace(
  '.cost, type: decimal, scale: 2, required: true',
  '.cost, type: decimal, scale: 2',
)

/** Stores pages and gives the version that each of them was extracted with. */
async function versionsOf(from: number, count: number): Promise<number[]> {
  await deployment.read((runtime) => storePages(runtime, range(count, from)))
  return versionsFrom(from, count)
}

async function versionsFrom(from: number, count: number): Promise<number[]> {
  await caughtUp(deployment)
  const records = (await deployment.records()).filter(({ value }) => Number(value.entityKey.slice(1)) >= from)
  expect(new Set(records.map(({ value }) => value.entityKey)).size).toBe(count)
  return records.map(({ value }) => value.extractorVersion)
}

describe('versions of an extractor', () => {
  it('run beside each other, are promoted and taken back in one command each, and are held back where they give less', {
    timeout: 300_000,
  }, async () => {
    deployment = await Deployment.open()
    deployment.file('book.yaml', BOOK_1)
    deployment.file('book2.yaml', BOOK_2)
    deployment.file('bad.yaml', BOOK_BAD)
    deployment.file('priceless.yaml', BOOK_PRICELESS)
    const priceless = (...files: string[]) => deployment.run(['promote', 'book:4', ...named(...files, 'priceless.yaml')])
    const loses = [2, '', expect.stringContaining('version 4 of book is held back: the required field price would be lost in 10 records')]
    await deployment.read((runtime) => storePages(runtime, range(10)))
    // No version has run yet: that the price is required is told by the file of the version before alone.
    const unrun = await priceless('book.yaml')
    expect([unrun.code, unrun.stdout, unrun.stderr]).toEqual(loses)
    const live = deployment.start(['extract', ...FILES])
    // Before the first promotion the lowest version works.
    expect(await versionsFrom(0, 10)).toEqual(Array(10).fill(1))

    const candidate = deployment.start(['extract', '--candidate', '--extractor', 'book2.yaml'])
    await caughtUp(deployment, 'book-v2')
    candidate.child.kill('SIGTERM')
    expect((await candidate.done).code).toBe(143)
    const beside = lines<{ value: { extractorVersion: number } }>(await deployment.run(['consume', 'records.book-v2', '--from-beginning']))
    expect(beside.map(({ value }) => value.extractorVersion)).toEqual(Array(10).fill(2))

    const held = await deployment.run(['promote', 'book:3', ...FILES])
    expect([held.code, held.stdout]).toEqual([2, ''])
    expect(held.stderr).toContain('version 3 of book is held back: 10 pages that gave records would become dead letters')
    // Its own file alone is enough to hold it: what the version before gave is on the log.
    const alone = await deployment.run(['promote', 'book:3', '--extractor', 'bad.yaml'])
    expect([alone.code, alone.stdout]).toEqual([2, ''])
    expect(alone.stderr).toContain('version 3 of book is held back: 10 pages that gave records would become dead letters')
    const lossy = await priceless()
    expect([lossy.code, lossy.stdout, lossy.stderr]).toEqual(loses)
    expect(await versionsOf(10, 4)).toEqual(Array(4).fill(1))

    const promoted = await deployment.run(['promote', 'book:2', ...FILES, '--json'])
    expect([promoted.code, JSON.parse(promoted.stdout)]).toMatchObject([
      0,
      { version: 2, previous: 1, running: [{ stage: 'extract' }], others: [] },
    ])
    expect(await versionsOf(14, 4)).toEqual(Array(4).fill(2))

    const back = await deployment.run(['promote', 'book:1', ...FILES])
    expect([back.code, back.stdout.split('\n')]).toEqual([
      0,
      [
        'book version 1 is promoted and run by 1 live worker',
        // Nobody requires it, so it goes; that it does is said.
        expect.stringMatching(/^on a sample of the stored pages the field stock would be missing in \d+ records that had it$/),
        `back: millrace promote book:2 ${FILES.join(' ')}`,
        '',
      ],
    ])
    expect(await versionsOf(18, 4)).toEqual(Array(4).fill(1))
    expect(live.child.exitCode).toBeNull()

    // Whoever starts later runs what is promoted.
    live.child.kill('SIGTERM')
    await live.done
    // The way back is told by what is promoted, not by which files are named.
    const again = await deployment.run(['promote', 'book:2', '--extractor', 'book2.yaml'])
    const typed = 'millrace promote book:1 --extractor FILE (that of version 1)'
    expect([again.code, again.stdout]).toEqual([0, `book version 2 is promoted and run by 0 live workers\nback: ${typed}\n`])
    const listed = await deployment.run(['promote', '--json'])
    expect(JSON.parse(listed.stdout)).toMatchObject([{ extractor: 'book', version: 2, since: expect.any(Number) }])
    await deployment.run(['promote', 'book:3', ...FILES, '--force', 'a test'])
    const later = deployment.start(['extract', ...FILES])
    await eventually(() => later.stderr().includes('extract is running'), { what: 'the extract stage' })
    await deployment.read((runtime) => storePages(runtime, range(3, 22)))
    await caughtUp(deployment)
    expect((await deployment.deadLetters()).length).toBe(3)

    // The heartbeat of a worker that was killed stands for a while; nobody waits for it.
    later.child.kill('SIGKILL')
    await later.done
    const unmanned = await deployment.run(['promote', 'book:1', ...FILES, '--force', 'a test', '--json'])
    expect([unmanned.code, JSON.parse(unmanned.stdout)]).toMatchObject([0, { version: 1, previous: 3, running: [], others: [] }])
    expect(unmanned.stderr).not.toContain('waiting for')
  })

  it('change over in a run of all stages as well, while its other stages go on', async () => {
    deployment = await Deployment.open()
    for (const [name, text] of [
      ['book.yaml', BOOK_1],
      ['book2.yaml', BOOK_2],
    ] as const)
      deployment.file(name, text)
    const files = FILES.slice(0, 4)
    const store = async (from: number): Promise<number[]> => {
      await deployment.read((runtime) => storePages(runtime, range(4, from)))
      await caughtUp(deployment)
      const records = (await deployment.records()).filter(({ value }) => Number(value.entityKey.slice(1)) >= from)
      return records.map(({ value }) => value.extractorVersion)
    }
    const live = deployment.start(['run', '--keep-running', ...files])
    expect(await store(0)).toEqual([1, 1, 1, 1])
    const workers = async (): Promise<{ stage: string; startedAt: number }[]> =>
      JSON.parse((await deployment.run(['status', '--json'])).stdout).workers
    const before = await workers()
    expect((await deployment.run(['promote', 'book:2', ...files])).stdout).toContain('book version 2 is promoted and run by 1 live worker')
    expect(await store(4)).toEqual([2, 2, 2, 2])
    const others = (list: { stage: string; startedAt: number }[]) =>
      list.filter(({ stage }) => stage !== 'extract').map(({ stage, startedAt }) => [stage, startedAt])
    expect(others(await workers())).toEqual(others(before))

    // A replay in place needs its version to the end: its worker would have to stop.
    const replay = ['replay', 'run', '--in-place', '--extractor', 'book2.yaml', '--rate', '0.05', '--id', 'r1']
    expect((await deployment.run(replay)).code).toBe(0)
    const early = await deployment.run(['promote', 'book:1', ...files])
    expect([early.code, early.stderr]).toEqual([2, expect.stringContaining('replay r1 of group')])
    expect((await deployment.run(['replay', 'cancel', 'r1'])).code).toBe(0)
    const back = await deployment.run(['promote', 'book:1', ...files])
    expect([back.code, back.stderr]).toMatchObject([0, expect.anything()])
    expect(await store(8)).toEqual([1, 1, 1, 1])

    live.child.kill('SIGTERM')
    expect((await live.done).code).toBe(143)
  })
})
