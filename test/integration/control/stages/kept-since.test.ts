import { afterAll, beforeAll, expect, it } from 'vitest'
import { createKeptSince } from '../../../../src/control/stages/kept-since.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { Deployment } from '../../../support/deployment.ts'
import { eventually } from '../../../support/eventually.ts'
import { ManualClock } from '../../../support/manual-clock.ts'
import { range, storePages } from '../../../support/stored-shop.ts'

const PAGES = 12
/** Not long ago: retention goes by the time of a page, and a broker looks every few minutes. */
const BEGIN = Date.now() - 60_000
let deployment: Deployment

beforeAll(async () => {
  deployment = await Deployment.open()
  await deployment.read((runtime) =>
    storePages(
      runtime,
      range(PAGES).map((page) => ({ ...page, fetchedAt: BEGIN + 1_000 * page.index })),
    ),
  )
})
afterAll(() => deployment.close())

it('html reaches back to the oldest page where those of a URL lie, and is looked at again after a minute', async () => {
  const pages = (await deployment.pages()).map(({ message, value }) => ({ ...message, ...value }))
  const inOrder = (partition: number) => pages.filter((page) => page.partition === partition).sort((a, b) => Number(a.offset - b.offset))
  const [oldest, next] = [0, 1, 2, 3].map(inOrder).find((found) => found.length > 1) ?? []
  if (oldest === undefined || next === undefined) throw new Error('every page lies in a partition of its own')
  await deployment.read(async (runtime) => {
    const { admin } = runtime
    const { html } = runtime.topics
    const clock = new ManualClock()
    const keptSince = createKeptSince({ admin, topic: html, layout: await runtime.layout(), clock, observer: silentObserver })
    expect(await keptSince(oldest.canonicalUrl)).toBe(0)
    await admin.deleteRecordsBefore(html, new Map([[oldest.partition, next.offset]]))
    await eventually(async () => (await admin.earliestOffsets(html)).get(oldest.partition) === next.offset, { what: 'the deletion' })
    expect(await keptSince(oldest.canonicalUrl)).toBe(0)
    await clock.advance(60_000)
    expect(await keptSince(oldest.canonicalUrl)).toBe(next.fetchedAt)
    expect(await keptSince(next.canonicalUrl)).toBe(next.fetchedAt)
  })
})

it('how far back it reaches is not known, and said, where the topic can not be read', async () => {
  const told: string[] = []
  await deployment.read(async (runtime) => {
    const admin = { session: runtime.admin.session, earliestOffsets: () => Promise.reject(new Error('away')) }
    const observer = { ...silentObserver, emit: (name: string) => void told.push(name) }
    const layout = await runtime.layout()
    const keptSince = createKeptSince({ admin, topic: runtime.topics.html, layout, clock: new ManualClock(), observer })
    expect(await keptSince('http://a.example/')).toBe(Number.POSITIVE_INFINITY)
  })
  expect(told).toEqual(['KeptSinceUnknown'])
})
