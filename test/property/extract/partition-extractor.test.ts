import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeMetadata, encodeMetadata, freshMetadata, NO_TOTALS } from '../../../src/extract/offset-metadata.ts'
import { PartitionExtractor } from '../../../src/extract/partition-extractor.ts'
import type { ProcessedPage } from '../../../src/extract/partition-port.ts'
import { DEFAULT_LIMITS, type PartitionPort } from '../../../src/extract/partition-port.ts'
import { RatePace } from '../../../src/extract/rate-pace.ts'
import type { ReplayOrder } from '../../../src/extract/replay-step.ts'
import type { KafkaMessage, OutgoingMessage } from '../../../src/kafka/message.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { eventually } from '../../support/eventually.ts'

type Fate = 'commits' | 'fails' | 'commits-and-fails' | 'page-fails'

/** A log of pages and a broker that keeps its promises, seen through a port that fails as it is told. */
class Partition {
  readonly records: string[] = []
  offset: bigint | undefined
  metadata = ''
  /** What `control` holds. */
  order: ReplayOrder | undefined
  cancelled: string | undefined
  readonly #fates: Fate[]
  readonly #size: number
  readonly #batch: number
  extractor: PartitionExtractor | undefined
  /** Short: live work and a replay take turns after each transaction. */
  turnMs = 3_000
  /** Pages per second of a replay; pages that wait for it are given back when live work is to have its turn. */
  rate: number | undefined
  givenBack = 0
  /** Pages of a replay that were begun, or wait for their moment. */
  waiting = 0
  readonly #pace = new RatePace(systemClock)
  /** Offsets that were committed, in order. */
  readonly offsets: bigint[] = []
  #delivery = 0

  constructor(size: number, batch: number, fates: readonly Fate[]) {
    this.#size = size
    this.#batch = batch
    this.#fates = [...fates]
  }

  start(): PartitionExtractor {
    this.extractor = new PartitionExtractor({
      assigned: { topic: 'html', partition: 0, epoch: 1 },
      group: 'g',
      port: this.#port(),
      limits: { ...DEFAULT_LIMITS, maxPages: 7, maxGatherMs: 2, maxBusyGatherMs: 4, replayTurnMs: this.turnMs },
      clock: { ...systemClock, sleep: async (_ms, signal) => signal?.throwIfAborted() },
      observer: silentObserver,
    })
    return this.extractor
  }

  #port(): PartitionPort {
    return {
      readControl: async () => undefined,
      logBounds: async () => ({ low: 0n, stableEnd: BigInt(this.#size), end: BigInt(this.#size) }),
      pause: () => undefined,
      resume: () => undefined,
      waitingPartitions: () => 1,
      refuseReplay: () => undefined,
      isReplayClosed: () => false,
      isReplayCancelled: (replayId) => replayId === this.cancelled,
      replayOrder: () => (this.order?.replayId === this.cancelled ? undefined : this.order),
      rate: (replayId) => (replayId === undefined ? undefined : this.rate),
      replayDone: () => undefined,
      readFrom: (offset) => this.#deliver(offset),
      process: async (message, { replayId }, giveBack) => {
        if (replayId !== undefined) this.waiting += 1
        if (replayId !== undefined && !(await this.#pace.next(this.rate, giveBack))) {
          this.givenBack += 1
          return undefined
        }
        if (this.#fates[0] === 'page-fails') {
          this.#fates.shift()
          throw new MillraceError('REGISTRY_UNREACHABLE', 'away')
        }
        return page(message, replayId)
      },
      transactions: {
        fence: async () => ({ offset: this.offset, metadata: this.metadata }),
        commit: async (messages, offset, metadata) => this.#commit(messages, offset, metadata),
        close: async () => undefined,
      },
    }
  }

  #commit(messages: readonly OutgoingMessage[], offset: bigint, metadata: string): void {
    const fate = this.#fates.shift() ?? 'commits'
    if (fate === 'fails' || fate === 'page-fails') throw new MillraceError('KAFKA_TRANSACTION_FAILED', 'no')
    this.records.push(...messages.map(({ key }) => String(key)))
    this.offset = offset
    this.metadata = metadata
    this.offsets.push(offset)
    if (fate === 'commits-and-fails') throw new MillraceError('KAFKA_TRANSACTION_FAILED', 'who knows')
  }

  /** Like the consumer loop: in pieces, later, without a hole from where it was told last. */
  #deliver(offset: bigint): void {
    this.#delivery += 1
    const delivery = this.#delivery
    const messages = Array.from({ length: this.#size - Number(offset) }, (_, index) => kafkaMessage(offset + BigInt(index)))
    const next = (start: number): void => {
      if (start >= messages.length || delivery !== this.#delivery) return
      const piece = messages.slice(start, start + this.#batch)
      this.extractor?.accept(piece, (piece.at(-1)?.offset ?? 0n) + 1n)
      setImmediate(() => next(start + this.#batch))
    }
    setImmediate(() => next(0))
  }
}

function kafkaMessage(offset: bigint): KafkaMessage {
  return { topic: 'html', partition: 0, offset, timestamp: 0, key: null, value: Buffer.from('x'), headers: {} }
}

/** Every third page gives nothing. */
function page({ offset }: KafkaMessage, replayId: string | undefined): ProcessedPage {
  const key = replayId === undefined ? `${offset}` : `${replayId}/${offset}`
  const hasRecord = offset % 3n !== 0n
  const messages = hasRecord ? [{ topic: 'records', partition: 0, key, value: Buffer.from('r') }] : []
  const totals = new Map(hasRecord ? [['e', { ...NO_TOTALS, pages: 1, records: 1 }]] : [])
  return { offset, messages, totals, counts: replayId === undefined ? 'page' : 'replayed' }
}

const expected = (size: number): string[] =>
  Array.from({ length: size }, (_, index) => index)
    .filter((index) => index % 3 !== 0)
    .map(String)
const rates = fc.constantFrom(undefined, 1_000)
const fates = fc.array(fc.constantFrom<Fate>('commits', 'commits', 'fails', 'commits-and-fails', 'page-fails'), { maxLength: 12 })

describe('a partition of the extract stage', () => {
  it('writes the records of every page exactly once and in order, whatever becomes of its transactions', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 20 }), fates, async (size, batch, told) => {
        const partition = new Partition(size, batch, told)
        const extractor = partition.start()
        await eventually(() => partition.offset === BigInt(size), { what: 'the end of the log', everyMs: 1 })
        extractor.drain()
        await extractor.finished
        expect(partition.records).toEqual(expected(size))
        const { totals } = decodeMetadata(partition.metadata) ?? freshMetadata(0n)
        expect((totals.extractors.e?.pages ?? 0) + totals.noMatch).toBe(size)
      }),
      { numRuns: 60 },
    )
  })

  it('commits what it took before a drain, and nothing after it was abandoned', async () => {
    const partition = new Partition(40, 5, [])
    const extractor = partition.start()
    await eventually(() => partition.records.length > 0, { everyMs: 1 })
    extractor.abandon()
    await extractor.finished
    const written = partition.records.length
    const next = partition.start()
    await eventually(() => partition.offset === 40n, { everyMs: 1 })
    next.drain()
    await next.finished
    expect(written).toBeGreaterThan(0)
    expect(partition.records).toEqual(expected(40))
  })

  it('replays its range for the replay alone, then goes on where live work stood', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 10, max: 50 }),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 20 }),
        fates,
        async (size, from, batch, told) => {
          const partition = new Partition(size, batch, told)
          const resumeAt = BigInt(size - 3)
          const until = resumeAt - 2n
          partition.offset = BigInt(Math.min(from, Number(until)))
          const start = Number(partition.offset)
          partition.metadata = encodeMetadata({
            ...freshMetadata(0n),
            replay: { replayId: 'r', phase: 'replaying', until, resumeAt, totals: NO_TOTALS },
          })
          const extractor = partition.start()
          await eventually(() => partition.offset === BigInt(size), { what: 'the end of the log', everyMs: 1 })
          extractor.drain()
          await extractor.finished
          const replayed = Array.from({ length: Number(until) - start }, (_, index) => start + index).filter((index) => index % 3 !== 0)
          const live = [size - 3, size - 2, size - 1].filter((index) => index % 3 !== 0)
          expect(partition.records).toEqual([...replayed.map((index) => `r/${index}`), ...live.map(String)])
          expect(decodeMetadata(partition.metadata)?.replay).toMatchObject({ phase: 'done', totals: { pages: replayed.length } })
        },
      ),
      { numRuns: 60 },
    )
  })

  it('rewinds for an order that comes while it works, whatever becomes of its transactions, and loses no page of either', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 12, max: 50 }),
        fc.integer({ min: 0, max: 8 }),
        fc.integer({ min: 1, max: 20 }),
        fates,
        rates,
        async (size, from, batch, told, rate) => {
          const partition = new Partition(size, batch, told)
          partition.rate = rate
          const extractor = partition.start()
          await eventually(() => partition.records.length > 0, { everyMs: 1 })
          partition.order = { replayId: 'r', from: BigInt(from), until: BigInt(size) }
          extractor.controlChanged()
          await eventually(() => partition.offset === BigInt(size) && decodeMetadata(partition.metadata)?.replay?.phase === 'done', {
            what: 'the end of the log',
            everyMs: 1,
          })
          extractor.drain()
          await extractor.finished
          const live = partition.records.filter((key) => !key.startsWith('r/'))
          const replayed = partition.records.filter((key) => key.startsWith('r/'))
          expect(live).toEqual(expected(size))
          const until = Number(decodeMetadata(partition.metadata)?.replay?.until)
          expect(replayed).toEqual(
            expected(until)
              .filter((key) => Number(key) >= from)
              .map((key) => `r/${key}`),
          )
        },
      ),
      { numRuns: 60 },
    )
  })

  it('gives live pages that wait their turn while it replays, and loses no page of either', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 20, max: 80 }),
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 1, max: 20 }),
        fates,
        rates,
        async (size, waiting, batch, told, rate) => {
          const partition = new Partition(size, batch, told)
          partition.turnMs = rate === undefined ? 0 : 1
          partition.rate = rate
          const resumeAt = BigInt(size - waiting)
          partition.offset = 0n
          partition.metadata = encodeMetadata({
            ...freshMetadata(0n),
            replay: { replayId: 'r', phase: 'replaying', until: resumeAt, resumeAt, totals: NO_TOTALS },
          })
          const extractor = partition.start()
          const isThrough = () => partition.offset === BigInt(size) && decodeMetadata(partition.metadata)?.replay?.phase === 'done'
          await eventually(isThrough, { what: 'the end of the log and of the replay', everyMs: 1 })
          extractor.drain()
          await extractor.finished
          const live = partition.records.filter((key) => !key.startsWith('r/'))
          expect(live).toEqual(expected(size).filter((key) => Number(key) >= Number(resumeAt)))
          expect(partition.records.filter((key) => key.startsWith('r/'))).toEqual(expected(Number(resumeAt)).map((key) => `r/${key}`))
          expect(decodeMetadata(partition.metadata)?.totals.extractors.e?.records ?? 0).toBe(live.length)
          // What waited when the replay was to give way did not wait for its end.
          const toLive = partition.offsets.findIndex((offset) => offset > resumeAt)
          const atEnd = partition.records.lastIndexOf(`r/${expected(Number(resumeAt)).at(-1)}`)
          const [firstLive = ''] = live
          if (told.length === 0 && live.length > 0 && Number(resumeAt) > 30)
            expect([toLive >= 0, partition.records.indexOf(firstLive) < atEnd]).toEqual([true, true])
        },
      ),
      { numRuns: 80 },
    )
  })

  it('gives pages that wait for the rate of a replay back at once: for live pages, for a drain, and where the replay is called off', async () => {
    const partition = new Partition(100, 5, [])
    partition.turnMs = 1
    partition.rate = 0.001
    partition.offset = 0n
    partition.metadata = encodeMetadata({
      ...freshMetadata(0n),
      replay: { replayId: 'r', phase: 'replaying', until: 50n, resumeAt: 90n, totals: NO_TOTALS },
    })
    const first = partition.start()
    await eventually(() => partition.records.includes('98'), { what: 'the last live page', everyMs: 1 })
    expect(partition.records.filter((key) => key.startsWith('r/')).length).toBeLessThanOrEqual(1)
    first.drain()
    await first.finished
    expect(decodeMetadata(partition.metadata)?.replay).toMatchObject({ phase: 'replaying', until: 50n })
    partition.turnMs = 3_000
    partition.waiting = 0
    const second = partition.start()
    const before = partition.givenBack
    await eventually(() => partition.waiting > 0, { everyMs: 1 })
    partition.cancelled = 'r'
    second.controlChanged()
    await eventually(() => partition.offset === 100n, { what: 'live work where it stood', everyMs: 1 })
    second.drain()
    await second.finished
    expect(partition.givenBack).toBeGreaterThan(before)
    expect(partition.records.filter((key) => !key.startsWith('r/'))).toEqual(expected(100).filter((key) => Number(key) >= 90))
  })

  it('ends a replay that is called off in a turn of live work where that stands', async () => {
    const partition = new Partition(100, 5, [])
    partition.offset = 60n
    partition.metadata = encodeMetadata({
      ...freshMetadata(0n),
      replay: { replayId: 'r', phase: 'live', until: 50n, resumeAt: 10n, totals: NO_TOTALS },
    })
    partition.cancelled = 'r'
    const extractor = partition.start()
    await eventually(() => partition.offset === 100n, { what: 'the end of the log', everyMs: 1 })
    extractor.drain()
    await extractor.finished
    expect(partition.records).toEqual(expected(100).filter((key) => Number(key) >= 60))
    expect(decodeMetadata(partition.metadata)?.replay?.phase).toBe('done')
  })

  it('C176: goes back to live work when its replay is called off, and does not begin it again', async () => {
    const partition = new Partition(400, 5, [])
    partition.offset = 350n
    partition.order = { replayId: 'r', from: 0n, until: 400n }
    const extractor = partition.start()
    await eventually(() => partition.records.length > 5, { everyMs: 1 })
    partition.cancelled = 'r'
    extractor.controlChanged()
    await eventually(() => partition.offset === 400n, { what: 'the end of the log', everyMs: 1 })
    extractor.drain()
    await extractor.finished
    const live = partition.records.filter((key) => !key.startsWith('r/'))
    expect(live).toEqual(expected(400).filter((key) => Number(key) >= 350))
    expect(partition.records.length).toBeLessThan(300)
  })
})
