import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { followReplay } from '../../../../src/control/replay/replay-in-place.ts'
import { replayStatus } from '../../../../src/control/replay/replay-status.ts'
import { runBeside, runInPlace } from '../../../../src/control/replay/run-replay.ts'
import { planTombstones } from '../../../../src/control/replay/tombstones.ts'
import { loadDefinition } from '../../../../src/extract/load-extractors.ts'
import { Deployment } from '../../../support/deployment.ts'
import { eventually } from '../../../support/eventually.ts'
import { BOOK_1, caughtUp, range, storePages } from '../../../support/stored-shop.ts'

const PAGES = 12
const never = new AbortController().signal
/** As version 1, on the pages of the odd host alone. */
const ODD = `${BOOK_1.replace('version: 1', 'version: 2')}match: { hosts: [odd.shop-books.com] }\n`
const scope = { start: { kind: 'earliest' }, filter: {} } as const

let deployment: Deployment
/** Of the pages that retention has deleted: partition and offset as text. */
let gone: ReadonlySet<string>

/** Pages and their records of version 1, and nobody at work. */
beforeEach(async () => {
  deployment = await Deployment.open()
  deployment.file('book.yaml', BOOK_1)
  deployment.file('odd.yaml', ODD)
  await deployment.read((runtime) => storePages(runtime, range(PAGES)))
  const first = deployment.start(['extract', '--extractor', 'book.yaml'])
  await caughtUp(deployment)
  first.child.kill('SIGTERM')
  await first.done
})
afterEach(() => deployment.close())

/** Retention deletes the first two pages of each partition that has as many. Shape: how many they are. */
async function overtake(): Promise<number> {
  return deployment.read(async ({ admin, topics }) => {
    const ends = await admin.endOffsets(topics.html, 'read_uncommitted')
    const lows = new Map([...ends].filter(([, end]) => end >= 2n).map(([partition]) => [partition, 2n]))
    await admin.deleteRecordsBefore(topics.html, lows)
    await eventually(async () => {
      const earliest = await admin.earliestOffsets(topics.html)
      return [...lows].every(([partition, low]) => earliest.get(partition) === low)
    })
    gone = new Set([...lows.keys()].flatMap((partition) => [`${partition}/0`, `${partition}/1`]))
    return gone.size
  })
}

/** Pages with records of version 1 on the even host that are still there: what version 2 gives no longer. */
async function dropped(): Promise<string[]> {
  const records = (await deployment.records()).map(({ value }) => value)
  return records
    .filter(({ url, source }) => url.includes('even.') && !gone.has(`${source.partition}/${source.offset}`))
    .map(({ extractor, entityKey }) => `${extractor}/${entityKey}`)
    .sort()
}

describe('pages that retention deletes before a replay reads them', () => {
  it('are told of a shadow, and are not taken for pages that give no record any more', async () => {
    const report = await deployment.read(async (runtime) => {
      const extractor = loadDefinition('odd.yaml', ODD)
      const rest = { group: undefined, out: undefined, drainTimeoutMs: 10_000, draining: never, aborting: never }
      // The range is agreed upon, and its first pages go before anybody reads.
      const stop = new AbortController()
      stop.abort()
      const begun = { replayId: 's', extractor, scope, rate: undefined, expect: undefined, ...rest }
      expect(await runBeside(runtime, { ...begun, draining: stop.signal })).toMatchObject({ report: { interrupted: true } })
      await overtake()
      return runBeside(runtime, begun)
    })
    const removed = (await dropped()).length
    expect(report.report).toMatchObject({ gone: gone.size, pages: BigInt(PAGES - gone.size - removed), interrupted: false })
    expect(report.comparison?.records).toMatchObject({ removed })
    // From `control`: its group is deleted.
    expect(await deployment.read((runtime) => replayStatus(runtime, 's'))).toMatchObject({ state: 'done', gone: gone.size })
  })

  it('keep their records where a replay in place deletes those that nothing gives any more', async () => {
    await deployment.read(async (runtime) => {
      const extractor = loadDefinition('odd.yaml', ODD)
      const request = { replayId: 'p', extractor, scope, group: undefined, rate: undefined, expect: undefined }
      await runInPlace(runtime, { ...request, force: 'the even host is sold', signal: never })
    })
    await overtake()
    const second = deployment.start(['extract', '--extractor', 'odd.yaml'])
    const [status, plan] = await deployment.read(async (runtime) => [
      await followReplay(runtime, 'p', { until: 'done', signal: never }),
      await planTombstones(runtime, 'p'),
    ])
    second.child.kill('SIGTERM')
    await second.done
    expect(status).toMatchObject({ state: 'done', gone: gone.size })
    expect(plan.keys).toEqual(await dropped())
  })
})
