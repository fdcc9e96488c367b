import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { AssignedPartition } from '../../../src/kafka/assignment.ts'
import type { KafkaClient } from '../../../src/kafka/client.ts'
import { encodeOffsetMap } from '../../../src/kafka/offset-map.ts'
import type { WindowEntry } from '../../../src/kafka/window-entry.ts'
import { WindowedConsumer, type WindowedConsumerOptions } from '../../../src/kafka/windowed-consumer.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { eventually } from '../../support/eventually.ts'
import { KafkaFixture, QUICK_MEMBER, recordingObserver } from '../../support/kafka-fixture.ts'
import { uniqueName } from '../../support/services.ts'

const kafka = new KafkaFixture(silentObserver)
const open = new Set<WindowedConsumer>()

interface Member {
  readonly consumer: WindowedConsumer
  /** In the order of arrival. */
  readonly entries: WindowEntry[]
  readonly seen: ReturnType<typeof recordingObserver>
  readonly values: () => string[]
}

const textOf = (entry: WindowEntry): string => entry.message.value?.toString() ?? ''

async function member(groupId: string, topics: string[], options: Partial<WindowedConsumerOptions> = {}): Promise<Member> {
  const entries: WindowEntry[] = []
  const seen = recordingObserver()
  const consumer = new WindowedConsumer({
    client: kafka.client,
    groupId,
    topics,
    commitIntervalMs: 50,
    settings: QUICK_MEMBER,
    observer: seen.observer,
    clock: systemClock,
    ...options,
    onEntries: (taken) => {
      entries.push(...taken)
      options.onEntries?.(taken)
    },
  })
  open.add(consumer)
  await consumer.start()
  return { consumer, entries, seen, values: () => entries.map(textOf) }
}

const drain = (consumer: WindowedConsumer, timeoutMs = 5_000): Promise<void> => {
  open.delete(consumer)
  return consumer.stop({ mode: 'drain', timeoutMs })
}

const numbered = (from: number, to: number): string[] => Array.from({ length: to - from + 1 }, (_, index) => String(from + index))

afterEach(async () => {
  await Promise.all([...open].map((consumer) => consumer.stop({ mode: 'abort', timeoutMs: 0 })))
  open.clear()
})
afterAll(() => kafka.close())

describe('the windowed consumer', () => {
  it('commits the lowest incomplete offset, and repeats after a restart what was incomplete and nothing else', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    await kafka.produce(topic, 0, numbered(0, 19))
    const first = await member(groupId, [topic])
    await eventually(() => first.entries.length === 20)
    for (const entry of first.entries) if (!['3', '7', '8', '15'].includes(textOf(entry))) entry.complete()
    const stored = await eventually(async () => {
      const committed = await kafka.committed(groupId, topic, 0)
      return committed?.offset === 3n && committed.metadata !== '' ? committed : undefined
    })
    expect(stored.metadata).toMatch(/^mo1/)
    open.delete(first.consumer)
    await first.consumer.stop({ mode: 'abort', timeoutMs: 0 })

    await kafka.produce(topic, 0, ['20'])
    const second = await member(groupId, [topic])
    await eventually(() => second.values().includes('20'))
    expect(second.values()).toEqual(['3', '7', '8', '15', '20'])
    for (const entry of second.entries) entry.complete()
    await drain(second.consumer)
    expect(await kafka.committed(groupId, topic, 0)).toEqual({ offset: 21n, metadata: '' })
  })

  it('waits at a drain for what is in work, commits it, and takes nothing new', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    await kafka.produce(topic, 0, numbered(0, 4))
    const { consumer, entries } = await member(groupId, [topic], { commitIntervalMs: 60_000 })
    await eventually(() => entries.length === 5)
    const drained = drain(consumer)
    await kafka.produce(topic, 0, ['5'])
    for (const entry of entries) entry.complete()
    await drained
    expect(entries).toHaveLength(5)
    expect(await kafka.committed(groupId, topic, 0)).toEqual({ offset: 5n, metadata: '' })
  })

  it('commits at the deadline of a drain what is done, and leaves the rest for the next owner', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    await kafka.produce(topic, 0, numbered(0, 4))
    const first = await member(groupId, [topic], { commitIntervalMs: 60_000 })
    await eventually(() => first.entries.length === 5)
    first.entries[0]?.complete()
    first.entries[3]?.complete()
    await drain(first.consumer, 100)
    expect(await kafka.committed(groupId, topic, 0)).toMatchObject({ offset: 1n })
    const second = await member(groupId, [topic])
    await eventually(() => second.values().includes('4'))
    expect(second.values()).toEqual(['1', '2', '4'])
  })

  it('loses nothing and repeats little while members join and leave', async () => {
    const groupId = uniqueName('group')
    const [high, low] = [await kafka.topic({ partitions: 4 }), await kafka.topic({ partitions: 4 })]
    const completed = new Map<string, number>()
    const complete = (taken: readonly WindowEntry[]): void => {
      for (const entry of taken) {
        systemClock.timer(Math.floor(Math.random() * 30), () => {
          if (entry.isCurrent()) completed.set(textOf(entry), (completed.get(textOf(entry)) ?? 0) + 1)
          entry.complete()
        })
      }
    }
    const expected: string[] = []
    const produce = async (round: number): Promise<void> => {
      for (const topic of [high, low]) {
        for (let partition = 0; partition < 4; partition += 1) {
          const values = numbered(0, 24).map((value) => `${round}/${topic}/${partition}/${value}`)
          expected.push(...values)
          await kafka.produce(topic, partition, values)
        }
      }
    }
    const first = await member(groupId, [high, low], { onEntries: complete })
    await produce(1)
    const gained: AssignedPartition[] = []
    const second = await member(groupId, [high, low], { onEntries: complete, onGained: (assigned) => gained.push(assigned) })
    await produce(2)
    await eventually(() => gained.length === 4)
    // Co-partitioned: a number is in the same process for both topics.
    const numbers = (topic: string) => gained.flatMap((each) => (each.topic === topic ? [each.partition] : [])).sort()
    expect(numbers(high)).toEqual(numbers(low))
    await produce(3)
    await drain(first.consumer)
    await produce(4)
    await eventually(() => completed.size === expected.length)
    expect([...completed.keys()].sort()).toEqual([...expected].sort())
    await drain(second.consumer)
    for (const topic of [high, low]) {
      for (let partition = 0; partition < 4; partition += 1) {
        expect(await kafka.committed(groupId, topic, partition)).toEqual({ offset: 100n, metadata: '' })
      }
    }
    // Nothing went to a member twice but what was in work at a rebalance: two of them, 8 partitions, 30 ms of work.
    const repeats = [...completed.values()].reduce((sum, times) => sum + times - 1, 0)
    expect(repeats).toBeLessThan(expected.length / 4)
  })

  it('keeps the epoch and delivers nothing again in a partition that it keeps through a rebalance', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic({ partitions: 2 })
    await kafka.produce(topic, 0, numbered(0, 9))
    await kafka.produce(topic, 1, numbered(10, 19))
    const lost: number[] = []
    const first = await member(groupId, [topic], { onLost: ({ partition }) => lost.push(partition) })
    await eventually(() => first.entries.length === 20)
    const second = await member(groupId, [topic])
    await eventually(() => lost.length === 1)
    await eventually(() => second.entries.length === 10)
    const kept = first.entries.filter((entry) => entry.message.partition !== lost[0])
    expect(kept.every((entry) => entry.isCurrent())).toBe(true)
    expect(first.entries.filter((entry) => entry.message.partition === lost[0]).some((entry) => entry.isCurrent())).toBe(false)
    await kafka.produce(topic, kept[0]?.message.partition ?? 0, ['last'])
    await eventually(() => first.values().includes('last'))
    expect(first.entries).toHaveLength(21)
    for (const entry of first.entries) entry.complete()
    await drain(first.consumer)
    // The completions under the lost epoch were not committed: the other member still works on them.
    expect((await kafka.committed(groupId, topic, lost[0] ?? 0))?.offset).toBe(0n)
  })

  it('pauses a full window, never holds more than twice its limit, and goes on when there is room', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    await kafka.produce(topic, 0, numbered(0, 99))
    const { consumer, entries, values, seen } = await member(groupId, [topic], { limits: { maxIncomplete: 10 } })
    await eventually(() => seen.count('PartitionPaused') > 0)
    let most = 0
    let done = 0
    while (done < 100) {
      await eventually(() => entries.length > done)
      most = Math.max(most, consumer.incompleteCount())
      entries[done]?.complete()
      done += 1
    }
    expect(most).toBe(20)
    expect(values()).toEqual(numbered(0, 99))
    await drain(consumer)
    expect(await kafka.committed(groupId, topic, 0)).toEqual({ offset: 100n, metadata: '' })
  })

  it('pauses all its partitions when the bytes in work are too many', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic({ partitions: 2 })
    const big = (name: string): string => name + 'x'.repeat(10_000)
    for (const partition of [0, 1]) await kafka.produce(topic, partition, numbered(0, 19).map(big))
    const { consumer, entries, seen } = await member(groupId, [topic], { maxBytes: 50_000 })
    await eventually(() => seen.count('PartitionPaused') >= 2)
    expect(consumer.incompleteCount()).toBeLessThanOrEqual(10)
    for (let done = 0; done < 40; done += 1) {
      await eventually(() => entries.length > done)
      entries[done]?.complete()
    }
    await drain(consumer)
    for (const partition of [0, 1]) expect((await kafka.committed(groupId, topic, partition))?.offset).toBe(20n)
  })

  it('commits past a tail of transaction markers and aborted records', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    await kafka.produceInTransaction(topic, 0, ['a', 'b'], 'commit')
    const { consumer, entries, values } = await member(groupId, [topic])
    await eventually(() => entries.length === 2)
    for (const entry of entries) entry.complete()
    await eventually(async () => (await kafka.committed(groupId, topic, 0))?.offset === 3n)
    await kafka.produceInTransaction(topic, 0, ['c', 'd'], 'abort')
    await eventually(async () => (await kafka.committed(groupId, topic, 0))?.offset === 6n)
    expect(values()).toEqual(['a', 'b'])
    expect(consumer.incompleteCount()).toBe(0)
  })

  it.each([
    ['of another program', () => 'lAAECAw==', 'foreign'],
    ['of a later version', () => 'mo9gAAAA', 'version'],
    ['that is damaged', () => 'mo1gAAAAAAA', 'corrupt'],
    [
      'beyond the log',
      () => {
        const encoded = encodeOffsetMap({ span: 90, incomplete: [0] }, 2n)
        return encoded.kind === 'map' ? encoded.text : ''
      },
      'beyond-log-end',
    ],
  ])('drops and counts metadata %s, and reads on from the offset', async (_, metadata, reason) => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    await kafka.produce(topic, 0, numbered(0, 4))
    await kafka.commit(groupId, topic, 0, 2n, metadata())
    const { entries, values, seen } = await member(groupId, [topic])
    await eventually(() => entries.length === 3)
    expect(values()).toEqual(['2', '3', '4'])
    expect(seen.count('OffsetMapDropped', { group: groupId, reason })).toBe(1)
  })

  it.each([
    ['below its beginning', 1n, 'below-log-start'],
    ['beyond its end', 500n, 'beyond-log-end'],
  ])('says so when the committed offset lies outside of the log, %s, and reads what is there', async (_, offset, reason) => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    await kafka.produce(topic, 0, numbered(0, 9))
    await kafka.deleteRecordsBelow(topic, 0, 6n)
    await kafka.commit(groupId, topic, 0, offset, '')
    const { consumer, entries, values, seen } = await member(groupId, [topic])
    // The end of a log is not believed at the first look.
    await eventually(() => entries.length === 4)
    expect(values()).toEqual(['6', '7', '8', '9'])
    expect(seen.count('OffsetOutOfRange', { reason })).toBe(1)
    for (const entry of entries) entry.complete()
    await drain(consumer)
    expect((await kafka.committed(groupId, topic, 0))?.offset).toBe(10n)
  })

  it('repeats nothing that was completed behind what retention has deleted', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    await kafka.produce(topic, 0, numbered(0, 11))
    await kafka.deleteRecordsBelow(topic, 0, 4n)
    // Of 2 to 9 all but 2, 3 and 7.
    const encoded = encodeOffsetMap({ span: 8, incomplete: [0, 1, 5] }, 2n)
    await kafka.commit(groupId, topic, 0, 2n, encoded.kind === 'map' ? encoded.text : '')
    const { consumer, values, entries } = await member(groupId, [topic])
    await eventually(() => values().includes('11'))
    expect(values()).toEqual(['7', '10', '11'])
    await eventually(async () => (await kafka.committed(groupId, topic, 0))?.offset === 7n)
    for (const entry of entries) entry.complete()
    await drain(consumer)
    expect(await kafka.committed(groupId, topic, 0)).toEqual({ offset: 12n, metadata: '' })
  })

  it('goes on at the new beginning when what it reads next was deleted under it', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    await kafka.produce(topic, 0, numbered(0, 29))
    const { consumer, entries, values, seen } = await member(groupId, [topic], { limits: { maxIncomplete: 5 } })
    await eventually(() => seen.count('PartitionPaused') > 0 && entries.length === 10)
    await kafka.deleteRecordsBelow(topic, 0, 25n)
    for (const entry of [...entries]) entry.complete()
    await eventually(() => values().includes('29'))
    expect(values()).toEqual([...numbered(0, 9), ...numbered(25, 29)])
    expect(seen.count('OffsetOutOfRange', { reason: 'while-reading' })).toBe(1)
    for (const entry of entries) entry.complete()
    await drain(consumer)
    expect(await kafka.committed(groupId, topic, 0)).toEqual({ offset: 30n, metadata: '' })
  })

  it('commits offsets alone on a broker that takes no map, and says so', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    await kafka.produce(topic, 0, numbered(0, 4))
    const isolated: KafkaClient['isolated'] = (onLog) => {
      const created = kafka.client.isolated(onLog)
      const consumerOf = created.consumer.bind(created)
      created.consumer = (config) => {
        const consumer = consumerOf(config)
        const commit = consumer.commitOffsets
        // As a broker with a small offset.metadata.max.bytes answers.
        consumer.commitOffsets = async (offsets) => {
          if (offsets.some(({ metadata }) => metadata)) throw Object.assign(new Error('too large'), { type: 'OFFSET_METADATA_TOO_LARGE' })
          return commit(offsets)
        }
        return consumer
      }
      return created
    }
    const { entries, seen } = await member(groupId, [topic], { client: { ...kafka.client, isolated } })
    await eventually(() => entries.length === 5)
    entries[0]?.complete()
    entries[3]?.complete()
    await eventually(async () => (await kafka.committed(groupId, topic, 0))?.offset === 1n)
    expect(seen.count('OffsetMapDropped', { reason: 'refused' })).toBe(1)
  })

  it('fails, and says why, when the handler throws', async () => {
    const groupId = uniqueName('group')
    const topic = await kafka.topic()
    const { consumer } = await member(groupId, [topic], {
      onEntries: () => {
        throw new Error('the handler broke')
      },
    })
    open.delete(consumer)
    await kafka.produce(topic, 0, ['a'])
    await expect(consumer.closed).rejects.toThrow('the handler broke')
    expect((await kafka.committed(groupId, topic, 0))?.offset ?? 0n).toBe(0n)
  })

  it('refuses to start on a topic that does not exist', async () => {
    await expect(member(uniqueName('group'), [uniqueName('missing')])).rejects.toMatchObject({ code: 'KAFKA_TOPIC_MISSING' })
    open.clear()
  })
})
