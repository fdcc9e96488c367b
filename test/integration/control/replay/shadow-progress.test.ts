import { afterEach, expect, it } from 'vitest'
import { statusText } from '../../../../src/cli/replay-status.ts'
import { describeTopics } from '../../../../src/control/inspect/describe-topics.ts'
import { replayStatus } from '../../../../src/control/replay/replay-status.ts'
import { type ReplayProgress, runShadow, type ShadowOptions, type ShadowReport } from '../../../../src/control/replay/shadow-replay.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { planRange } from '../../../../src/control/trials/plan-range.ts'
import { loadDefinition } from '../../../../src/extract/load-extractors.ts'
import { pageMessage } from '../../../../src/fetch/page-message.ts'
import { createPartitionTransactions } from '../../../../src/kafka/transactional.ts'
import { Deployment } from '../../../support/deployment.ts'
import { eventually } from '../../../support/eventually.ts'
import { BOOK_2, range, storePages } from '../../../support/stored-shop.ts'

const PAGES = 16
let deployment: Deployment

afterEach(() => deployment.close())

async function shadow(
  runtime: Runtime,
  rate: number | undefined,
  told: Pick<ShadowOptions, 'onProgress' | 'onWaiting'>,
): Promise<ShadowReport> {
  const never = new AbortController().signal
  const plan = await planRange(runtime, runtime.groups.extract(), { start: { kind: 'earliest' }, filter: {} }, false)
  const extractor = loadDefinition('book.yaml', BOOK_2)
  const rest = { filter: {}, plan, rate, out: undefined, drainTimeoutMs: 10_000, draining: never, aborting: never }
  return runShadow(runtime, { replayId: 's', extractor, ...rest, ...told })
}

it('a shadow tells how long it will still take, and whoever joins it that the pages are shared', async () => {
  deployment = await Deployment.open()
  await deployment.read((runtime) => storePages(runtime, range(PAGES)))
  const seen: ReplayProgress[] = []
  const waiting: string[][] = [[], []]
  const first = deployment.read((runtime) =>
    shadow(runtime, 1, { onProgress: (progress) => void seen.push(progress), onWaiting: (text) => void waiting[0]?.push(text) }),
  )
  await eventually(() => seen.some(({ done, offsets }) => done > 0n && done < offsets), { what: 'the first page' })
  const second = deployment.read((runtime) => shadow(runtime, undefined, { onWaiting: (text) => void waiting[1]?.push(text) }))
  const reports = await Promise.all([first, second])
  expect(reports.map(({ interrupted, pages }) => [interrupted, pages])).toEqual([
    [false, BigInt(PAGES)],
    [false, BigInt(PAGES)],
  ])
  expect(waiting).toEqual([[], [expect.stringMatching(/^1 other member is in group .*replay\.s: the pages are shared with them/)]])
  // Nobody knows before the first pages are done; at the end nothing is left.
  for (const { done, remainingMs } of seen) if (done === 0n) expect(remainingMs).toBeUndefined()
  const told = seen.filter(({ done, offsets, remainingMs }) => done > 0n && done < offsets && remainingMs !== undefined)
  expect(told.length).toBeGreaterThan(0)
  expect(told.some(({ remainingMs }) => (remainingMs ?? 0) > 0)).toBe(true)
  expect(seen.at(-1)).toMatchObject({ done: BigInt(PAGES), remainingMs: 0 })
  expect(reports.map(({ resumed }) => resumed)).toEqual([false, true])
  // Its group is gone, and with it the offsets.
  const { members, partitions } = await deployment.read((runtime) => replayStatus(runtime, 's'))
  expect(members).toBeUndefined()
  expect(partitions.length).toBeGreaterThan(0)
  for (const { phase, until, position } of partitions) expect([phase, position]).toEqual(['done', until])
})

it('a replay counts pages by what was read, and offsets as offsets where transactions have theirs', async () => {
  deployment = await Deployment.open()
  await deployment.read(async (runtime) => {
    const { client, clock, observer, topics } = runtime
    await storePages(runtime, range(PAGES))
    const [page] = await deployment.pages()
    if (page === undefined) throw new Error('no page was stored')
    const layout = await runtime.layout()
    const message = pageMessage(page.value, { codec: runtime.codec, layout: () => layout(), topics })
    const transactions = createPartitionTransactions({
      client,
      groupId: 'elsewhere',
      topic: topics.deadLetters,
      partition: 0,
      clock,
      observer,
    })
    await transactions.fence()
    await transactions.commit([message], 0n, '')
    await transactions.close()
    // Until its marks are seen the copy is not.
    const total = async (): Promise<bigint> =>
      [...(await runtime.admin.endOffsets(topics.html, 'read_committed')).values()].reduce((sum, end) => sum + end, 0n)
    await eventually(async () => (await total()) === BigInt(PAGES + 2), { what: 'the mark of the transaction' })
  })
  const seen: ReplayProgress[] = []
  const report = await deployment.read((runtime) => shadow(runtime, undefined, { onProgress: (progress) => void seen.push(progress) }))
  // The copy, and the end of its transaction.
  const offsets = PAGES + 2
  expect(report).toMatchObject({ pages: BigInt(PAGES + 1), records: PAGES + 1 })
  expect(seen.at(-1)).toMatchObject({ done: BigInt(offsets), offsets: BigInt(offsets), read: PAGES + 1 })
  const text = statusText(await deployment.read((runtime) => replayStatus(runtime, 's')))
  expect(text).toContain(`: done, ${offsets} of ${offsets} offsets\n${PAGES + 1} pages read, ${PAGES + 1} records, `)
  const described = await deployment.read((runtime) => describeTopics(runtime))
  expect(described.find(({ topic }) => topic.endsWith('html'))).toMatchObject({ offsets: BigInt(offsets) })
})
