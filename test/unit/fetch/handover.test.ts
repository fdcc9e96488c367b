import { describe, expect, it } from 'vitest'
import { Handover } from '../../../src/fetch/handover.ts'
import type { QueuedTask } from '../../../src/fetch/queued-task.ts'
import { StoreGate } from '../../../src/fetch/store-gate.ts'
import { partitionId } from '../../../src/kernel/brand.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const LEASE_MS = 125_000
const PARTITION = { topic: 'urls', partition: 0, epoch: 1 }

const queuedTask = (taskId: string, hops = 0): QueuedTask =>
  ({ window: partitionId('urls', 0), task: { taskId, attempt: 1 }, walk: { hops } }) as unknown as QueuedTask

/** Workers over one store, which keeps notes as the real ones do. */
function rig() {
  const clock = new ManualClock()
  const notes = new Map<string, number>()
  let answering: Promise<void> = Promise.resolve()
  const working: Promise<void>[] = []
  const state = {
    noteUnderWay: async (attempts: readonly { taskId: string }[], ttlMs: number) => {
      await answering
      for (const { taskId } of attempts) notes.set(taskId, clock.mono() + ttlMs)
    },
    isUnderWay: async (attempts: readonly { taskId: string }[]) => attempts.map(({ taskId }) => (notes.get(taskId) ?? 0) > clock.mono()),
  }
  const worker = (own = clock): Handover => {
    const gate = new StoreGate({ clock: own, observer: silentObserver, signal: new AbortController().signal })
    return new Handover({ state, gate, leaseMs: LEASE_MS, work: (run) => void working.push(run()), clock: own })
  }
  return {
    worker,
    clock,
    /** Writes its notes, and does nothing any more when it is killed. */
    mortal: (): Handover => worker(new ManualClock()),
    /** From now on the store answers when it is told to. */
    hold: (): (() => void) => {
      let release = (): void => undefined
      answering = new Promise((resolve) => {
        release = resolve
      })
      return release
    },
    settled: async (): Promise<void> => {
      await Promise.all(working)
      await clock.advance(2)
    },
  }
}

describe('the handover of a partition', () => {
  it('keeps the next owner from what is on the wire, and leaves the note where the store knows the end', async () => {
    const { worker, settled } = rig()
    const [first, second, task] = [worker(), worker(), queuedTask('a')]
    first.begun(task)
    second.gained(PARTITION)
    await first.lost(PARTITION)
    expect(await second.isElsewhere(task)).toBe(true)
    first.over(task, true)
    await settled()
    // The next owner asks now and then whether it is finished: without the note it would ask the site before that.
    expect(await second.isElsewhere(task)).toBe(true)
  })

  it('keeps nobody from what had its turn and was not asked for, the same worker included', async () => {
    const { worker, settled } = rig()
    const [first, task] = [worker(), queuedTask('a')]
    first.begun(task)
    await first.lost(PARTITION)
    // Dropped, since its partition is gone; that comes back to the same worker when the broker was away.
    first.over(task, false)
    first.gained(PARTITION)
    await settled()
    expect(await first.isElsewhere(queuedTask('a'))).toBe(false)
  })

  it('leaves no note of what ended while it was being noted', async () => {
    const { worker, hold, settled } = rig()
    const [first, task] = [worker(), queuedTask('a')]
    first.begun(task)
    const release = hold()
    const noted = first.lost(PARTITION)
    first.over(task, false)
    release()
    await noted
    first.gained(PARTITION)
    await settled()
    expect(await first.isElsewhere(task)).toBe(false)
  })

  it('keeps its note while a chain goes on with its next hop', async () => {
    const { worker, settled } = rig()
    const [first, second, task] = [worker(), worker(), queuedTask('a')]
    first.begun(task)
    second.gained(PARTITION)
    await first.lost(PARTITION)
    const hop = queuedTask('a', 1)
    first.follows(task, hop)
    first.over(task, false)
    await settled()
    expect(await second.isElsewhere(task)).toBe(true)
    first.over(hop, false)
    await settled()
    expect(await second.isElsewhere(task)).toBe(false)
  })

  it('is kept up for as long as the request takes', async () => {
    const { worker, clock } = rig()
    const [first, second, task] = [worker(), worker(), queuedTask('a')]
    first.begun(task)
    second.gained(PARTITION)
    await first.lost(PARTITION)
    for (let second = 0; second < 60; second += 1) await clock.advance(1_000)
    expect(await second.isElsewhere(task)).toBe(true)
  })

  it('ends where the worker ends: a chain that waits for its next hop goes on with the next owner, in the same process too', async () => {
    const { worker, clock, settled } = rig()
    const [first, second, task] = [worker(), worker(), queuedTask('a')]
    const hop = queuedTask('a', 1)
    first.begun(task)
    second.gained(PARTITION)
    await first.rebalancing()
    first.follows(task, hop)
    expect(await second.isElsewhere(task)).toBe(true)
    first.close()
    await settled()
    expect(await second.isElsewhere(task)).toBe(false)
    await clock.advance(15_000)
    expect(await second.isElsewhere(task)).toBe(false)
  })

  it('is over soon where the worker that wrote the notes was killed', async () => {
    const { worker, mortal, clock } = rig()
    const [first, second, task] = [mortal(), worker(), queuedTask('a')]
    first.begun(task)
    second.gained(PARTITION)
    await first.lost(PARTITION)
    expect(await second.isElsewhere(task)).toBe(true)
    await clock.advance(15_000)
    expect(await second.isElsewhere(task)).toBe(false)
  })

  it('tells how long it may take at most', async () => {
    const { worker, clock } = rig()
    const [second, task] = [worker(), queuedTask('a')]
    expect(second.leftMs(task)).toBe(0)
    second.gained(PARTITION)
    await clock.advance(5_000)
    expect(second.leftMs(task)).toBe(LEASE_MS - 5_000)
    await clock.advance(LEASE_MS)
    expect(second.leftMs(task)).toBe(0)
  })

  it('asks nobody about partitions that it has had for longer than a request can take', async () => {
    const { worker, settled } = rig()
    const [first, second, task] = [worker(), worker(), queuedTask('a')]
    first.begun(task)
    await first.lost(PARTITION)
    expect(await second.isElsewhere(task)).toBe(false)
    await settled()
  })
})
