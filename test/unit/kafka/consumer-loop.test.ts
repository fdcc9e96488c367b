import type { Consumer, Kafka } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import type { AssignmentChange } from '../../../src/kafka/assignment.ts'
import type { KafkaClient, KafkajsLogLine } from '../../../src/kafka/client.ts'
import { ConsumerLoop, type ConsumerLoopOptions } from '../../../src/kafka/consumer-loop.ts'
import { loadKafkajs } from '../../../src/kafka/patches/load-kafkajs.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const { KafkaJSNotImplemented, KafkaJSNumberOfRetriesExceeded, KafkaJSConnectionError, KafkaJSNonRetriableError } = loadKafkajs()
/** Its type knows of no arguments, but it needs one. */
const NotImplemented = KafkaJSNotImplemented as unknown as new (message: string) => Error

/** What the loop does to kafkajs's consumer, and a hand on what kafkajs does to the loop. */
class FakeConsumer {
  readonly events = {
    FETCH: 'fetch',
    GROUP_JOIN: 'join',
    REBALANCING: 'rebalancing',
    END_BATCH_PROCESS: 'end',
    COMMIT_OFFSETS: 'commit',
    STOP: 'stop',
    CRASH: 'crash',
  }
  readonly calls: string[] = []
  readonly #listeners = new Map<string, (event: { payload: unknown }) => void>()
  #eachBatch: ((payload: unknown) => Promise<void>) | undefined
  failConnect: Error | undefined
  failSubscribe: Error | undefined
  /** What a commit does; by default it is stored. */
  onCommit: (() => Promise<void>) | undefined

  on(event: string, listener: (event: { payload: unknown }) => void): void {
    this.#listeners.set(event, listener)
  }
  /** How long it takes, as kafkajs tries again by itself. */
  connecting: Promise<void> | undefined
  async connect(): Promise<void> {
    await this.connecting
    if (this.failConnect !== undefined) throw this.failConnect
  }
  async subscribe({ fromBeginning }: { fromBeginning: boolean }): Promise<void> {
    if (this.failSubscribe !== undefined) throw this.failSubscribe
    this.calls.push(`subscribe fromBeginning=${fromBeginning}`)
  }
  async run(options: { eachBatch: (payload: unknown) => Promise<void>; autoCommit: boolean }): Promise<void> {
    this.calls.push(`run autoCommit=${options.autoCommit}`)
    this.#eachBatch = options.eachBatch
  }
  async disconnect(): Promise<void> {
    this.calls.push('disconnect')
  }
  seek({ topic, partition, offset }: { topic: string; partition: number; offset: string }): void {
    this.calls.push(`seek ${topic}/${partition}@${offset}`)
  }
  pause(list: { topic: string; partitions: number[] }[]): void {
    for (const { topic, partitions } of list) this.calls.push(`pause ${topic}/${partitions}`)
  }
  resume(list: { topic: string; partitions: number[] }[]): void {
    for (const { topic, partitions } of list) this.calls.push(`resume ${topic}/${partitions}`)
  }
  async commitOffsets(offsets: { topic: string; partition: number; offset: string }[]): Promise<void> {
    this.calls.push(`commit ${offsets.map(({ topic, partition, offset }) => `${topic}/${partition}@${offset}`)}`)
    if (this.onCommit !== undefined) return this.onCommit()
    this.emit('commit', { topics: offsets.map(({ topic, partition, offset }) => ({ topic, partitions: [{ partition, offset }] })) })
  }

  emit(event: string, payload: unknown = {}): void {
    this.#listeners.get(event)?.({ payload })
  }
  join(memberId: string, memberAssignment: Record<string, number[]>): void {
    this.emit('join', { memberId, memberAssignment })
  }
  async batch(topic: string, partition: number, fetchedOffset: number, offsets: number[], lastOffset = offsets.at(-1) ?? 0): Promise<void> {
    const messages = offsets.map((offset) => ({
      offset: String(offset),
      timestamp: '0',
      key: null,
      value: Buffer.from(`v${offset}`),
      headers: {},
    }))
    const batch = {
      topic,
      partition,
      fetchedOffset: String(fetchedOffset),
      highWatermark: '1000',
      messages,
      lastOffset: () => String(lastOffset),
    }
    await this.deliver(batch)
  }
  async deliver(batch: unknown): Promise<void> {
    await this.#eachBatch?.({ batch })
  }
  markersOnly(topic: string, partition: number, lastOffset: number): void {
    this.emit('end', { topic, partition, batchSize: 0, lastOffset: String(lastOffset), highWatermark: '1000' })
  }
}

function rig(options: Partial<ConsumerLoopOptions> = {}) {
  const consumers: FakeConsumer[] = []
  const log: string[] = []
  const changes: AssignmentChange[] = []
  const clock = new ManualClock()
  const seen = recordingObserver()
  let onLog: (line: KafkajsLogLine) => void = () => undefined
  /** Set before the consumer that should fail is made. */
  const next: { failConnect?: Error; failSubscribe?: Error; connectMs?: number } = {}
  /** Members that were taken out of the group. */
  const evicted: string[] = []
  const coordinator = { leaveGroup: async ({ memberId }: { memberId: string }) => void evicted.push(memberId) }
  const client = {
    connection: { brokers: [], clientId: 'c' },
    kafkajs: loadKafkajs(),
    openCluster: async () => ({ findGroupCoordinator: async () => coordinator, disconnect: async () => undefined }),
    isolated: (listener: (line: KafkajsLogLine) => void) => {
      onLog = listener
      return {
        consumer: () => {
          const consumer = new FakeConsumer()
          consumer.failConnect = next.failConnect
          consumer.failSubscribe = next.failSubscribe
          if (next.connectMs !== undefined) consumer.connecting = clock.sleep(next.connectMs)
          consumers.push(consumer)
          return consumer as unknown as Consumer
        },
      } as unknown as Kafka
    },
  } as unknown as KafkaClient
  const loop = new ConsumerLoop({
    client,
    groupId: 'g',
    topics: ['t'],
    observer: seen.observer,
    clock,
    handler: {
      onAssignment: (change) => {
        changes.push(change)
        const list = (partitions: readonly { partition: number; epoch: number }[]) =>
          partitions.map(({ partition, epoch }) => `${partition}e${epoch}`).join(',')
        log.push(`gained ${list(change.gained)} kept ${list(change.kept)} lost ${list(change.lost)}`)
      },
      onMessages: ({ partition, epoch }, messages, position) => {
        log.push(`${partition}e${epoch}: ${messages.map(({ offset }) => offset).join(',')} -> ${position}`)
      },
      onPosition: ({ partition, epoch }, position) => {
        log.push(`${partition}e${epoch}: -> ${position}`)
      },
    },
    ...options,
  })
  const current = (): FakeConsumer => {
    const consumer = consumers.at(-1)
    if (consumer === undefined) throw new Error('no consumer was made')
    return consumer
  }
  const start = async (assignment: Record<string, number[]> = { t: [0, 1] }): Promise<FakeConsumer> => {
    const started = loop.start()
    await clock.advance(0)
    current().join('m1', assignment)
    await started
    current().calls.length = 0
    return current()
  }
  return { loop, start, current, consumers, log, changes, clock, seen, next, evicted, onLog: (line: KafkajsLogLine) => onLog(line) }
}

describe('the consumer loop', () => {
  it('reads from the beginning where a group is new, and never lets kafkajs commit', async () => {
    const { loop, clock, current } = rig()
    const started = loop.start()
    await clock.advance(0)
    current().join('m1', { t: [0] })
    await started
    expect(current().calls).toEqual(['subscribe fromBeginning=true', 'run autoCommit=false'])
  })

  it('hands messages over with the epoch and the position after markers', async () => {
    const { start, log } = rig()
    const consumer = await start()
    await consumer.batch('t', 0, 5, [5, 6], 8)
    consumer.markersOnly('t', 0, 11)
    consumer.markersOnly('t', 0, 4)
    expect(log).toEqual(['gained 0e1,1e2 kept  lost ', '0e1: 5,6 -> 9', '0e1: -> 12'])
  })

  it('copies bytes, and keeps the last value of a repeated header', async () => {
    const taken: unknown[] = []
    const { start } = rig({
      handler: { onAssignment: () => undefined, onPosition: () => undefined, onMessages: (_, messages) => taken.push(...messages) },
    })
    const consumer = await start()
    const value = Buffer.from('before')
    const messages = [
      {
        offset: '0',
        timestamp: '7',
        key: null,
        value,
        headers: { a: [Buffer.from('1'), Buffer.from('2')], b: undefined, __proto__x: Buffer.from('3') },
      },
    ]
    await consumer.deliver({ topic: 't', partition: 0, fetchedOffset: '0', highWatermark: '1', messages, lastOffset: () => '0' })
    value.write('AFTER!')
    expect(taken).toMatchObject([
      { offset: 0n, timestamp: 7, key: null, value: Buffer.from('before'), headers: { a: Buffer.from('2'), __proto__x: Buffer.from('3') } },
    ])
  })

  it('reads on where it was in partitions that it keeps, paused ones stay paused', async () => {
    const { loop, start, log } = rig()
    const consumer = await start()
    await consumer.batch('t', 0, 0, [0, 1, 2])
    loop.pause([{ topic: 't', partition: 0 }])
    consumer.calls.length = 0
    consumer.join('m1', { t: [0, 2] })
    expect(consumer.calls).toEqual(['resume t/1', 'pause t/0', 'seek t/0@3'])
    expect(log.at(-1)).toBe('gained 2e3 kept 0e1 lost 1e2')
  })

  it('drops a batch that leaves a hole after what was read, and reads the hole', async () => {
    const { start, log } = rig()
    const consumer = await start()
    await consumer.batch('t', 0, 0, [0, 1])
    await consumer.batch('t', 0, 7, [7, 8])
    expect(consumer.calls).toEqual(['seek t/0@2'])
    await consumer.batch('t', 0, 2, [2, 3])
    expect(log.slice(1)).toEqual(['0e1: 0,1 -> 2', '0e1: 2,3 -> 4'])
  })

  it('ignores batches of partitions that it does not own', async () => {
    const { start, log } = rig()
    const consumer = await start({ t: [0] })
    await consumer.batch('t', 5, 0, [0])
    consumer.markersOnly('t', 5, 3)
    expect(log).toHaveLength(1)
  })

  it('holds gained partitions back until they are resumed, where told so', async () => {
    const { loop, start, log, changes } = rig({ startPaused: true })
    const consumer = await start({ t: [0] })
    await consumer.batch('t', 0, 0, [0, 1])
    consumer.markersOnly('t', 0, 5)
    expect(log).toHaveLength(1)
    const [assigned] = changes[0]?.gained ?? []
    if (assigned === undefined) throw new Error('nothing gained')
    loop.seek(assigned, 40n)
    loop.resume([assigned])
    expect(consumer.calls).toEqual(['seek t/0@40', 'resume t/0'])
    await consumer.batch('t', 0, 40, [40])
    expect(log.at(-1)).toBe('0e1: 40 -> 41')
  })

  it('does not move a partition for a caller whose epoch is over', async () => {
    const { loop, start, changes } = rig()
    const consumer = await start()
    const [stale] = changes[0]?.gained ?? []
    if (stale === undefined) throw new Error('nothing gained')
    consumer.join('m2', { t: [0, 1] })
    consumer.calls.length = 0
    loop.seek(stale, 3n)
    expect(consumer.calls).toEqual([])
    expect(await loop.commit([{ ...stale, offset: 3n, metadata: '' }])).toEqual({ stored: [] })
    expect(consumer.calls).toEqual([])
  })

  it('pauses all that it has and all that it gets once it drains', async () => {
    const { loop, start } = rig()
    const consumer = await start({ t: [0] })
    loop.pauseAll()
    consumer.join('m1', { t: [0, 1] })
    loop.resume([{ topic: 't', partition: 1 }])
    expect(consumer.calls).toEqual(['pause t/0', 'pause t/0', 'pause t/1'])
  })

  it('believes a commit only by its event', async () => {
    const { loop, start, changes, seen } = rig()
    const consumer = await start()
    const commits = (changes[0]?.gained ?? []).map((assigned) => ({ ...assigned, offset: 9n, metadata: '' }))
    consumer.onCommit = async () => undefined
    expect(await loop.commit(commits)).toEqual({ stored: [], refused: 'not-joined' })
    consumer.onCommit = async () => consumer.emit('commit', { topics: [{ topic: 't', partitions: [{ partition: 1, offset: 9 }] }] })
    expect(await loop.commit(commits)).toEqual({ stored: [commits[1]], refused: 'not-joined' })
    consumer.onCommit = undefined
    expect(await loop.commit(commits)).toEqual({ stored: commits })
    expect(seen.count('OffsetsCommitted')).toBe(2)
  })

  it.each([
    [{ type: 'ILLEGAL_GENERATION' }, 'rebalance'],
    [{ cause: { type: 'UNKNOWN_MEMBER_ID' } }, 'rebalance'],
    [{ type: 'OFFSET_METADATA_TOO_LARGE' }, 'metadata-too-large'],
    [{ message: 'Broker not connected' }, 'failed'],
  ])('names why the broker refused a commit: %o', async (error, reason) => {
    const { loop, start, changes, seen } = rig()
    const consumer = await start()
    consumer.onCommit = () => Promise.reject(error)
    const [assigned] = changes[0]?.gained ?? []
    if (assigned === undefined) throw new Error('nothing gained')
    expect(await loop.commit([{ ...assigned, offset: 1n, metadata: '' }])).toEqual({ stored: [], refused: reason })
    expect(seen.count('CommitRefused', { reason })).toBe(1)
  })

  it('begins a partition anew when kafkajs left the place where it read', async () => {
    const { start, log, onLog, seen } = rig()
    const consumer = await start({ t: [0] })
    await consumer.batch('t', 0, 0, [0, 1])
    onLog({ namespace: 'ConsumerGroup', message: 'Offset out of range, resetting to default offset', fields: { topic: 't', partition: 0 } })
    await consumer.batch('t', 0, 70, [70])
    expect(log.slice(2)).toEqual(['gained 0e2 kept  lost 0e1', '0e2: 70 -> 71'])
    expect(seen.count('OffsetOutOfRange')).toBe(1)
  })
})

describe('the consumer loop, when its consumer crashes', () => {
  const away = new KafkaJSNumberOfRetriesExceeded(new KafkaJSConnectionError('connect ECONNREFUSED'), { retryCount: 8, retryTime: 100 })

  it('loses everything, and comes back as a new member when the broker does', async () => {
    const { loop, start, log, consumers, clock, seen, current, evicted } = rig()
    const first = await start()
    first.emit('stop')
    first.emit('crash', { error: away })
    expect(log.at(-1)).toBe('gained  kept  lost 0e1,1e2')
    expect(seen.count('ConsumerRestarted')).toBe(1)
    await clock.advance(1_000)
    expect(consumers).toHaveLength(2)
    // Nobody waits for its session to run out.
    expect(evicted).toEqual(['m1'])
    current().join('m2', { t: [0] })
    expect(log.at(-1)).toBe('gained 0e3 kept  lost ')
    // Whatever the old one still says is ignored.
    first.join('m1', { t: [0, 1] })
    expect(loop.assigned).toEqual([{ topic: 't', partition: 0, epoch: 3 }])
  })

  it('goes on trying while the broker stays away, and fails when the budget is used up', async () => {
    const { loop, start, clock, next, consumers } = rig({ settings: { awayBudgetMs: 60_000 } })
    const first = await start()
    next.failConnect = away
    first.emit('crash', { error: away })
    await clock.advance(30_000)
    expect(loop.state).toBe('running')
    expect(consumers.length).toBeGreaterThan(5)
    const closed = expect(loop.closed).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE', exitCode: 4 })
    await clock.advance(60_000)
    await closed
  })

  it('goes on trying without end where whoever looks after the broker says when it does not come back', async () => {
    const { loop, start, clock, next, current } = rig({ settings: { awayBudgetMs: Number.POSITIVE_INFINITY } })
    const first = await start()
    next.failConnect = away
    first.emit('crash', { error: away })
    for (let minutes = 0; minutes < 30; minutes += 1) await clock.advance(60_000)
    delete next.failConnect
    await clock.advance(60_000)
    current().join('m2', { t: [0] })
    expect(loop.state).toBe('running')
  })

  it('leaves no connection of a consumer that could connect and not subscribe', async () => {
    const { start, clock, next, consumers } = rig()
    const first = await start()
    next.failSubscribe = away
    first.emit('crash', { error: away })
    await clock.advance(30_000)
    const vain = consumers.slice(1, -1)
    expect(vain.length).toBeGreaterThan(3)
    expect(vain.map(({ calls }) => calls.filter((call) => call === 'disconnect'))).toEqual(vain.map(() => ['disconnect']))
  })

  it('has the whole budget for coming back, though each try to connect takes seconds and nothing is fetched meanwhile', async () => {
    const { loop, start, clock, next, current, seen } = rig()
    const first = await start()
    next.failConnect = away
    next.connectMs = 10_000
    first.emit('crash', { error: away })
    for (let seconds = 0; seconds < 280; seconds += 1) await clock.advance(1_000)
    expect(loop.state).toBe('running')
    expect(seen.count('ConsumerRestarted')).toBeGreaterThan(10)
    delete next.failConnect
    delete next.connectMs
    for (let seconds = 0; seconds < 30; seconds += 1) await clock.advance(1_000)
    current().join('m2', { t: [0] })
    expect(loop.state).toBe('running')
  })

  it('fails in the end where kafkajs never comes back from a call', async () => {
    const { loop, start, clock, next } = rig({ settings: { rebalanceTimeoutMs: 60_000, awayBudgetMs: 60_000 } })
    const first = await start()
    next.connectMs = 1e9
    first.emit('crash', { error: away })
    const closed = expect(loop.closed).rejects.toThrow(/has not fetched for/)
    await clock.advance(170_000)
    await closed
  })

  it('fails at once, with what to do, at a message whose codec is missing', async () => {
    const { loop, start } = rig()
    const consumer = await start()
    consumer.emit('crash', { error: new NotImplemented('Snappy compression not implemented') })
    await expect(loop.closed).rejects.toMatchObject({
      code: 'KAFKA_CONSUMER_CRASHED',
      message: expect.stringMatching(/compressed with Snappy.*compression\.type/),
    })
  })

  it('fails at once at what no restart can mend', async () => {
    const { loop, start } = rig()
    const consumer = await start()
    consumer.emit('crash', { error: new KafkaJSNonRetriableError('Group authorization failed') })
    await expect(loop.closed).rejects.toMatchObject({ code: 'KAFKA_CONSUMER_CRASHED' })
  })

  it('throws nothing into kafkajs when its handler throws, and fails', async () => {
    const { loop, start } = rig({
      handler: {
        onAssignment: () => undefined,
        onPosition: () => undefined,
        onMessages: () => {
          throw new Error('broken handler')
        },
      },
    })
    const consumer = await start()
    await expect(consumer.batch('t', 0, 0, [0])).resolves.toBeUndefined()
    await expect(loop.closed).rejects.toThrow('broken handler')
  })

  it('fails when the consumer has not fetched for longer than any join or request takes', async () => {
    const { loop, start, clock } = rig({ settings: { rebalanceTimeoutMs: 60_000 } })
    const consumer = await start()
    await clock.advance(90_000)
    consumer.emit('fetch')
    await clock.advance(90_000)
    expect(loop.state).toBe('running')
    const closed = expect(loop.closed).rejects.toThrow(/has not fetched for/)
    await clock.advance(10_000)
    await closed
  })

  it('goes on after it stood still itself for longer than that, and then fails where nothing comes', async () => {
    const { loop, start, clock } = rig({ settings: { rebalanceTimeoutMs: 60_000 } })
    await start()
    await clock.advance(50_000)
    await clock.standStill(120_000)
    await clock.advance(30_000)
    expect(loop.state).toBe('running')
    const closed = expect(loop.closed).rejects.toThrow(/has not fetched for/)
    await clock.advance(30_000)
    await closed
  })

  it('has its whole budget for coming back where it stood still meanwhile', async () => {
    const { loop, start, clock, next } = rig({ settings: { awayBudgetMs: 60_000 } })
    const first = await start()
    next.failConnect = away
    first.emit('crash', { error: away })
    await clock.advance(20_000)
    await clock.standStill(120_000)
    await clock.advance(20_000)
    expect(loop.state).toBe('running')
    const closed = expect(loop.closed).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE' })
    await clock.advance(60_000)
    await closed
  })

  it('does not start a new consumer once it was told to stop', async () => {
    const { loop, start, clock, consumers } = rig()
    const consumer = await start()
    consumer.emit('crash', { error: away })
    const stopped = loop.stop({ mode: 'abort', timeoutMs: 0 })
    await clock.advance(10_000)
    await stopped
    expect(consumers).toHaveLength(1)
    expect(loop.state).toBe('closed')
    expect(clock.armedCount).toBe(0)
  })
})

describe('the consumer loop, when it starts', () => {
  it('says that Kafka is unreachable', async () => {
    const { loop, next } = rig()
    next.failConnect = new KafkaJSConnectionError('connect ECONNREFUSED 127.0.0.1:1')
    await expect(loop.start()).rejects.toMatchObject({
      code: 'KAFKA_UNREACHABLE',
      message: expect.stringContaining('ECONNREFUSED 127.0.0.1:1'),
    })
  })

  it('names the topics when one does not exist', async () => {
    const { loop, next } = rig()
    next.failConnect = Object.assign(new Error('This server does not host this topic-partition'), { type: 'UNKNOWN_TOPIC_OR_PARTITION' })
    await expect(loop.start()).rejects.toMatchObject({ code: 'KAFKA_TOPIC_MISSING', message: expect.stringContaining('t') })
  })

  it('can be aborted while it waits for the first join, and leaves', async () => {
    const { loop, clock, current } = rig()
    const abort = new AbortController()
    const started = loop.start({ signal: abort.signal })
    await clock.advance(0)
    abort.abort(new Error('no more'))
    await expect(started).rejects.toThrow('no more')
    expect(current().calls).toContain('disconnect')
  })
})
