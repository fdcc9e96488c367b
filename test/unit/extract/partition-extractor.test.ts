import { describe, expect, it } from 'vitest'
import { NO_TOTALS } from '../../../src/extract/offset-metadata.ts'
import { DEFAULT_LIMITS, PartitionExtractor } from '../../../src/extract/partition-extractor.ts'
import type { KafkaMessage } from '../../../src/kafka/message.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { eventually } from '../../support/eventually.ts'

const PAGES = 60
const PAGE_MS = 100

/** Offsets that a partition commits, one after the other, on a log of 60 pages that take 100 ms each. */
async function commitsOf(hasRecord: boolean): Promise<number[]> {
  const commits: number[] = []
  let nowMs = 0
  const log = Array.from({ length: PAGES }, (_, index): KafkaMessage => {
    return { topic: 'html', partition: 0, offset: BigInt(index), timestamp: 0, key: null, value: Buffer.from('x'), headers: {} }
  })
  const extractor: PartitionExtractor = new PartitionExtractor({
    assigned: { topic: 'html', partition: 0, epoch: 1 },
    group: 'g',
    port: {
      readControl: async () => undefined,
      logBounds: async () => ({ low: 0n, end: BigInt(PAGES) }),
      pause: () => undefined,
      resume: () => undefined,
      refuseReplay: () => undefined,
      isReplayClosed: () => false,
      isReplayCancelled: () => false,
      replayRate: () => undefined,
      replayOrder: () => undefined,
      replayDone: () => undefined,
      readFrom: () => void setImmediate(() => extractor.accept(log, BigInt(PAGES))),
      process: async ({ offset }) => {
        nowMs += PAGE_MS
        const messages = hasRecord ? [{ topic: 'records', partition: 0, key: String(offset), value: Buffer.from('r') }] : []
        return { offset, messages, totals: new Map(hasRecord ? [['e', { ...NO_TOTALS, pages: 1, records: 1 }]] : []), replayed: false }
      },
      transactions: {
        fence: async () => ({ offset: undefined, metadata: '' }),
        commit: async (_messages, offset) => void commits.push(Number(offset)),
        close: async () => undefined,
      },
    },
    limits: { ...DEFAULT_LIMITS, pagesAhead: 1 },
    clock: { ...systemClock, mono: () => nowMs },
    observer: silentObserver,
  })
  await eventually(() => commits.at(-1) === PAGES, { what: 'the end of the log', everyMs: 1 })
  extractor.drain()
  await extractor.finished
  return commits
}

describe('a partition of the extract stage with a backlog', () => {
  it('gathers the records of two and a half seconds for one transaction, since each costs as much as many records', async () => {
    const [first = 0, second = 0] = await commitsOf(true)
    expect(first).toBeGreaterThanOrEqual(24)
    expect(first).toBeLessThanOrEqual(27)
    expect(second - first).toBeGreaterThanOrEqual(24)
  })

  it('commits pages without records every half second', async () => {
    const [first = 0, second = 0] = await commitsOf(false)
    expect(first).toBeLessThanOrEqual(7)
    expect(second - first).toBeLessThanOrEqual(7)
  })
})
