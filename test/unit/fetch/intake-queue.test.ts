import { describe, expect, it } from 'vitest'
import { IntakeQueue } from '../../../src/fetch/intake-queue.ts'
import type { WindowEntry } from '../../../src/kafka/window-entry.ts'
import type { Lane } from '../../../src/message/generated/types.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const entry = (lane: Lane, offset: number): WindowEntry => ({
  message: { topic: lane, partition: 0, offset: BigInt(offset), timestamp: 0, key: null, value: null, headers: {} },
  epoch: 1,
  takenMono: 0,
  isCurrent: () => true,
  complete: () => undefined,
})
const entries = (lane: Lane, count: number): WindowEntry[] => Array.from({ length: count }, (_, index) => entry(lane, index))

function open({ onBatch }: { onBatch?: (queue: IntakeQueue) => void } = {}): {
  queue: IntakeQueue
  batches: WindowEntry[][]
  ended: Promise<void>[]
} {
  const batches: WindowEntry[][] = []
  const ended: Promise<void>[] = []
  const queue = new IntakeQueue({
    laneOf: ({ message }) => message.topic as Lane,
    sort: async (batch) => {
      batches.push([...batch])
      onBatch?.(queue)
      return []
    },
    onVerdicts: () => undefined,
    work: (run) => void ended.push(run()),
    clock: new ManualClock(),
    random: () => 0.5,
    signal: new AbortController().signal,
  })
  return { queue, batches, ended }
}

describe('what was read and waits to be looked at', () => {
  it('is looked at in small batches, each lane in its order', async () => {
    const { queue, batches, ended } = open()
    queue.add(entries('normal', 950))
    await Promise.all(ended)
    expect(Math.max(...batches.map(({ length }) => length))).toBeLessThanOrEqual(100)
    expect(batches.flat().map(({ message }) => Number(message.offset))).toEqual(Array.from({ length: 950 }, (_, index) => index))
  })

  it('says while there is more of it than one look takes in', async () => {
    const seen: boolean[] = []
    const { queue, ended } = open({ onBatch: (own) => seen.push(own.isBehind) })
    queue.add(entries('low', 250))
    queue.add(entries('high', 150))
    expect(queue.isBehind).toBe(true)
    await Promise.all(ended)
    expect(seen).toEqual([true, true, false, false])
    expect(queue.isBehind).toBe(false)
  })

  it('lets the high lane go first, whatever waits of the others', async () => {
    const { queue, batches, ended } = open()
    queue.add(entries('low', 3_000))
    queue.add(entries('high', 20))
    await Promise.all(ended)
    const places = batches.flatMap((batch, at) => batch.filter(({ message }) => message.topic === 'high').map(() => at))
    expect(places).toHaveLength(20)
    expect(Math.max(...places)).toBeLessThanOrEqual(1)
  })

  it('takes nothing up while it is held, and all of it afterwards', async () => {
    const { queue, batches, ended } = open()
    queue.hold()
    queue.add(entries('normal', 150))
    queue.add(entries('high', 5))
    await Promise.all(ended)
    expect(batches).toEqual([])
    queue.release()
    await Promise.all(ended)
    expect(batches.flat()).toHaveLength(155)
    queue.release()
    queue.add(entries('low', 1))
    await Promise.all(ended)
    expect(batches.flat()).toHaveLength(156)
  })

  it('ends with the batch that is looked at where it is held meanwhile', async () => {
    const { queue, batches, ended } = open({ onBatch: (own) => own.hold() })
    queue.add(entries('normal', 250))
    await Promise.all(ended)
    expect(batches.map(({ length }) => length)).toEqual([100])
    queue.release()
    await Promise.all(ended)
    expect(batches.map(({ length }) => length)).toEqual([100, 100])
  })

  it('gives every lane its places in each batch while a higher one could fill it', async () => {
    const { queue, batches, ended } = open()
    queue.add(entries('high', 2_000))
    queue.add(entries('normal', 2_000))
    queue.add(entries('low', 200))
    await Promise.all(ended)
    for (const batch of batches.slice(1, 15)) {
      for (const lane of ['normal', 'low']) expect(batch.filter(({ message }) => message.topic === lane)).toHaveLength(10)
    }
    expect(batches.flat()).toHaveLength(4_200)
  })
})
