import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Millrace } from '../../../src/index.ts'
import { committed, Deployment } from '../../support/deployment.ts'
import { brokers, uniqueName } from '../../support/services.ts'
import { BOOK_1, range, storePages } from '../../support/stored-shop.ts'

const PAGES = 12
let deployment: Deployment
let book: string

const open = (): Millrace =>
  new Millrace({
    brokers: brokers(),
    data: deployment.dataDir,
    extractors: [book],
    'topics.prefix': deployment.prefix,
    'topics.partitions.urls': '4',
  })

beforeAll(async () => {
  deployment = await Deployment.open()
  book = deployment.file('book.yaml', BOOK_1)
  await deployment.read((runtime) => storePages(runtime, range(PAGES)))
  const first = open()
  await first.run()
  await first.stop()
}, 120_000)
afterAll(() => deployment.close())

/** Ids of the next records of a group, each committed. */
async function take(groupId: string, count: number): Promise<string[]> {
  const ids: string[] = []
  const millrace = open()
  for await (const { record, commit } of millrace.consumeRecords({ groupId })) {
    // Of no class, so that strict equality takes it.
    expect(record).toStrictEqual({ ...record })
    ids.push(record.recordId)
    commit()
    if (ids.length === count) break
  }
  await millrace.stop()
  return ids
}

const members = (groupId: string): Promise<number> =>
  deployment.read(async ({ admin }) => (await admin.describeGroup(groupId)).members.length)

describe('the loop over records', () => {
  it('gives a sink a large batch before it commits any of it', { timeout: 60_000 }, async () => {
    const topic = `${deployment.prefix}records.batch`
    const count = 2_500
    await deployment.read(async (runtime) => {
      const [record] = await committed(runtime, runtime.topics.records)
      if (record === undefined) throw new Error('there are no records')
      const [definition] = runtime.wantedTopics([topic]).filter((wanted) => wanted.topic === topic)
      if (definition === undefined) throw new Error(`no definition of ${topic}`)
      await runtime.admin.createTopics([{ ...definition, partitions: 1 }])
      const copies = Array.from({ length: count }, () => ({ ...record, topic, partition: 0, key: record.key?.toString() ?? null }))
      await (await runtime.producer()).send(copies)
    })
    const millrace = open()
    const commits: (() => void)[] = []
    for await (const { commit } of millrace.consumeRecords({ groupId: uniqueName('sink'), topic })) {
      commits.push(commit)
      if (commits.length === count) break
    }
    for (const commit of commits) commit()
    await millrace.stop()
    expect(commits).toHaveLength(count)
  })

  it('ends at a record whose schema it does not know, and commits nothing of it', async () => {
    const topic = `${deployment.prefix}records.unknown`
    const groupId = uniqueName('sink')
    await deployment.read(async (runtime) => {
      const [record] = await committed(runtime, runtime.topics.records)
      const [definition] = runtime.wantedTopics([topic]).filter((wanted) => wanted.topic === topic)
      if (record === undefined || definition === undefined) throw new Error('there are no records')
      await runtime.admin.createTopics([{ ...definition, partitions: 1 }])
      const headers = { 'millrace-schema': 'io.millrace.records.Gone:0000000000000007' }
      const unknown = { topic, partition: 0, key: 'gone/1', value: Buffer.from('c30107000000000000000000', 'hex') }
      await (await runtime.producer()).send([unknown, { ...unknown, headers }])
    })
    const millrace = open()
    await expect(millrace.consumeRecords({ groupId, topic }).next()).rejects.toMatchObject({ code: 'MESSAGE_SCHEMA_UNKNOWN' })
    await millrace.stop()
    const committedTo = await deployment.read(async ({ admin }) => [...(await admin.committedOffsets(groupId, [topic])).values()])
    // The first names no schema of ours: it is somebody else's.
    expect(committedTo).toMatchObject([{ offset: 1n }])
  })

  it('gives tombstones to who asks for them, with the key of their record and in their place', { timeout: 60_000 }, async () => {
    const topic = `${deployment.prefix}records.deleted`
    const key = await deployment.read(async (runtime) => {
      const [record] = await committed(runtime, runtime.topics.records)
      const [definition] = runtime.wantedTopics([topic]).filter((wanted) => wanted.topic === topic)
      if (record === undefined || definition === undefined) throw new Error('there are no records')
      await runtime.admin.createTopics([{ ...definition, partitions: 1 }])
      const copy = { ...record, topic, partition: 0, key: record.key?.toString() ?? null }
      await (await runtime.producer()).send([copy, { ...copy, value: null }, { ...copy, key: null, value: null }, copy])
      return copy.key
    })
    const read = async (tombstones: boolean, count: number): Promise<[string, string | undefined][]> => {
      const found: [string, string | undefined][] = []
      const millrace = open()
      for await (const item of millrace.consumeRecords({ groupId: uniqueName('sink'), topic, tombstones })) {
        found.push([item.key, item.record?.extractor])
        item.commit()
        if (found.length === count) break
      }
      await millrace.stop()
      return found
    }
    expect(await read(false, 2)).toEqual([
      [key, 'book'],
      [key, 'book'],
    ])
    expect(await read(true, 3)).toEqual([
      [key, 'book'],
      [key, undefined],
      [key, 'book'],
    ])
  })

  it('goes on behind a batch of very many messages that are no records', { timeout: 120_000 }, async () => {
    const topic = `${deployment.prefix}records.foreign`
    await deployment.read(async (runtime) => {
      const [record] = await committed(runtime, runtime.topics.records)
      const [definition] = runtime.wantedTopics([topic]).filter((wanted) => wanted.topic === topic)
      if (record === undefined || definition === undefined) throw new Error('there are no records')
      await runtime.admin.createTopics([{ ...definition, partitions: 1 }])
      const foreign = runtime.client.kafka.producer()
      await foreign.connect()
      const messages = Array.from({ length: 150_000 }, () => ({ partition: 0, value: 'x' }))
      await foreign.send({ topic, compression: runtime.client.kafkajs.CompressionTypes.GZIP, messages })
      await foreign.disconnect()
      await (await runtime.producer()).send([{ ...record, topic, partition: 0, key: record.key?.toString() ?? null }])
    })
    const millrace = open()
    const offsets: bigint[] = []
    for await (const { offset, commit } of millrace.consumeRecords({ groupId: uniqueName('sink'), topic })) {
      offsets.push(offset)
      commit()
      break
    }
    await millrace.stop()
    expect(offsets).toEqual([150_000n])
  })
})

describe('stop', () => {
  it('returns within the loop over records, with what was committed stored', { timeout: 20_000 }, async () => {
    const groupId = uniqueName('sink')
    const seen: string[] = []
    const millrace = open()
    for await (const { record, commit } of millrace.consumeRecords({ groupId })) {
      seen.push(record.recordId)
      commit()
      if (seen.length === 3) await millrace.stop()
    }
    expect(seen).toHaveLength(3)
    expect(await members(groupId)).toBe(0)
    const rest = await take(groupId, PAGES - 3)
    expect(new Set([...seen, ...rest]).size).toBe(PAGES)
  })

  it('returns where a reader was left without a word, and its record comes again', { timeout: 20_000 }, async () => {
    const groupId = uniqueName('sink')
    const millrace = open()
    const records = millrace.consumeRecords({ groupId })
    const first = await records.next()
    await millrace.stop()
    expect(await members(groupId)).toBe(0)
    expect((await records.next()).done).toBe(true)
    expect(await take(groupId, PAGES)).toContain(first.done === true ? undefined : first.value.record.recordId)
  })

  it('ends a loop whose consumer still joins, and so does its signal', { timeout: 20_000 }, async () => {
    const millrace = open()
    const gone = new AbortController()
    const signalled = millrace.consumeRecords({ groupId: uniqueName('sink'), signal: gone.signal }).next()
    gone.abort()
    expect((await signalled).done).toBe(true)
    const first = millrace.consumeRecords({ groupId: uniqueName('sink') }).next()
    await millrace.stop()
    expect((await first).done).toBe(true)
  })

  it('waits for the record that its reader has in hand, and takes its commit', { timeout: 20_000 }, async () => {
    const groupId = uniqueName('sink')
    const millrace = open()
    const records = millrace.consumeRecords({ groupId })
    const { value } = await records.next()
    const stopped = millrace.stop()
    // Its own connection: the reader's sink takes a moment.
    await members(groupId)
    value?.commit()
    await stopped
    expect(await take(groupId, PAGES - 1)).not.toContain(value?.record.recordId)
  })

  it('lets produce write what it has read, and ends one whose input does not', { timeout: 20_000 }, async () => {
    const millrace = open()
    let given = 0
    let onStopped: Promise<void> | undefined
    async function* urls(): AsyncGenerator<string> {
      for (;;) {
        given += 1
        yield `http://endless.example/${given}`
        if (given === 700) onStopped = millrace.stop()
        if (given % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
    }
    const report = await millrace.produce(urls())
    await onStopped
    expect(report.interrupted).toBe(true)
    expect(report.produced).toBeGreaterThan(0)
    const written = await deployment.read((runtime) => committed(runtime, runtime.topics.urls.normal))
    expect(written).toHaveLength(report.produced)
  })
})
