import { afterEach, describe, expect, it } from 'vitest'
import { planTombstones } from '../../src/control/replay/tombstones.ts'
import { partitionFor } from '../../src/url/partition.ts'
import { committed, Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { BOOK_1, bookHtml, caughtUp, range, storePages } from '../support/stored-shop.ts'

const PAGES = 20
let deployment: Deployment

afterEach(() => deployment.close())

/** What compaction leaves of the topic of records: the last message of every key in each partition. Shape: keys with their partitions. */
async function compactedPlaces(): Promise<Map<string, number[]>> {
  const last = new Map<string, { key: string; partition: number; isThere: boolean }>()
  for (const { key, partition, value } of await deployment.read((runtime) => committed(runtime, runtime.topics.records)))
    last.set(`${partition} ${key?.toString()}`, { key: key?.toString() ?? '', partition, isThere: value !== null })
  const places = new Map<string, number[]>()
  for (const { key, partition, isThere } of last.values()) if (isThere) places.set(key, [...(places.get(key) ?? []), partition].sort())
  return places
}

const compacted = async (): Promise<string[]> => [...(await compactedPlaces()).keys()].sort()

const keys = (numbers: readonly number[]): string[] => numbers.map((index) => `book/B${index}`).sort()
const all = Array.from({ length: PAGES }, (_, index) => index)

describe('tombstones of a replay', () => {
  it('delete the keys that nothing gives any more, and no key that another page still gives', { timeout: 300_000 }, async () => {
    deployment = await Deployment.open()
    deployment.file('book.yaml', BOOK_1)
    // Version 2 reads the odd host alone.
    deployment.file('book2.yaml', `${BOOK_1.replace('version: 1', 'version: 2')}match: { hosts: [odd.shop-books.com] }\n`)
    // Book 2 lies on both hosts, book 12 was met by another crawl than the one that is replayed.
    const pages = [...range(PAGES), { index: 101, html: bookHtml(2) }].map((page) => ({
      ...page,
      change: { crawlId: page.index === 12 ? 'other' : 'shop' },
    }))
    await deployment.read((runtime) => storePages(runtime, pages))
    const first = deployment.start(['extract', '--extractor', 'book.yaml'])
    await caughtUp(deployment)
    first.child.kill('SIGTERM')
    await first.done
    expect(await compacted()).toEqual(keys(all))
    const second = deployment.start(['extract', '--extractor', 'book2.yaml'])
    await eventually(() => second.stderr().includes('extract is running'), { what: 'the extract stage' })
    const run = [
      'replay',
      'run',
      '--in-place',
      '--wait',
      '--extractor',
      'book2.yaml',
      '--crawl',
      'shop',
      '--id',
      't',
      '--force',
      'the even host is sold',
      '--json',
    ]
    expect((await deployment.run(run)).code).toBe(0)
    const told = await deployment.run(['replay', 'tombstones', 't', '--json'])
    const gone = all.filter((index) => index % 2 === 0 && index !== 2 && index !== 12)
    // A topic that is too long to hold its keys is read in parts.
    expect((await deployment.read((runtime) => planTombstones(runtime, 't', { messagesAtOnce: 7 }))).keys).toEqual(keys(gone))
    expect(JSON.parse(told.stdout)).toMatchObject({ keys: keys(gone), written: 0 })
    expect(await compacted()).toEqual(keys(all))
    const done = await deployment.run(['replay', 'tombstones', 't', '--execute', '--json'])
    expect(JSON.parse(done.stdout)).toMatchObject({ written: gone.length, restored: 0 })
    expect(await compacted()).toEqual(keys(all.filter((index) => !gone.includes(index))))
    const again = await deployment.run(['replay', 'tombstones', 't', '--json'])
    expect(JSON.parse(again.stdout)).toMatchObject({ keys: [] })

    // The way back is the old definition under a higher version: its records are none that the replay before has left.
    deployment.file('book3.yaml', BOOK_1.replace('version: 1', 'version: 3'))
    second.child.kill('SIGTERM')
    await second.done
    const third = deployment.start(['extract', '--extractor', 'book3.yaml'])
    await eventually(() => third.stderr().includes('extract is running'), { what: 'the extract stage' })
    const back = ['replay', 'run', '--in-place', '--wait', '--extractor', 'book3.yaml', '--id', 'u', '--json']
    expect((await deployment.run(back)).code).toBe(0)
    expect(await compacted()).toEqual(keys(all))
    expect(JSON.parse((await deployment.run(['replay', 'tombstones', 't', '--json'])).stdout)).toMatchObject({ keys: [] })
  })

  it('delete what lies in the partitions of before, when partitions were added meanwhile', async () => {
    deployment = await Deployment.open({ set: ['topics.partitions.records=2'] })
    deployment.file('book.yaml', BOOK_1)
    deployment.file('book2.yaml', `${BOOK_1.replace('version: 1', 'version: 2')}match: { hosts: [odd.shop-books.com] }\n`)
    await deployment.read((runtime) => storePages(runtime, range(PAGES)))
    const first = deployment.start(['extract', '--extractor', 'book.yaml'])
    await caughtUp(deployment)
    expect((await deployment.run(['topics', 'apply'], undefined, ['topics.partitions.records=5'])).code).toBe(0)
    // Extraction goes by the layout while it runs, from when it hears of it.
    const moving = keys(all.slice(0, PAGES / 2)).find((key) => partitionFor(key, 2) !== partitionFor(key, 5)) ?? ''
    await eventually(
      async () => {
        const number = Number(moving.slice('book/B'.length))
        await deployment.read((runtime) => storePages(runtime, [{ index: number, fetchedAt: Date.now() }]))
        await caughtUp(deployment)
        return (await compactedPlaces()).get(moving)?.includes(partitionFor(moving, 5)) === true
      },
      { what: 'records to go to the new partitions', everyMs: 500 },
    )
    const again = range(PAGES / 2).map((page) => ({ ...page, fetchedAt: Date.now() + page.index }))
    await deployment.read((runtime) => storePages(runtime, again))
    await caughtUp(deployment)
    first.child.kill('SIGTERM')
    await first.done
    const before = await compactedPlaces()
    for (const key of keys(all)) {
      const isAgain = Number(key.slice('book/B'.length)) < PAGES / 2
      const places = new Set([partitionFor(key, 2), ...(isAgain ? [partitionFor(key, 5)] : [])])
      expect(before.get(key), key).toEqual([...places].sort())
    }
    const second = deployment.start(['extract', '--extractor', 'book2.yaml'])
    await eventually(() => second.stderr().includes('extract is running'), { what: 'the extract stage' })
    const run = ['replay', 'run', '--in-place', '--wait', '--extractor', 'book2.yaml', '--id', 't', '--force', 'sold', '--json']
    expect((await deployment.run(run)).code).toBe(0)
    const gone = keys(all.filter((index) => index % 2 === 0))
    const places = gone.flatMap((key) => before.get(key) ?? [])
    expect(places.length).toBeGreaterThan(gone.length)
    const done = await deployment.run(['replay', 'tombstones', 't', '--execute', '--json'])
    expect(JSON.parse(done.stdout)).toMatchObject({ keys: gone, written: places.length, restored: 0 })
    expect(await compacted()).toEqual(keys(all.filter((index) => index % 2 === 1)))
    expect(JSON.parse((await deployment.run(['replay', 'tombstones', 't', '--json'])).stdout)).toMatchObject({ keys: [] })
  })
})
