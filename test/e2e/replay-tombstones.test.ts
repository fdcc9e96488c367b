import { afterAll, describe, expect, it } from 'vitest'
import { planTombstones } from '../../src/control/tombstones.ts'
import { committed, Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { BOOK_1, bookHtml, caughtUp, range, storePages } from '../support/stored-shop.ts'

const PAGES = 20
let deployment: Deployment

afterAll(() => deployment.close())

/** What compaction leaves of the topic of records: the last message of every key. */
async function compacted(): Promise<string[]> {
  const last = new Map<string, boolean>()
  for (const { key, value } of await deployment.read((runtime) => committed(runtime, runtime.topics.records)))
    last.set(key?.toString() ?? '', value !== null)
  return [...last]
    .filter(([, isThere]) => isThere)
    .map(([key]) => key)
    .sort()
}

const keys = (numbers: readonly number[]): string[] => numbers.map((index) => `book/B${index}`).sort()
const all = Array.from({ length: PAGES }, (_, index) => index)

describe('tombstones of a replay', () => {
  it('delete the keys that nothing gives any more, and no key that another page still gives', { timeout: 180_000 }, async () => {
    deployment = await Deployment.open()
    deployment.file('book.yaml', BOOK_1)
    // Version 2 reads the odd host alone.
    deployment.file('book2.yaml', `${BOOK_1.replace('version: 1', 'version: 2')}match: { hosts: [odd.shop-books.com] }\n`)
    // Book 2 lies on both hosts.
    await deployment.read((runtime) => storePages(runtime, [...range(PAGES), { index: 101, html: bookHtml(2) }]))
    const first = deployment.start(['extract', '--extractor', 'book.yaml'])
    await caughtUp(deployment)
    first.child.kill('SIGTERM')
    await first.done
    expect(await compacted()).toEqual(keys(all))
    const second = deployment.start(['extract', '--extractor', 'book2.yaml'])
    await eventually(() => second.stderr().includes('extract is running'), { what: 'the extract stage', timeoutMs: 40_000 })
    const run = [
      'replay',
      'run',
      '--in-place',
      '--wait',
      '--extractor',
      'book2.yaml',
      '--id',
      't',
      '--force',
      'the even host is sold',
      '--json',
    ]
    expect((await deployment.run(run)).code).toBe(0)
    const told = await deployment.run(['replay', 'tombstones', 't', '--json'])
    const gone = all.filter((index) => index % 2 === 0 && index !== 2)
    // A topic that is too long to hold its keys is read in parts.
    expect((await deployment.read((runtime) => planTombstones(runtime, 't', 7))).keys).toEqual(keys(gone))
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
    await eventually(() => third.stderr().includes('extract is running'), { what: 'the extract stage', timeoutMs: 40_000 })
    const back = ['replay', 'run', '--in-place', '--wait', '--extractor', 'book3.yaml', '--id', 'u', '--json']
    expect((await deployment.run(back)).code).toBe(0)
    expect(await compacted()).toEqual(keys(all))
    expect(JSON.parse((await deployment.run(['replay', 'tombstones', 't', '--json'])).stdout)).toMatchObject({ keys: [] })
  })
})
