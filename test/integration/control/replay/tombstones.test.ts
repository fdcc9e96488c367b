import { afterAll, beforeAll, expect, it } from 'vitest'
import { planTombstones, type TombstonePlan, writeTombstones } from '../../../../src/control/replay/tombstones.ts'
import { announce } from '../../../../src/control/runtime/announce.ts'
import { subject } from '../../../../src/message/command.ts'
import { HEADER } from '../../../../src/message/header-names.ts'
import { committed, Deployment } from '../../../support/deployment.ts'
import { extractStored, storePages } from '../../../support/stored-shop.ts'

const KEY = 'book/B1'
let deployment: Deployment

beforeAll(async () => {
  deployment = await Deployment.open()
})
afterAll(() => deployment.close())

/** What lies on records after records were written while tombstones of KEY in these partitions were under way: by partition, in order. */
async function written(
  partitions: readonly number[],
  live: readonly { partition: number; text: string }[],
): Promise<{ report: Awaited<ReturnType<typeof writeTombstones>>; found: Record<number, (string | null)[]> }> {
  return deployment.read(async (runtime) => {
    const { admin, topics } = runtime
    const topic = topics.records
    const ends = await admin.endOffsets(topic, 'read_committed')
    const request = { replayId: 't', groupId: 'g', extractor: 'book', extractorVersion: 2, filter: {} }
    const plan: TombstonePlan = { replayId: 't', topic, keys: [KEY], ends, partitions: new Map([[KEY, new Set(partitions)]]), request }
    await (await runtime.producer()).send(
      live.map(({ partition, text }) => ({ topic, partition, key: KEY, value: Buffer.from(text), headers: { kept: 'yes' } })),
    )
    const report = await writeTombstones(runtime, plan)
    const found: Record<number, (string | null)[]> = {}
    for (const { partition, offset, value } of await committed(runtime, topic))
      if (offset >= (ends.get(partition) ?? 0n)) found[partition] = [...(found[partition] ?? []), value?.toString() ?? null]
    return { report, found }
  })
}

it('a record that live work wrote before its tombstone is written again behind it', async () => {
  const { report, found } = await written(
    [1],
    [
      { partition: 1, text: 'older' },
      { partition: 1, text: 'newer' },
    ],
  )
  expect(report).toEqual({ written: 1, restored: 1 })
  expect(found).toEqual({ 1: ['older', 'newer', null, 'newer'] })
})

it('so is one in the partition that its key has had since partitions were added', async () => {
  const { report, found } = await written([0, 1], [{ partition: 3, text: 'live' }])
  expect(report).toEqual({ written: 2, restored: 1 })
  expect(found).toEqual({ 0: [null], 1: [null], 3: ['live', 'live'] })
})

it('nothing is written again where live work has written nothing of the key', async () => {
  expect((await written([0, 3], [])).report).toEqual({ written: 2, restored: 0 })
})

it('none is planned where dead letters of the replay are gone: the keys of their pages are not left over', async () => {
  await deployment.read(async (runtime) => {
    const { html, deadLetters } = runtime.topics
    const request = { replayId: 'lost', groupId: 'g', extractor: 'book', extractorVersion: 2, filter: {} }
    const end = { doneOffsets: 9, totals: { pages: 9, records: 8, none: 0, deadLetters: 1 }, partitions: [] }
    const ended = { ranges: [{ partition: 0, from: '0', until: '9' }], end }
    await announce(runtime, { kind: 'close', subject: subject.replay('lost'), payload: { ...request, ...ended } })
    const letter = (replayId: string): Parameters<Awaited<ReturnType<typeof runtime.producer>>['send']>[0][number] => ({
      topic: deadLetters,
      partition: 0,
      key: null,
      value: Buffer.from('page'),
      headers: {
        [HEADER.extractor]: 'book:2',
        [HEADER.replay]: replayId,
        [HEADER.origTopic]: html,
        [HEADER.origPartition]: '0',
        [HEADER.origOffset]: '3',
      },
    })
    await (await runtime.producer()).send([letter('another')])
    await expect(planTombstones(runtime, 'lost')).rejects.toMatchObject({
      code: 'REPLAY_REFUSED',
      message: expect.stringContaining('has 0 of them left'),
    })
    await (await runtime.producer()).send([letter('lost')])
    expect((await planTombstones(runtime, 'lost')).keys).toEqual([])
  })
})

it('none is planned of a key that has a record which can not be read', async () => {
  await deployment.read((runtime) => storePages(runtime, [{ index: 2 }, { index: 3 }]))
  await extractStored(deployment)
  await deployment.read(async (runtime) => {
    const topic = runtime.topics.records
    const written = (await committed(runtime, topic)).filter(({ headers }) => HEADER.schema in headers)
    const request = { replayId: 'unread', groupId: 'g', extractor: 'book', extractorVersion: 2, filter: {} }
    const ranges = [0, 1, 2, 3].map((partition) => ({ partition, from: '0', until: '9' }))
    const ended = { ranges, end: { doneOffsets: 36, totals: { pages: 2, records: 0, none: 2, deadLetters: 0 }, partitions: [] } }
    await announce(runtime, { kind: 'close', subject: subject.replay('unread'), payload: { ...request, ...ended } })
    const keys = written.map(({ key }) => key?.toString() ?? '')
    expect((await planTombstones(runtime, 'unread')).keys).toEqual([...keys].sort())
    const [kept = '', left] = keys
    const headers = { [HEADER.schema]: 'io.millrace.records.Book:0000000000000007' }
    const value = Buffer.from('c30107000000000000000000', 'hex')
    await (await runtime.producer()).send([{ topic, partition: written[0]?.partition ?? 0, key: kept, value, headers }])
    expect((await planTombstones(runtime, 'unread')).keys).toEqual([left])
  })
})
