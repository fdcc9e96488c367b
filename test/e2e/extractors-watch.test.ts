import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { BOOK_1, BOOK_2, range, storePages } from '../support/stored-shop.ts'

/** Says that it works, and takes its time. */
const SLOW = `export default {
  name: 'slow', version: 1, schema: { type: 'record', name: 'Slow', fields: [] },
  extract() { console.log('at work'); for (let left = 2e9; left > 0; left -= 1); return [] },
}
`
let deployment: Deployment
beforeAll(async () => {
  deployment = await Deployment.open()
  deployment.file('slow.mjs', SLOW)
  deployment.file('page.html', '<h1>x</h1>')
  deployment.file('one.yaml', BOOK_1)
  deployment.file('two.yaml', BOOK_2)
  await deployment.read((runtime) => storePages(runtime, range(12)))
})
afterAll(() => deployment.close())

/** A partition with pages, and how many. */
const fullest = async (): Promise<{ readonly partition: number; readonly count: number }> => {
  const ends = await deployment.read(({ admin, topics }) => admin.endOffsets(topics.html, 'read_committed'))
  const [first] = [...ends].sort(([, a], [, b]) => Number(b - a))
  return { partition: first?.[0] ?? 0, count: Number(first?.[1] ?? 0n) }
}

describe('millrace extractors watch', () => {
  it('ends with 130 and without an error where Ctrl-C comes in the middle of a run', async () => {
    const watching = deployment.start(['extractors', 'watch', 'slow.mjs', 'page.html'])
    await eventually(() => watching.stderr().includes('at work'))
    watching.child.kill('SIGINT')
    const { code, stderr } = await watching.done
    expect([code, stderr]).toEqual([130, expect.not.stringMatching(/error|^ +at /im)])
  })

  it('shows what stored pages give at first, and what a save changes in it', async () => {
    const { partition, count } = await fullest()
    const place = `${deployment.prefix}html:${partition}:0..99999`
    deployment.file('book.yaml', BOOK_1)
    const watching = deployment.start(['extractors', 'watch', 'book.yaml', place, '--json'])
    const updates = (): unknown[] =>
      watching
        .stdout()
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as unknown)
    await eventually(() => updates().length === 1, { what: 'the first update' })
    expect(updates()[0]).toMatchObject({ kind: 'changes', pages: count, failures: 0, records: { before: 0, after: count } })
    deployment.file('book.yaml', BOOK_1.replace('title: h1', 'title: .sku'))
    await eventually(() => updates().length === 2, { what: 'the update of a save' })
    expect(updates()[1]).toMatchObject({ pages: count, records: { before: count, after: count }, fields: { title: count } })
    watching.child.kill('SIGINT')
    expect((await watching.done).code).toBe(130)
  })
})

describe('millrace extractors diff', () => {
  it.each(['99999', '99999999999'])('takes of 0..%s what the log holds', async (until) => {
    const { partition, count } = await fullest()
    const place = `${deployment.prefix}html:${partition}:0..${until}`
    const result = await deployment.run(['extractors', 'diff', 'one.yaml', 'two.yaml', place, '--json'])
    expect(JSON.parse(result.stdout)).toMatchObject({ pages: count, records: { before: count, after: count } })
  })

  it('says where a range holds no page, a partition is not there, or the pages are too many', async () => {
    const { partition, count } = await fullest()
    const diff = (...places: string[]) => deployment.run(['extractors', 'diff', 'one.yaml', 'two.yaml', ...places])
    const empty = await diff(`${partition}:${count}..${count + 10}`)
    expect([empty.code, empty.stderr]).toEqual([
      2,
      expect.stringContaining(`there is no page at ${deployment.prefix}html:${partition}:${count}..`),
    ])
    const nowhere = await diff('99:0..10')
    expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringMatching(/has no partition 99/)])
    const many = await diff(...Array.from({ length: 1_001 }, () => deployment.file('page.html', '<h1>a</h1>')))
    expect([many.code, many.stderr]).toEqual([2, expect.stringMatching(/more than 1,?000 pages.*`millrace replay preview --against`/)])
  })
})
