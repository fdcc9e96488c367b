import { describe, expect, it } from 'vitest'
import { type DelayHandlers, DelayWorker } from '../../../src/delay/delay-worker.ts'
import { OffsetTracker } from '../../../src/kafka/offset-tracker.ts'
import { PartitionWindow } from '../../../src/kafka/partition-window.ts'
import type { WindowEntry } from '../../../src/kafka/window-entry.ts'
import { BaseService } from '../../../src/kernel/lifecycle.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { createMessageCodec } from '../../../src/message/codec.ts'
import { HEADER } from '../../../src/message/header-names.ts'
import { createSchemaStore } from '../../../src/message/schema-store.ts'
import { topicNames } from '../../../src/message/topics.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { SeededRandom } from '../../support/random.ts'

const topics = topicNames('scrape')
const TOPIC = topics.delays[0]?.topic ?? ''
const DUE_WITHIN_MS = 60_000
const TICK_MS = 100
const READ_AT_ONCE = 2_000

/** One partition of the shortest topic, read as the consumer reads it: paused while its window is full, committed once a second. */
class OnePartition extends BaseService {
  readonly #handlers: DelayHandlers
  readonly #window: PartitionWindow
  readonly #log: readonly { readonly at: number; readonly dueAt: number }[]
  #isPaused = false

  constructor(handlers: DelayHandlers, log: readonly { readonly at: number; readonly dueAt: number }[]) {
    super()
    this.#handlers = handlers
    this.#log = log
    const assigned = { topic: TOPIC, partition: 0, epoch: 1 }
    this.#window = new PartitionWindow(assigned, new OffsetTracker(0n, undefined, { limits: handlers.limits(TOPIC) }))
  }

  bases(): readonly WindowEntry[] {
    return this.#window.base === undefined ? [] : [this.#window.base]
  }

  commit(): void {
    const committable = this.#window.tracker.committable()
    if (committable !== undefined) this.#window.tracker.stored(committable)
  }

  read(now: number, value: Buffer): void {
    const { tracker } = this.#window
    if (this.#isPaused && !tracker.hasRoom) return
    const entries: WindowEntry[] = []
    for (let index = Number(tracker.position); entries.length < READ_AT_ONCE && !tracker.isOverfull; index += 1) {
      const next = this.#log[index]
      if (next === undefined || next.at > now) break
      const headers = { [HEADER.dueMs]: Buffer.from(String(next.dueAt)) }
      const message = { topic: TOPIC, partition: 0, offset: BigInt(index), timestamp: next.at, key: null, value, headers }
      const entry = this.#window.take(message, now, () => undefined)
      if (entry !== undefined) entries.push(entry)
    }
    if (entries.length > 0) this.#handlers.onEntries(entries)
    this.#isPaused = tracker.isFull
  }

  protected async onStart(): Promise<void> {}
  protected async onDrain(): Promise<void> {}
}

describe('a partition of the shortest delay topic', () => {
  it('gives every task back within a second, with 1,000 of them a second and due times of a minute', async () => {
    const rate = 1_000
    const clock = new ManualClock()
    const codec = createMessageCodec({ schemaStore: createSchemaStore() })
    const value = codec.encode('UrlTask', newUrlTask({ url: 'https://shop.example/' }), TOPIC)
    const random = new SeededRandom(7)
    const log = Array.from({ length: rate * 70 }, (_, index) => {
      const at = (index * 1_000) / rate
      return { at, dueAt: Math.ceil(at + random.between(0, DUE_WITHIN_MS)) }
    })
    // The time at which each comes back is counted, and which one it is does not matter: what is late shows as a backlog.
    let back = 0
    let partition: OnePartition | undefined
    const worker = new DelayWorker({
      createConsumer: (handlers) => (partition = new OnePartition(handlers, log)),
      producer: {
        send: async (messages) => {
          back += messages.filter(({ topic }) => topic === topics.urls.normal).length
        },
      },
      codec,
      topics,
      layout: () => ({ version: 1, partitionsOf: () => 1, knows: () => true, countsOf: () => [1] }),
      clusterId: 'cluster',
      deadLetterMaxBytes: 1_048_576,
      clock,
      observer: silentObserver,
    })
    await worker.start()
    const dues = log.map(({ dueAt }) => dueAt).sort((a, b) => a - b)
    let due = 0
    let mostLate = 0
    for (let now = 0; now <= 55_000; now += TICK_MS) {
      partition?.read(now, value)
      if (now % 1_000 === 0) partition?.commit()
      await clock.advance(TICK_MS)
      while ((dues[due] ?? Number.POSITIVE_INFINITY) <= now - 1_000) due += 1
      mostLate = Math.max(mostLate, due - back)
    }
    expect(due).toBeGreaterThan(rate * 20)
    expect(mostLate).toBe(0)
    await worker.stop({ mode: 'abort', timeoutMs: 0 })
  })
})
