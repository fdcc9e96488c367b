import { describe, expect, it } from 'vitest'
import type { KafkaMessage } from '../../../src/kafka/message.ts'
import { OffsetTracker } from '../../../src/kafka/offset-tracker.ts'
import { PartitionWindow } from '../../../src/kafka/partition-window.ts'

const message = (offset: bigint, bytes = 0): KafkaMessage => ({
  topic: 't',
  partition: 0,
  offset,
  timestamp: 0,
  key: null,
  value: Buffer.alloc(bytes),
  headers: {},
})

function window(): {
  window: PartitionWindow
  freed: number[]
  take: (offset: bigint, bytes?: number) => ReturnType<PartitionWindow['take']>
} {
  const created = new PartitionWindow({ topic: 't', partition: 0, epoch: 7 }, new OffsetTracker(0n))
  const freed: number[] = []
  return { window: created, freed, take: (offset, bytes) => created.take(message(offset, bytes), 1, (count) => freed.push(count)) }
}

describe('the window of a partition', () => {
  it('holds the bytes of what is in work, and frees them when it is complete', () => {
    const { window: held, freed, take } = window()
    const entry = take(0n, 1_000)
    take(1n, 5_000)
    expect(held.bytes).toBeGreaterThan(6_000)
    entry?.complete()
    entry?.complete()
    expect(freed).toHaveLength(1)
    expect(freed[0]).toBeGreaterThan(1_000)
    expect(held.bytes).toBeLessThan(6_000)
  })

  it('shows the entry that holds back the commit', () => {
    const { window: held, take } = window()
    const first = take(0n)
    const second = take(1n)
    expect(held.base).toBe(first)
    first?.complete()
    expect(held.base).toBe(second)
    second?.complete()
    expect(held.base).toBeUndefined()
  })

  it('gives out no message twice', () => {
    const { take } = window()
    expect(take(0n)).toBeDefined()
    expect(take(0n)).toBeUndefined()
  })

  it('is over once it is lost: its entries say so, and completing them does nothing', () => {
    const { window: held, freed, take } = window()
    const entry = take(0n, 1_000)
    expect(entry?.isCurrent()).toBe(true)
    expect(entry?.epoch).toBe(7)
    expect(held.lose()).toBeGreaterThan(1_000)
    expect(entry?.isCurrent()).toBe(false)
    entry?.complete()
    expect(freed).toEqual([])
    expect(held.bytes).toBe(0)
    expect(held.tracker.committableOffset).toBe(0n)
  })

  it('commits under its epoch, with the map or without', () => {
    const { window: held, take } = window()
    take(0n)
    take(1n)?.complete()
    expect(held.pendingCommit()?.commit).toEqual({
      topic: 't',
      partition: 0,
      epoch: 7,
      offset: 0n,
      metadata: expect.stringMatching(/^mo1/),
    })
    held.withoutMap = true
    expect(held.pendingCommit()?.commit.metadata).toBe('')
  })
})
