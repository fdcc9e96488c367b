import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { registerCodecs } from '../../../../src/kafka/codecs.ts'
import { type BatchMessage, encodeBatch } from '../../../../src/kafka/encode-batch.ts'
import { patchAbortedMessages } from '../../../../src/kafka/patches/aborted-messages.ts'
import { patchCoordinatorFailure } from '../../../../src/kafka/patches/coordinator-failure.ts'
import { patchIdleTimers } from '../../../../src/kafka/patches/idle-timers.ts'
import type { KafkajsModules } from '../../../../src/kafka/patches/kafkajs-modules.ts'
import { loadKafkajs } from '../../../../src/kafka/patches/load-kafkajs.ts'
import { patchMessageDecoding } from '../../../../src/kafka/patches/message-decoding.ts'
import { patchMessageGrouping } from '../../../../src/kafka/patches/message-grouping.ts'
import { patchOfflinePartition } from '../../../../src/kafka/patches/offline-partition.ts'
import { patchOutOfRange } from '../../../../src/kafka/patches/out-of-range.ts'
import { patchSilentCommit } from '../../../../src/kafka/patches/silent-commit.ts'
import { patchStaleBatch } from '../../../../src/kafka/patches/stale-batch.ts'
import { patchUnknownPartition } from '../../../../src/kafka/patches/unknown-partition.ts'
import { withFreshKafkajs } from '../../../support/stock-kafkajs.ts'

/** What `load` gives in a stock copy and in one with this patch alone. */
function stockAndPatched<T>(patch: (modules: KafkajsModules) => void, load: (modules: KafkajsModules) => T): { stock: T; patched: T } {
  return {
    stock: withFreshKafkajs(load),
    patched: withFreshKafkajs((modules) => {
      patch(modules)
      return load(modules)
    }),
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the classes of kafkajs have no types, and tests poke into them.
type Untyped = any

describe('the patch of aborted messages', () => {
  interface Sent {
    offset: number
    producer: string
    kind: 'data' | 'commit' | 'abort'
    key?: Buffer | null
  }
  const record = ({ offset, producer, kind, key = null }: Sent): Untyped => ({
    offset: String(offset),
    key: kind === 'data' ? key : Buffer.from([0, 0, 0, kind === 'commit' ? 1 : 0]),
    isControlRecord: kind !== 'data',
    batchContext: { producerId: producer, inTransaction: true },
  })
  const { stock, patched } = stockAndPatched(
    patchAbortedMessages,
    (modules) => modules.load('consumer/filterAbortedMessages.js') as (input: unknown) => Untyped[],
  )
  const dataOffsets = (messages: Untyped[]): number[] =>
    messages.filter((message) => !message.isControlRecord).map(({ offset }) => Number(offset))

  it('hides records of two aborted transactions that overlap, which the broker lists in the order of their end', () => {
    const messages = [
      { offset: 0, producer: 'a', kind: 'data' as const },
      { offset: 1, producer: 'b', kind: 'data' as const },
      { offset: 2, producer: 'a', kind: 'data' as const },
      { offset: 3, producer: 'b', kind: 'abort' as const },
      { offset: 4, producer: 'a', kind: 'abort' as const },
      { offset: 5, producer: 'c', kind: 'data' as const },
    ].map(record)
    const abortedTransactions = [
      { producerId: 'b', firstOffset: '1' },
      { producerId: 'a', firstOffset: '0' },
    ]
    expect(dataOffsets(stock({ messages, abortedTransactions }))).not.toEqual([5])
    expect(dataOffsets(patched({ messages, abortedTransactions }))).toEqual([5])
  })

  it('hides records of transactions that all began before the fetch', () => {
    const messages = [
      { offset: 10, producer: 'b', kind: 'data' as const },
      { offset: 11, producer: 'a', kind: 'data' as const },
      { offset: 12, producer: 'a', kind: 'abort' as const },
      { offset: 13, producer: 'b', kind: 'abort' as const },
    ].map(record)
    const abortedTransactions = [
      { producerId: 'a', firstOffset: '3' },
      { producerId: 'b', firstOffset: '5' },
    ]
    expect(dataOffsets(stock({ messages, abortedTransactions }))).toEqual([10])
    expect(dataOffsets(patched({ messages, abortedTransactions }))).toEqual([])
  })

  it('takes no data record with a key of four zero bytes for the end of the transaction', () => {
    const messages = [
      { offset: 0, producer: 'a', kind: 'data' as const, key: Buffer.alloc(4) },
      { offset: 1, producer: 'a', kind: 'data' as const },
      { offset: 2, producer: 'a', kind: 'abort' as const },
    ].map(record)
    const abortedTransactions = [{ producerId: 'a', firstOffset: '0' }]
    expect(dataOffsets(stock({ messages, abortedTransactions }))).toEqual([0, 1])
    expect(dataOffsets(patched({ messages, abortedTransactions }))).toEqual([])
  })

  it('shows what a producer commits after it aborted', () => {
    const messages = [
      { offset: 0, producer: 'a', kind: 'data' as const },
      { offset: 1, producer: 'a', kind: 'abort' as const },
      { offset: 2, producer: 'a', kind: 'data' as const },
      { offset: 3, producer: 'a', kind: 'commit' as const },
    ].map(record)
    expect(dataOffsets(patched({ messages, abortedTransactions: [{ producerId: 'a', firstOffset: '0' }] }))).toEqual([2])
  })
})

describe('the patch of message grouping', () => {
  const { stock, patched } = stockAndPatched(
    patchMessageGrouping,
    (modules) => modules.load('producer/groupMessagesPerPartition.js') as (input: unknown) => Record<number, unknown[]>,
  )
  const input = (count: number): unknown => ({
    topic: 't',
    partitionMetadata: [{}, {}],
    messages: Array.from({ length: count }, (_, index) => index),
    partitioner: ({ message }: { message: number }) => message % 2,
  })

  it('groups like the stock function', () => {
    expect(patched(input(9))).toEqual(stock(input(9)))
    expect(patched({ topic: 't', partitionMetadata: [], messages: [1], partitioner: () => 0 })).toEqual({})
  })

  it('does not copy the list for each message', () => {
    // Counts the objects that are made, since time on a shared machine says little: stock makes a new list per message.
    const lists = (group: typeof patched): number => {
      const seen = new Set<unknown>()
      let result: Record<number, unknown[]> | undefined
      const original = Object.assign
      try {
        Object.assign = ((target: Untyped, ...sources: Untyped[]) => {
          for (const source of sources) for (const value of Object.values(source)) seen.add(value)
          return original(target, ...sources)
        }) as typeof Object.assign
        result = group(input(50))
      } finally {
        Object.assign = original
      }
      for (const list of Object.values(result)) seen.add(list)
      return seen.size
    }
    expect(lists(stock)).toBe(50)
    expect(lists(patched)).toBe(2)
  })
})

describe('the patch of message decoding', () => {
  const load = (modules: KafkajsModules) => {
    const Decoder = modules.load('protocol/decoder.js') as new (buffer: Buffer) => unknown
    const decode = modules.load('protocol/requests/fetch/v4/decodeMessages.js') as (decoder: unknown) => Promise<Untyped[]>
    registerCodecs(modules.entry() as typeof import('kafkajs'))
    return (...partitions: Buffer[]) => {
      const parts = partitions.flatMap((bytes) => [Buffer.alloc(4), bytes])
      for (const [index, part] of parts.entries()) if (index % 2 === 0) part.writeInt32BE(parts[index + 1]?.length ?? 0)
      const answer = new Decoder(Buffer.concat(parts))
      return () => decode(answer)
    }
  }
  const { stock, patched } = stockAndPatched(patchMessageDecoding, load)
  const batchOf = (messages: readonly BatchMessage[], pack?: (records: Buffer) => Buffer, attribute = 1): Promise<Buffer> =>
    encodeBatch(messages, {
      producerId: -1n,
      producerEpoch: 0,
      firstSequence: 0,
      transactional: false,
      now: 1_700_000_000_000,
      ...(pack === undefined ? {} : { codec: { attribute, pack: async (records: Buffer) => pack(records) } }),
    })
  const zeros = (count: number, bytes: number): BatchMessage[] => Array.from({ length: count }, () => ({ value: Buffer.alloc(bytes) }))

  it('decodes more records in a batch than fit on the stack', async () => {
    const bytes = await batchOf(zeros(200_000, 0))
    await expect(stock(bytes)()).rejects.toThrow(RangeError)
    expect(await patched(bytes)()).toHaveLength(200_000)
  })

  it('gives what stock gives: times, keys, values and headers', async () => {
    const messages: BatchMessage[] = [
      { key: 'k', value: 'v', headers: { a: 'one', b: '' }, timestamp: '1700000000005' },
      { key: null, value: null, timestamp: '1700000000000' },
      { key: '', value: 'ü', headers: { c: 'two' }, timestamp: '1700000012345' },
    ]
    for (const bytes of [await batchOf(messages), await batchOf(messages, gzipSync)]) {
      // The prototype of its headers is another.
      const plain = (records: Untyped[]): unknown => JSON.parse(JSON.stringify(records))
      expect(plain(await patched(bytes)())).toEqual(plain(await stock(bytes)()))
    }
  })

  it('unpacks what is longer than its last bytes say: members in a row, of which they tell the last', async () => {
    const messages: BatchMessage[] = [{ value: 'a'.repeat(3_000) }, { value: 'b' }]
    const inTwo = (records: Buffer): Buffer => Buffer.concat([gzipSync(records.subarray(0, 2_900)), gzipSync(records.subarray(2_900))])
    const records = await patched(await batchOf(messages, inTwo))()
    expect(records.map(({ value }) => value.toString())).toEqual(['a'.repeat(3_000), 'b'])
  })

  it('holds up the event loop for no more than some packed bytes at a time, whatever they say of themselves', async () => {
    const turnsWhile = async (packed: Buffer, count: number): Promise<number> => {
      let [turns, isOver] = [0, false]
      const look = (): void => {
        turns += 1
        if (!isOver) setImmediate(look)
      }
      setImmediate(look)
      await patched(Buffer.concat(Array.from({ length: count }, () => packed)))()
      isOver = true
      return turns
    }
    const random = (bytes: number): BatchMessage[] => [{ value: randomBytes(bytes) }]
    expect(await turnsWhile(await batchOf(random(40_000), gzipSync), 8)).toBeGreaterThanOrEqual(7)
    // It says that it has nothing, and is large: not unpacked here.
    const lying = (records: Buffer): Buffer => Buffer.concat([gzipSync(records), gzipSync(Buffer.alloc(0))])
    expect(await turnsWhile(await batchOf(random(400_000), lying), 1)).toBeGreaterThanOrEqual(1)
  })

  it('gives a batch that unpacks to too much as one message that holds it and says why', async () => {
    const bomb = await batchOf(zeros(3, 100_000_000), gzipSync)
    const after = await batchOf([{ value: 'after' }], gzipSync)
    const records = await patched(Buffer.concat([bomb, after]))()
    expect(records.map(({ offset, value }) => [offset, value.subarray(0, 5).toString('latin1')])).toEqual([
      ['2', '\x1f\x8b\x08\x00\x00'],
      ['0', 'after'],
    ])
    expect(records[0].headers['millrace-unread-batch'].toString()).toBe(
      'offsets 0 to 2, a batch of 3 messages, could not be read: more than 67108864 bytes when unpacked',
    )
    expect(records[0].batchContext).toMatchObject({ firstOffset: '0', lastOffsetDelta: 2 })
  })

  it.each([
    ['is damaged', 1, 'incorrect header check'],
    ['is no zstd', 4, /zstd|Unsupported|Unknown frame/],
  ])('and one that %s', async (_, attribute, why) => {
    const records = await patched(await batchOf(zeros(5, 10), () => Buffer.from('not packed at all'), attribute))()
    expect(records).toMatchObject([{ offset: '4', value: Buffer.from('not packed at all') }])
    expect(records[0].headers['millrace-unread-batch'].toString()).toMatch(why)
  })

  it('and one of more messages than memory has room for', async () => {
    const records = await patched(await batchOf(zeros(500_001, 0), gzipSync))()
    expect(records).toMatchObject([{ offset: '500000' }])
  })

  it('leaves what does not fit to the next fetch, over all partitions of an answer', async () => {
    const large = await batchOf(zeros(1, 40_000_000), gzipSync)
    const next = patched(Buffer.concat([large, large, large]), large, large)
    expect(await next()).toHaveLength(2)
    expect(await next()).toHaveLength(0)
    expect(await next()).toHaveLength(0)
  })

  it('reads a record of very many headers in time, and passes over one of more than any message has', async () => {
    const recordWith = async (count: number): Promise<Untyped> => {
      const headers = Object.fromEntries(Array.from({ length: count }, (_, index) => [`h${index}`, '']))
      return (await patched(await batchOf([{ value: 'v', headers }]))())[0]
    }
    expect(Object.keys((await recordWith(50_000)).headers)).toHaveLength(50_000)
    const unread = await recordWith(50_001)
    expect(String(unread.headers['millrace-unread-batch'])).toContain('a record has more than 50000 headers')
  })
})

describe('the patch of idle timers', () => {
  const { stock, patched } = stockAndPatched(
    patchIdleTimers,
    (modules) => modules.load('network/requestQueue/index.js') as new (o: unknown) => Untyped,
  )
  const queue = (RequestQueue: new (o: unknown) => Untyped): Untyped =>
    new RequestQueue({ maxInFlightRequests: 1, requestTimeout: 1_000, clientId: 'c', broker: 'b', logger: { debug: () => undefined } })

  it('arms no timer while nothing waits', () => {
    const idle = queue(stock)
    idle.checkPendingRequests()
    expect(idle.throttleCheckTimeoutId).not.toBeNull()
    idle.destroy()
    const quiet = queue(patched)
    quiet.checkPendingRequests()
    expect(quiet.throttleCheckTimeoutId).toBeNull()
  })

  it('still sends a request that has to wait for the throttle of the broker', async () => {
    const throttled = queue(patched)
    throttled.maybeThrottle(30)
    const sent = new Promise<void>((resolve) => {
      throttled.push({ entry: { correlationId: 1 }, expectResponse: true, sendRequest: () => resolve() })
    })
    expect(throttled.pending).toHaveLength(1)
    await sent
    expect(throttled.pending).toHaveLength(0)
    throttled.destroy()
  })
})

describe('the patch of unknown partitions', () => {
  const { stock, patched } = stockAndPatched(patchUnknownPartition, (modules) => modules.load('cluster/index.js') as { prototype: Untyped })
  const cluster = (Cluster: { prototype: Untyped }): Untyped =>
    Object.assign(Object.create(Cluster.prototype), {
      brokerPool: {
        metadata: {
          topicMetadata: [
            {
              topic: 't',
              partitionMetadata: [
                { partitionId: 0, leader: 1 },
                { partitionId: 1, leader: 1 },
              ],
            },
          ],
        },
      },
    })

  it('throws what makes the producer refresh its metadata, instead of leaving the partition out', () => {
    expect(cluster(stock).findLeaderForPartitions('t', ['0', '5'])).toEqual({ 1: [0] })
    expect(() => cluster(patched).findLeaderForPartitions('t', ['0', '5'])).toThrow(
      expect.objectContaining({ name: 'KafkaJSMetadataNotLoaded', message: expect.stringContaining('no partition 5') }),
    )
    expect(cluster(patched).findLeaderForPartitions('t', ['0', '1'])).toEqual({ 1: [0, 1] })
  })
})

describe('the patch of partitions without a leader', () => {
  /** The metadata that a broker answers to a question for `topics`, all where there are none, and the cluster that has it then. */
  const load = (modules: KafkajsModules) => {
    const { prototype: broker } = modules.load('broker/index.js') as { prototype: Untyped }
    const { prototype: pool } = modules.load('cluster/brokerPool.js') as { prototype: Untyped }
    const { prototype: cluster } = modules.load('cluster/index.js') as { prototype: Untyped }
    const { response } = (modules.load('protocol/requests/metadata/index.js') as Untyped).protocol({ version: 6 })({ topics: [] })
    const sendRequest = Object.getOwnPropertySymbols(broker).find(({ description }) => description?.endsWith('sendRequest')) as symbol
    return {
      answering: (topicMetadata: Untyped[]): Untyped =>
        Object.assign(Object.create(broker), {
          lookupRequest: () => () => undefined,
          [sendRequest]: () => response.parse({ brokers: [], topicMetadata }),
        }),
      pool,
      cluster: (topicMetadata: Untyped[]): Untyped =>
        Object.assign(Object.create(cluster), { brokerPool: { metadata: { topicMetadata } }, isolationLevel: 0 }),
    }
  }
  const { stock, patched } = stockAndPatched(patchOfflinePartition, load)
  const topic = (name: string, leaders: number[], topicErrorCode = 0): Untyped => ({
    topic: name,
    topicErrorCode,
    partitionMetadata: leaders.map((leader, partitionId) => ({ partitionId, leader, partitionErrorCode: leader < 0 ? 5 : 0 })),
  })

  it('gives the metadata of everything else', async () => {
    const topics = [topic('ours', [1, 2]), topic('theirs', [1, -1])]
    await expect(stock.answering(topics).metadata()).rejects.toMatchObject({ type: 'LEADER_NOT_AVAILABLE' })
    expect(await patched.answering(topics).metadata()).toEqual({ brokers: [], topicMetadata: topics })
    expect(await patched.answering(topics).metadata(['ours', 'theirs'])).toEqual({ brokers: [], topicMetadata: topics })
  })

  it('throws the error of a topic that was asked for by its name, and leaves out any other', async () => {
    const topics = [topic('ours', [1]), topic('gone', [], 3)]
    await expect(stock.answering(topics).metadata(['ours'])).rejects.toMatchObject({ type: 'UNKNOWN_TOPIC_OR_PARTITION' })
    await expect(patched.answering(topics).metadata(['ours', 'gone'])).rejects.toMatchObject({ type: 'UNKNOWN_TOPIC_OR_PARTITION' })
    for (const asked of [[], ['ours']])
      expect((await patched.answering(topics).metadata(asked)).topicMetadata).toEqual([topic('ours', [1])])
  })

  it('fails whoever needs the leader that there is not, in a way that is tried again', () => {
    const needsLeader = (of: typeof stock, partitions: string[]): unknown =>
      of.cluster([topic('t', [1, -1])]).findLeaderForPartitions('t', partitions)
    expect(needsLeader(stock, ['0', '1'])).toEqual({ 1: [0], '-1': [1] })
    const wanted = { type: 'LEADER_NOT_AVAILABLE', retriable: true, message: expect.stringMatching(/^t\/1: /) }
    expect(() => needsLeader(patched, ['0', '1'])).toThrow(expect.objectContaining(wanted))
    expect(needsLeader(patched, ['0'])).toEqual({ 1: [0] })
  })

  it('keeps a consumer at work on the partitions that have one', async () => {
    const offsets = async (of: typeof stock): Promise<unknown> => {
      const cluster = of.cluster([topic('t', [1, -1]), topic('u', [-1])])
      cluster.findBroker = async ({ nodeId }: { nodeId: string }) => {
        if (nodeId !== '1') throw new Error(`no broker ${nodeId}`)
        const answer = ({ topic: name, partitions }: Untyped) => ({
          topic: name,
          partitions: partitions.map(({ partition }: Untyped) => ({ partition, offset: '7' })),
        })
        return { listOffsets: async ({ topics }: Untyped) => ({ responses: topics.map(answer) }) }
      }
      return cluster.fetchTopicsOffset([
        { topic: 't', partitions: [{ partition: 0 }, { partition: 1 }] },
        { topic: 'u', partitions: [{ partition: 0 }] },
      ])
    }
    await expect(offsets(stock)).rejects.toThrow('no broker -1')
    expect(await offsets(patched)).toEqual([
      { topic: 't', partitions: [{ partition: 0, offset: '7' }] },
      { topic: 'u', partitions: [] },
    ])
  })

  it('looks again after a second, where what has no leader is wanted', async () => {
    const expiresIn = async (topicMetadata: Untyped[], asked: string[]): Promise<number> => {
      const pool = Object.assign(Object.create(patched.pool), {
        metadataMaxAge: 30_000,
        brokers: {},
        findConnectedBroker: async () => patched.answering(topicMetadata),
        seedBroker: { connectionPool: {} },
        retrier: (run: (bail: (error: unknown) => void) => Promise<void>) =>
          run((error) => {
            throw error
          }),
      })
      const before = Date.now()
      await pool.refreshMetadata(asked)
      return pool.metadataExpireAt - before
    }
    const topics = [topic('ours', [1]), topic('theirs', [-1])]
    expect(await expiresIn(topics, ['theirs'])).toBeLessThan(2_000)
    expect(await expiresIn(topics, ['ours'])).toBeGreaterThanOrEqual(30_000)
    expect(await expiresIn(topics, [])).toBeGreaterThanOrEqual(30_000)
  })
})

describe('the patch of silent commits', () => {
  const { stock, patched } = stockAndPatched(patchSilentCommit, (modules) => modules.load('consumer/runner.js') as { prototype: Untyped })
  const runner = (Runner: { prototype: Untyped }, running: boolean, commitOffsets: () => Promise<void>): Untyped =>
    Object.assign(Object.create(Runner.prototype), {
      running,
      logger: { debug: () => undefined },
      consumerGroup: { groupId: 'g', memberId: 'm', commitOffsets },
      retrier: async (run: (bail: unknown) => Promise<void>) => {
        for (let left = 2; ; left -= 1) {
          try {
            return await run(() => undefined)
          } catch (error) {
            if (left === 0) throw error
          }
        }
      },
    })

  it('rejects while the consumer has not joined', async () => {
    await expect(Promise.resolve(runner(stock, false, async () => undefined).commitOffsets({}))).resolves.toBeUndefined()
    await expect(runner(patched, false, async () => undefined).commitOffsets({})).rejects.toThrow('nothing was committed')
  })

  it('does not repeat a commit under a later generation', async () => {
    const calls = (Runner: { prototype: Untyped }): { count: number; done: Promise<unknown> } => {
      const seen = { count: 0, done: Promise.resolve() as Promise<unknown> }
      const failing = async (): Promise<void> => {
        seen.count += 1
        throw new Error('closed connection')
      }
      seen.done = runner(Runner, true, failing)
        .commitOffsets({})
        .catch(() => undefined)
      return seen
    }
    const repeated = calls(stock)
    await repeated.done
    expect(repeated.count).toBe(3)
    const once = calls(patched)
    await once.done
    expect(once.count).toBe(1)
  })
})

describe('the patch of stale batches', () => {
  const { stock, patched } = stockAndPatched(patchStaleBatch, (modules) => modules.load('consumer/runner.js') as { prototype: Untyped })
  const handled = async (Runner: { prototype: Untyped }, seekIsPending: boolean): Promise<string[]> => {
    const events: string[] = []
    const batch = {
      topic: 't',
      partition: 0,
      messages: [],
      highWatermark: '9',
      offsetLag: () => '0',
      offsetLagLow: () => '0',
      firstOffset: () => '8',
      lastOffset: () => '8',
      isEmpty: () => true,
      isEmptyDueToFiltering: () => true,
    }
    const runner = Object.assign(Object.create(Runner.prototype), {
      running: true,
      autoCommit: false,
      instrumentationEmitter: { emit: (name: string) => events.push(name) },
      consumerGroup: { hasSeekOffset: () => seekIsPending, resolveOffset: () => undefined, heartbeat: async () => undefined },
    })
    await runner.handleBatch(batch)
    return events
  }

  it('reports no end of a batch of markers that was fetched before a seek', async () => {
    expect(await handled(stock, true)).toContain('consumer.end_batch_process')
    expect(await handled(patched, true)).toEqual([])
  })

  it('reports the end of any other batch', async () => {
    expect(await handled(patched, false)).toContain('consumer.end_batch_process')
  })
})

describe('the patch of places out of range', () => {
  const { stock, patched } = stockAndPatched(patchOutOfRange, (modules) => modules.load('consumer/offsetManager/index.js') as Untyped)
  const groups = stockAndPatched(patchOutOfRange, (modules) => modules.load('consumer/consumerGroup.js') as Untyped)
  /** What is committed, and which place is left. */
  const recovered = async (OffsetManager: Untyped): Promise<object> => {
    const commits: unknown[] = []
    const cluster = { defaultOffset: () => '-2', committedOffsets: () => ({ t: { 0: '5', 1: '6' } }) }
    const coordinator = { isConnected: () => true, offsetCommit: async (commit: Untyped) => void commits.push(commit.topics) }
    const memberAssignment = { t: [0, 1] }
    const manager = new OffsetManager({ cluster, coordinator, memberAssignment, autoCommit: false, topicConfigurations: {}, groupId: 'g' })
    for (const partition of [0, 1]) manager.resolveOffset({ topic: 't', partition, offset: '7' })
    await manager.setDefaultOffset({ topic: 't', partition: 0 })
    return { commits, resolved: manager.resolvedOffsets }
  }

  it('forgets where the partition was read, and commits nothing', async () => {
    expect(await recovered(stock)).toEqual({
      commits: [[{ topic: 't', partitions: [{ partition: 0, offset: '-2' }] }]],
      resolved: { t: { 1: '8' } },
    })
    expect(await recovered(patched)).toEqual({ commits: [], resolved: { t: { 1: '8' } } })
  })

  it('leaves alone what was left by a seek while the fetch was under way', async () => {
    const resets = async (ConsumerGroup: Untyped, seekIsPending: boolean): Promise<number> => {
      let count = 0
      const group = Object.assign(Object.create(ConsumerGroup.prototype), {
        preferredReadReplicasPerTopicPartition: {},
        seekOffset: { has: () => seekIsPending },
        logger: { error: () => undefined },
        offsetManager: {
          setDefaultOffset: async () => {
            count += 1
          },
        },
      })
      await group.recoverFromOffsetOutOfRange({ topic: 't', partition: 0 })
      return count
    }
    expect([await resets(groups.stock, true), await resets(groups.patched, true)]).toEqual([1, 0])
    expect([await resets(groups.stock, false), await resets(groups.patched, false)]).toEqual([1, 1])
  })
})

describe('loading kafkajs', () => {
  it('refuses another version than the one that is patched', () => {
    const wrong = withFreshKafkajs((modules) => ({ ...modules, version: () => '2.2.5' }))
    expect(() => loadKafkajs(wrong)).toThrow(expect.objectContaining({ code: 'KAFKA_VERSION', message: expect.stringContaining('2.2.5') }))
  })

  it('refuses a copy that was loaded before its patches', () => {
    withFreshKafkajs((modules) => {
      modules.entry()
      expect(() => loadKafkajs(modules)).toThrow(expect.objectContaining({ code: 'INTERNAL' }))
    })
  })

  it('gives the same patched copy again', () => {
    withFreshKafkajs((modules) => {
      const first = loadKafkajs(modules)
      expect(loadKafkajs(modules)).toBe(first)
    })
  })
})

describe('the patch of coordinators that may not be asked for', () => {
  const { stock, patched } = stockAndPatched(
    patchCoordinatorFailure,
    (modules) => (modules.load('cluster/index.js') as { prototype: Untyped }).prototype,
  )
  const asked = (prototype: Untyped, type: string): Promise<unknown> => {
    const refusal = Object.assign(new Error('no'), { type })
    const broker = { findGroupCoordinator: () => Promise.reject(refusal) }
    const cluster = Object.assign(Object.create(prototype), {
      logger: { debug: () => undefined },
      retrier: (work: (bail: (error: unknown) => void) => unknown) =>
        new Promise((resolve, reject) => Promise.resolve(work(reject)).then(resolve, reject)),
      // As the pool of the client does: what one broker answers is dropped.
      brokerPool: { withBroker: (ask: (at: unknown) => Promise<unknown>) => ask({ nodeId: '1', broker }).catch(() => null) },
    })
    return cluster.findGroupCoordinatorMetadata({ groupId: 'g', coordinatorType: 0 })
  }

  it('gives the reason of a broker that does not let this user', async () => {
    await expect(asked(stock, 'GROUP_AUTHORIZATION_FAILED')).rejects.toMatchObject({ name: 'KafkaJSGroupCoordinatorNotFound' })
    await expect(asked(patched, 'GROUP_AUTHORIZATION_FAILED')).rejects.toMatchObject({ type: 'GROUP_AUTHORIZATION_FAILED' })
  })

  it('leaves every other reason as it was', async () => {
    await expect(asked(patched, 'NOT_COORDINATOR_FOR_GROUP')).rejects.toMatchObject({ name: 'KafkaJSGroupCoordinatorNotFound' })
  })
})
