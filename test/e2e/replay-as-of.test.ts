import { afterAll, expect, it } from 'vitest'
import { lines } from '../support/cli.ts'
import { Deployment } from '../support/deployment.ts'
import { BOOK_2, range, storePages } from '../support/stored-shop.ts'

let deployment: Deployment

afterAll(() => deployment.close())

const DAY = 86_400_000

it('the records of a past day are those of the pages fetched on it, wherever they lie, as the extractor of today reads them', async () => {
  deployment = await Deployment.open()
  deployment.file('book2.yaml', BOOK_2)
  const day = Math.floor(Date.now() / DAY - 3) * DAY
  const pages = range(30).map((page) => ({ ...page, fetchedAt: day + (page.index - 10) * (DAY / 10) }))
  // Two pages of the day were written late, behind those of the next one.
  const late = [5, 6].map((index) => ({ index: 100 + index, fetchedAt: day + DAY - 60_000 * index }))
  await deployment.read((runtime) => storePages(runtime, [...pages, ...late]))
  const [from, until] = [day, day + DAY].map((at) => new Date(at).toISOString())
  const scope = ['--extractor', 'book2.yaml', '--fetched-from', from ?? '', '--fetched-until', until ?? '']
  const done = await deployment.run(['replay', 'run', '--shadow', '--id', 'day', ...scope, '--json'])
  expect(done.code).toBe(0)
  const records = lines<{ value: { entityKey: string; recordId: string; source: { partition: number; offset: string } } }>(
    await deployment.run(['consume', 'records.shadow.day', '--from-beginning']),
  )
  const expected = [...pages, ...late].filter(({ fetchedAt }) => fetchedAt >= day && fetchedAt < day + DAY).map(({ index }) => `B${index}`)
  expect(expected.length).toBe(12)
  // A page may lie on html twice, where its producer had to send it again: each gives a record, of the same id.
  const places = records.map(({ value: { source } }) => `${source.partition}:${source.offset}`)
  expect(new Set(places).size).toBe(places.length)
  expect(new Set(records.map(({ value }) => value.recordId)).size).toBe(expected.length)
  expect([...new Set(records.map(({ value }) => value.entityKey))].sort()).toEqual(expected.sort())
  // Not the whole log was read for it.
  const plan = JSON.parse((await deployment.run(['replay', 'plan', ...scope, '--json'])).stdout) as { offsets: string }
  expect(Number(plan.offsets)).toBeLessThan((await deployment.pages()).length)
})
