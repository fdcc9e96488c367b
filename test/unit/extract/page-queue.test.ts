import { describe, expect, it } from 'vitest'
import { PageQueue } from '../../../src/extract/page-queue.ts'
import { shareOf } from '../../../src/extract/partition-port.ts'
import type { KafkaMessage } from '../../../src/kafka/message.ts'

const MAX_BYTES = 1_000_000
const MAX_PAGES = 500
const LIMITS = { maxWaitingBytes: MAX_BYTES, maxWaitingPages: MAX_PAGES }
const FETCHED = 10

/** Partitions of one worker, none of which works a page until it is asked to, and all that Kafka would send them. */
class Worker {
  readonly queues: PageQueue[] = []
  readonly paused = new Set<PageQueue>()
  readonly #offsets = new Map<PageQueue, bigint>()
  readonly #bytes: number
  /** Of each partition. */
  pagesAhead = 0

  constructor(partitions: number, bytes: number) {
    this.#bytes = bytes
    for (let index = 0; index < partitions; index += 1) {
      const queue: PageQueue = new PageQueue({
        limits: () => shareOf(LIMITS, this.queues.filter(({ hasWaiting }) => hasWaiting).length),
        ahead: () => this.pagesAhead,
        pause: () => void this.paused.add(queue),
        resume: () => void this.paused.delete(queue),
        process: async ({ offset }) => ({ offset, messages: [], totals: new Map(), counts: 'page' }),
      })
      this.queues.push(queue)
      this.#offsets.set(queue, 0n)
    }
  }

  /** One fetch of those that are read. Shape: how many pages came. */
  fetch(): number {
    let came = 0
    for (const queue of this.queues) {
      if (this.paused.has(queue)) continue
      const from = this.#offsets.get(queue) ?? 0n
      const messages = Array.from({ length: FETCHED }, (_, index): KafkaMessage => {
        const value = Buffer.alloc(this.#bytes)
        return { topic: 'html', partition: 0, offset: from + BigInt(index), timestamp: 0, key: null, value, headers: {} }
      })
      this.#offsets.set(queue, from + BigInt(FETCHED))
      queue.add(messages, from + BigInt(FETCHED))
      came += FETCHED
    }
    return came
  }

  fetchAll(): number {
    let waiting = 0
    for (let came = this.fetch(); came > 0; came = this.fetch()) waiting += came
    return waiting
  }
}

describe('pages that wait in memory', () => {
  it.each([1, 4, 48])('are as many in a worker of %i partitions, by bytes and by number, but for a fetch of each', (partitions) => {
    const over = partitions * FETCHED
    const large = new Worker(partitions, 10_000).fetchAll()
    expect(large).toBeGreaterThan(MAX_BYTES / 10_000)
    expect(large).toBeLessThanOrEqual(MAX_BYTES / 10_000 + over)
    const small = new Worker(partitions, 10).fetchAll()
    expect(small).toBeGreaterThan(MAX_PAGES)
    expect(small).toBeLessThanOrEqual(MAX_PAGES + over)
  })

  it('are read on when half of the share is worked, which grows as others run dry', async () => {
    const worker = new Worker(2, 10)
    worker.fetchAll()
    const [first, second] = worker.queues
    worker.pagesAhead = 1
    let worked = 0
    while (first !== undefined && worker.paused.has(first)) {
      expect(await first.next()).toBeDefined()
      worked += 1
    }
    // 250 of 500, and those of a fetch over.
    expect(worked).toBeGreaterThanOrEqual(125)
    expect(worked).toBeLessThanOrEqual(125 + FETCHED)
    while (second?.hasWaiting === true) await second.next()
    expect(second !== undefined && worker.paused.has(second)).toBe(false)
    // Alone it may have all of it.
    let alone = 0
    while (first !== undefined && !worker.paused.has(first) && alone < 1_000) {
      const from = BigInt(10_000 + alone)
      first.add([{ topic: 'html', partition: 0, offset: from, timestamp: 0, key: null, value: Buffer.alloc(10), headers: {} }], from + 1n)
      alone += 1
    }
    expect(alone).toBeGreaterThan(300)
    expect(alone).toBeLessThanOrEqual(MAX_PAGES)
  })
})
