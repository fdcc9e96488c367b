import { beforeEach, describe, expect, it } from 'vitest'
import { PartitionCounts } from '../../../src/extract/partition-counts.ts'
import type { PartitionLayout } from '../../../src/kafka/layout.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { ManualClock } from '../../support/manual-clock.ts'

let clock: ManualClock
let known: Record<string, number>
let there: Record<string, number>
let asked: number
let failure: Error | undefined
beforeEach(() => {
  clock = new ManualClock()
  known = { records: 8 }
  there = { records: 8 }
  asked = 0
  failure = undefined
})

const layout = (): PartitionLayout => ({
  version: 1,
  knows: (topic) => known[topic] !== undefined,
  partitionsOf: (topic) => known[topic] ?? Number.NaN,
  countsOf: (topic) => [known[topic] ?? Number.NaN],
})
const looked = async (): Promise<PartitionCounts> => {
  const partitions = async (topic: string): Promise<number[]> => {
    asked += 1
    if (failure !== undefined) throw failure
    return Array.from({ length: there[topic] ?? 0 }, (_, index) => index)
  }
  const counts = new PartitionCounts({ layout, partitions, clock })
  await counts.look(Object.keys(there))
  return counts
}
const never = new AbortController().signal

describe('partitions of the topics that extraction writes to', () => {
  it('are those of the layout, which may grow, and nobody asks again', async () => {
    const counts = await looked()
    await counts.follow(never)
    known.records = 12
    expect([counts.of('records'), asked]).toEqual([12, 1])
  })

  it('are as many as there were at the start for a topic that the layout does not know, until it does', async () => {
    there = { shadow: 3 }
    const counts = await looked()
    there.shadow = 6
    await counts.follow(never)
    expect(counts.of('shadow')).toBe(3)
    known.shadow = 6
    expect(counts.of('shadow')).toBe(6)
  })

  it('are fewer than the layout says only as long as the topic has fewer', async () => {
    there.records = 4
    const counts = await looked()
    const followed = counts.follow(never)
    await clock.advance(400)
    expect(counts.of('records')).toBe(4)
    there.records = 8
    await clock.advance(200)
    expect(counts.of('records')).toBe(8)
    await followed
    expect(clock.armedCount).toBe(0)
  })

  it('are asked for once a minute in the end, also where the broker was away', async () => {
    there.records = 4
    const counts = await looked()
    const followed = counts.follow(never)
    failure = new MillraceError('KAFKA_UNREACHABLE', 'away')
    await clock.advance(600_000)
    expect(asked).toBeLessThan(20)
    failure = undefined
    there.records = 8
    await clock.advance(60_000)
    await followed
    expect(counts.of('records')).toBe(8)
  })

  it('are not asked for any more when it stops', async () => {
    there.records = 4
    const stop = new AbortController()
    const followed = (await looked()).follow(stop.signal)
    stop.abort(new Error('stopped'))
    await followed
    expect([asked, clock.armedCount]).toEqual([1, 0])
  })
})
