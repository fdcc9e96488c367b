import { describe, expect, it } from 'vitest'
import { decodeMetadata, encodeMetadata, freshMetadata, NO_TOTALS, type OffsetMetadata } from '../../../src/extract/offset-metadata.ts'
import { PartitionExtractor } from '../../../src/extract/partition-extractor.ts'
import { DEFAULT_LIMITS, type PartitionLimits, type PartitionPort } from '../../../src/extract/partition-port.ts'
import { RatePace } from '../../../src/extract/rate-pace.ts'
import type { ReplayOrder } from '../../../src/extract/replay-step.ts'
import type { KafkaMessage } from '../../../src/kafka/message.ts'
import { messageBytes } from '../../../src/kafka/outgoing.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { type Observer, silentObserver } from '../../../src/kernel/observe.ts'
import { RecordingObserver } from '../../support/embedded.ts'
import { eventually } from '../../support/eventually.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** A worker that owns nothing else, and of which no replay is asked. */
const QUIET: Omit<PartitionPort, 'transactions' | 'logBounds' | 'readFrom' | 'process'> = {
  readControl: async () => undefined,
  pause: () => undefined,
  resume: () => undefined,
  waitingPartitions: () => 1,
  refuseReplay: () => undefined,
  isReplayClosed: () => false,
  isReplayCancelled: () => false,
  rate: () => undefined,
  replayOrder: () => undefined,
  replayDone: () => undefined,
}

/** Messages of a log, from one offset to another. */
function pages(from: bigint, until: bigint): KafkaMessage[] {
  return Array.from({ length: Number(until - from) }, (_, index) => {
    const offset = from + BigInt(index)
    return { topic: 'html', partition: 0, offset, timestamp: 0, key: null, value: Buffer.from('x'), headers: {} }
  })
}

const PAGES = 60
const PAGE_MS = 100

/** Offsets that a partition commits, one after the other, on a log of 60 pages that take 100 ms each. */
async function commitsOf(hasRecord: boolean, limits: Partial<PartitionLimits> = {}): Promise<number[]> {
  const commits: number[] = []
  let nowMs = 0
  const log = pages(0n, BigInt(PAGES))
  const extractor: PartitionExtractor = new PartitionExtractor({
    assigned: { topic: 'html', partition: 0, epoch: 1 },
    group: 'g',
    port: {
      ...QUIET,
      logBounds: async () => ({ low: 0n, stableEnd: BigInt(PAGES), end: BigInt(PAGES) }),
      readFrom: () => void setImmediate(() => extractor.accept(log, BigInt(PAGES))),
      process: async ({ offset }) => {
        nowMs += PAGE_MS
        const messages = hasRecord ? [{ topic: 'records', partition: 0, key: String(offset), value: Buffer.from('r') }] : []
        return { offset, messages, totals: new Map(hasRecord ? [['e', { ...NO_TOTALS, pages: 1, records: 1 }]] : []), counts: 'page' }
      },
      transactions: {
        fence: async () => ({ offset: undefined, metadata: '' }),
        commit: async (_messages, offset) => void commits.push(Number(offset)),
        close: async () => undefined,
      },
    },
    limits: { ...DEFAULT_LIMITS, pagesAhead: 1, ...limits },
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

  it('commits where what is to be written is large, before its transaction could run out of time', async () => {
    const size = messageBytes({ topic: 'records', partition: 0, key: '10', value: Buffer.from('r') })
    const commits = await commitsOf(true, { maxTransactionBytes: 3 * size - 2 })
    expect(commits.slice(4, 8).map((offset, index) => offset - (commits[index + 3] ?? 0))).toEqual([3, 3, 3, 3])
  })

  it('commits pages without records every half second', async () => {
    const [first = 0, second = 0] = await commitsOf(false)
    expect(first).toBeLessThanOrEqual(7)
    expect(second - first).toBeLessThanOrEqual(7)
  })
})

/**
 * Where a partition begins to read whose offset 5 is committed, as the end of its log is told from one look to the next. `failures`: so
 * often it fails when it has begun, and begins again.
 */
async function startWhereEndIs(ends: readonly bigint[], failures = 0): Promise<{ readonly start: bigint; readonly looks: number }> {
  let looks = 0
  let sleeps = 0
  let left = failures
  const start = await new Promise<bigint>((resolve) => {
    const extractor: PartitionExtractor = new PartitionExtractor({
      assigned: { topic: 'html', partition: 0, epoch: 1 },
      group: 'g',
      port: {
        ...QUIET,
        logBounds: async () => {
          looks += 1
          const end = ends[Math.min(looks, ends.length) - 1] ?? 0n
          return { low: 0n, stableEnd: end, end }
        },
        readFrom: (offset) => {
          left -= 1
          if (left >= 0) throw new Error('the broker went away')
          resolve(offset)
          setImmediate(() => extractor.drain())
        },
        process: () => Promise.resolve(undefined),
        transactions: {
          fence: async () => ({ offset: 5n, metadata: '' }),
          commit: async () => undefined,
          close: async () => undefined,
        },
      },
      limits: DEFAULT_LIMITS,
      clock: {
        ...systemClock,
        sleep: async () => {
          sleeps += 1
        },
      },
      observer: silentObserver,
    })
  })
  expect(sleeps).toBe(looks - 1)
  return { start, looks }
}

describe('a partition whose committed offset lies behind the end of its log', () => {
  it('is looked at again, since a broker that has just started may not know the end yet', async () => {
    expect(await startWhereEndIs([4n, 4n, 6n])).toEqual({ start: 5n, looks: 3 })
  })

  it('begins at the end where the log stays shorter: it is another one', async () => {
    expect(await startWhereEndIs([3n])).toEqual({ start: 3n, looks: 6 })
  })

  it('is looked at as often after the next start of a broker as after the first', async () => {
    expect(await startWhereEndIs([4n, 4n, 4n, 6n, 4n, 4n, 4n, 6n], 1)).toEqual({ start: 5n, looks: 8 })
  })
})

/** A page that was worked: of the replay, or of live work, and at which time. */
interface Worked {
  readonly kind: 'replay' | 'live'
  readonly atMs: number
}

interface BesideOptions {
  /** Messages of a transaction that never ends, at the end of the log. */
  readonly unread?: number
  /** First offset that retention leaves, once a page was worked. */
  readonly lowLater?: bigint
  readonly observer?: Observer
}

/**
 * A replay of 600 pages at one page a tick of 100 ms, while live pages come: `everyMs` apart, for ever. Shape: what was worked until
 * the replay was done, in order. Time passes by work alone.
 */
async function replayBeside(
  everyMs: number,
  { unread = 0, lowLater = 0n, observer = silentObserver }: BesideOptions = {},
): Promise<Worked[]> {
  const replayed = 600
  const worked: Worked[] = []
  let nowMs = 0
  let metadata = encodeMetadata({
    ...freshMetadata(0n),
    replay: { replayId: 'r', phase: 'replaying', until: BigInt(replayed), resumeAt: BigInt(replayed), totals: NO_TOTALS },
  })
  const end = (): number => replayed + Math.floor(nowMs / everyMs)
  let reading = 0
  const read = (from: bigint): void => {
    reading += 1
    const own = reading
    let next = Number(from)
    // As the consumer loop: a piece at a time, and what is new as it comes.
    const deliver = (): void => {
      if (own !== reading || isThrough()) return
      const until = Math.min(next + 20, end())
      const piece = pages(BigInt(next), BigInt(Math.max(next, until)))
      next = Math.max(next, until)
      // Nothing is there to work: time passes all the same.
      if (piece.length === 0) nowMs += 10
      else extractor.accept(piece, BigInt(next))
      setImmediate(deliver)
    }
    setImmediate(deliver)
  }
  const isThrough = (): boolean => decodeMetadata(metadata)?.replay?.phase === 'done'
  const extractor: PartitionExtractor = new PartitionExtractor({
    assigned: { topic: 'html', partition: 0, epoch: 1 },
    group: 'g',
    port: {
      ...QUIET,
      logBounds: async () => ({ low: worked.length > 0 ? lowLater : 0n, stableEnd: BigInt(end()), end: BigInt(end() + unread) }),
      readFrom: read,
      process: async ({ offset }, { replayId }) => {
        nowMs += PAGE_MS
        worked.push({ kind: replayId === undefined ? 'live' : 'replay', atMs: nowMs })
        return { offset, messages: [], totals: new Map(), counts: replayId === undefined ? 'page' : 'replayed' }
      },
      transactions: {
        fence: async () => ({ offset: 0n, metadata }),
        commit: async (_messages, _offset, text) => {
          metadata = text
        },
        close: async () => undefined,
      },
    },
    limits: { ...DEFAULT_LIMITS, pagesAhead: 1, maxWaitingPages: 100_000 },
    clock: { ...systemClock, mono: () => nowMs },
    observer,
  })
  await eventually(isThrough, { what: 'the end of the replay', everyMs: 1 })
  extractor.abandon()
  await extractor.finished
  return worked.slice(0, worked.findLastIndex(({ kind }) => kind === 'replay') + 1)
}

describe('a partition that replays while live pages come', () => {
  it('ends the replay in bounded time where they come faster than they are worked, and does not starve them', async () => {
    const worked = await replayBeside(50)
    const replay = worked.filter(({ kind }) => kind === 'replay')
    expect(replay.length).toBe(600)
    // A tenth of the time is the replay's, so 60 s of work are done within 600 s and the turn that is under way.
    expect(worked.at(-1)?.atMs).toBeLessThan(640_000)
    expect(worked.length - replay.length).toBeGreaterThan(0.8 * worked.length)
    expect(longestRun(worked, 'live')).toBeLessThanOrEqual(280)
    expect(longestRun(worked, 'replay')).toBeLessThanOrEqual(32)
  })

  it('goes on where a transaction of somebody else is open in the log, behind which nobody can read', async () => {
    const worked = await replayBeside(1e9, { unread: 5 })
    expect(worked.filter(({ kind }) => kind === 'replay')).toHaveLength(600)
  })

  it('tells where retention has overtaken the one whose turn it is not', async () => {
    const seen: unknown[] = []
    const observer: Observer = { ...silentObserver, emit: (name, fields) => void (name === 'OffsetOutOfRange' && seen.push(fields)) }
    await replayBeside(50, { lowLater: 610n, observer })
    expect(seen[0]).toMatchObject({ partition: 0, offset: 600n, low: 610n })
  })

  it('keeps up with them where there is time for both', async () => {
    const worked = await replayBeside(400)
    // Every turn of live work reads all that there is, so none is as long as it may be.
    expect(longestRun(worked, 'live')).toBeLessThanOrEqual(12)
    expect(longestRun(worked, 'replay')).toBeLessThanOrEqual(32)
    const cameMeanwhile = Math.floor((worked.at(-1)?.atMs ?? 0) / 400)
    const live = worked.filter(({ kind }) => kind === 'live').length
    expect(cameMeanwhile - live).toBeLessThanOrEqual(12)
  })
})

/** Most pages of a kind without one of the other between them. */
function longestRun(worked: readonly Worked[], kind: Worked['kind']): number {
  let longest = 0
  let run = 0
  for (const each of worked) {
    run = each.kind === kind ? run + 1 : 0
    longest = Math.max(longest, run)
  }
  return longest
}

const READ: PartitionLimits = { ...DEFAULT_LIMITS, replayTurnMs: 1e9 }

/**
 * What a partition commits until it is through, that takes up a log of which retention has left offsets 30 to 59. `committed`: what is
 * found; `range`: of a shadow. `lowLater`: retention goes on to there, and the partition fails once it has begun.
 */
async function commitsAfterRetention(
  committed: { readonly offset: bigint | undefined; readonly metadata: string },
  range: { readonly from: bigint; readonly until: bigint } | undefined,
  lowLater?: bigint,
): Promise<{ readonly offset: bigint; readonly metadata: OffsetMetadata | undefined }[]> {
  const commits: { offset: bigint; metadata: OffsetMetadata | undefined }[] = []
  let low = 30n
  let stored = committed
  const extractor: PartitionExtractor = new PartitionExtractor({
    assigned: { topic: 'html', partition: 0, epoch: 1 },
    group: 'g',
    port: {
      ...QUIET,
      logBounds: async () => ({ low, stableEnd: 60n, end: 60n }),
      readFrom: (from) => {
        if (lowLater !== undefined && low < lowLater) {
          low = lowLater
          throw new Error('the broker went away')
        }
        setImmediate(() => extractor.accept(pages(from, 60n), 60n))
      },
      process: async ({ offset }, { replayId }) => {
        return {
          offset,
          messages: [],
          totals: new Map([['e', { ...NO_TOTALS, pages: 1 }]]),
          counts: replayId === undefined ? 'page' : 'replayed',
        }
      },
      transactions: {
        fence: async () => stored,
        commit: async (_messages, offset, metadata) => {
          stored = { offset, metadata }
          commits.push({ offset, metadata: decodeMetadata(metadata) })
        },
        close: async () => undefined,
      },
    },
    ...(range === undefined ? {} : { range }),
    limits: READ,
    clock: { ...systemClock, sleep: async () => undefined },
    observer: silentObserver,
  })
  if (range === undefined) {
    await eventually(() => commits.some(({ metadata }) => metadata?.replay?.phase === 'done'), { what: 'the replay', everyMs: 1 })
    extractor.drain()
  }
  expect(await extractor.finished).toBe(range === undefined ? 'ended' : 'range-done')
  return commits
}

describe('a partition that retention has overtaken', () => {
  const inPlace = encodeMetadata({
    ...freshMetadata(0n),
    replay: { replayId: 'r', phase: 'replaying', until: 50n, resumeAt: 60n, totals: NO_TOTALS },
  })

  it('carries the pages of a replay in place that it did not read, in the commit that ends it too', async () => {
    const commits = await commitsAfterRetention({ offset: 10n, metadata: inPlace }, undefined)
    for (const { metadata } of commits) expect(metadata?.replay?.gone).toEqual({ pages: 20, until: 30n })
    expect(commits.at(-1)?.metadata?.replay).toMatchObject({ phase: 'done', totals: { pages: 20 } })
  })

  it('counts each of them once where it begins again', async () => {
    const commits = await commitsAfterRetention({ offset: 10n, metadata: inPlace }, undefined, 40n)
    expect(commits.at(-1)?.metadata?.replay).toMatchObject({ gone: { pages: 30, until: 40n }, totals: { pages: 10 } })
  })

  it('counts those of a shadow from the begin of its range', async () => {
    const commits = await commitsAfterRetention({ offset: undefined, metadata: '' }, { from: 5n, until: 50n })
    expect(commits.at(-1)).toMatchObject({
      offset: 50n,
      metadata: { gone: { pages: 25, until: 30n }, totals: { extractors: { e: { pages: 20 } } } },
    })
  })

  it('commits the end of a range of which nothing is left, or a shadow would wait for it', async () => {
    const commits = await commitsAfterRetention({ offset: 12n, metadata: encodeMetadata(freshMetadata(5n)) }, { from: 5n, until: 20n })
    expect(commits).toEqual([{ offset: 30n, metadata: { ...freshMetadata(5n), gone: { pages: 8, until: 20n } } }])
  })
})

describe('a partition whose replay ends after retention has deleted live pages that wait', () => {
  it('goes on at what is left of them, counts the others, and says so', async () => {
    const observer = new RecordingObserver()
    const starts: bigint[] = []
    const commits: bigint[] = []
    let committed = ''
    let low = 0n
    const replay = { replayId: 'r', phase: 'replaying', until: 10n, resumeAt: 12n, totals: NO_TOTALS } as const
    const extractor: PartitionExtractor = new PartitionExtractor({
      assigned: { topic: 'html', partition: 0, epoch: 1 },
      group: 'g',
      port: {
        ...QUIET,
        logBounds: async () => ({ low, stableEnd: 20n, end: 20n }),
        readFrom: (from) => {
          starts.push(from)
          setImmediate(() => extractor.accept(pages(from, 20n), 20n))
        },
        process: async ({ offset }, { replayId }) => {
          if (offset === 9n) low = 15n
          return { offset, messages: [], totals: new Map(), counts: replayId === undefined ? 'page' : 'replayed' }
        },
        transactions: {
          fence: async () => ({ offset: 0n, metadata: encodeMetadata({ ...freshMetadata(0n), replay }) }),
          commit: async (_messages, offset, metadata) => {
            commits.push(offset)
            committed = metadata
          },
          close: async () => undefined,
        },
      },
      limits: { ...READ, maxGatherMs: 1 },
      clock: systemClock,
      observer,
    })
    await eventually(() => commits.at(-1) === 20n, { what: 'the end of the log', everyMs: 1 })
    extractor.drain()
    await extractor.finished
    expect(starts).toEqual([0n, 15n])
    // In how many transactions the pages behind it go is for the time to say.
    expect(commits.find((offset) => offset > 10n)).toBe(15n)
    expect(decodeMetadata(committed)?.gone).toEqual({ pages: 3, until: 15n })
    expect(observer.events.find(({ name }) => name === 'OffsetOutOfRange')?.fields).toMatchObject({ offset: 12n, low: 15n })
  })
})

describe('a partition of a shadow with a rate', () => {
  it('ends at once when it is drained: pages that wait for their moment are given back, not waited for', async () => {
    const clock = new ManualClock()
    let waiting = 0
    const commits: bigint[] = []
    const pace = new RatePace(clock)
    const extractor: PartitionExtractor = new PartitionExtractor({
      assigned: { topic: 'html', partition: 0, epoch: 1 },
      group: 'g',
      port: {
        ...QUIET,
        logBounds: async () => ({ low: 0n, stableEnd: 20n, end: 20n }),
        rate: () => 0.1,
        readFrom: () => void setImmediate(() => extractor.accept(pages(0n, 20n), 20n)),
        process: async ({ offset }, _work, giveBack) => {
          waiting += 1
          if (!(await pace.next(0.1, giveBack))) return undefined
          return { offset, messages: [], totals: new Map(), counts: 'page' }
        },
        transactions: {
          fence: async () => ({ offset: undefined, metadata: '' }),
          commit: async (_messages, offset) => void commits.push(offset),
          close: async () => undefined,
        },
      },
      range: { from: 0n, until: 20n },
      limits: DEFAULT_LIMITS,
      clock,
      observer: silentObserver,
    })
    await eventually(() => waiting === 2, { what: 'the second page waiting for its moment', everyMs: 1 })
    extractor.drain()
    expect(await extractor.finished).toBe('ended')
    expect(commits).toEqual([1n])
  })
})

/** A partition of 20 pages; what it commits, and a hand on its pages in work and on what is asked of it. */
function heldPartition(process?: PartitionPort['process']) {
  const commits: bigint[] = []
  const asked: { order: ReplayOrder | undefined } = { order: undefined }
  const held: (() => void)[] = []
  const extractor: PartitionExtractor = new PartitionExtractor({
    assigned: { topic: 'html', partition: 0, epoch: 1 },
    group: 'g',
    port: {
      ...QUIET,
      logBounds: async () => ({ low: 0n, stableEnd: 20n, end: 20n }),
      replayOrder: () => asked.order,
      readFrom: (from) => {
        setImmediate(() => extractor.accept(pages(from, 20n), 20n))
      },
      process:
        process ??
        (async ({ offset }) => {
          if (offset < 4n) await new Promise<void>((resolve) => held.push(resolve))
          return { offset, messages: [], totals: new Map(), counts: 'page' }
        }),
      transactions: {
        fence: async () => ({ offset: 0n, metadata: '' }),
        commit: async (_messages, offset) => void commits.push(offset),
        close: async () => undefined,
      },
    },
    limits: { ...DEFAULT_LIMITS, maxGatherMs: 1 },
    clock: { ...systemClock, sleep: async () => undefined },
    observer: silentObserver,
  })
  return { extractor, commits, asked, held }
}

describe('a partition of which a replay was asked', () => {
  it('goes on where it was when that is withdrawn before its pages in work are through', async () => {
    const { extractor, commits, asked, held } = heldPartition()
    await eventually(() => held.length === 4, { what: 'pages in work', everyMs: 1 })
    asked.order = { replayId: 'r', from: 0n, until: 4n }
    extractor.controlChanged()
    asked.order = undefined
    extractor.controlChanged()
    for (const release of held) release()
    await eventually(() => commits.at(-1) === 20n, { what: 'the end of the log', everyMs: 1 })
    extractor.drain()
    expect(await extractor.finished).toBe('ended')
  })

  const ENDS = ['KAFKA_DENIED', 'BLOBS_REFUSED', 'REGISTRY_REFUSED', 'CONTROL_UNREADABLE', 'KAFKA_TOPIC_MISSING'] as const
  it.each(ENDS)('ends at %s, which no repeat mends', async (code) => {
    const { extractor } = heldPartition(() => Promise.reject(new MillraceError(code, 'no')))
    await expect(extractor.finished).rejects.toMatchObject({ code })
  })

  it.each([
    ['KAFKA_TOPIC_MISSING', 'a broker that starts again may not know its topics at first'],
    ['KAFKA_UNREACHABLE', 'it is away and comes back'],
    ['REPLAY_REFUSED', 'another worker may have the version that the replay wants'],
    ['ABORTED', 'whoever stopped it ends the stage too'],
    ['INTERNAL', 'a defect may be met by one page of many'],
  ] as const)('is tried again after %s: %s', async (code, _) => {
    let failures = 10
    const { extractor, commits } = heldPartition(async ({ offset }) => {
      if (offset === 0n && failures > 0) {
        failures -= 1
        throw new MillraceError(code, 'no')
      }
      return { offset, messages: [], totals: new Map(), counts: 'page' }
    })
    await eventually(() => commits.at(-1) === 20n, { what: 'the end of the log', everyMs: 1 })
    extractor.drain()
    expect(await extractor.finished).toBe('ended')
  })

  it('counts tries for a topic that is missing from when its broker is back, however long that was away', async () => {
    const errors = [...Array(40).fill('KAFKA_UNREACHABLE'), ...Array(5).fill('KAFKA_TOPIC_MISSING')] as (
      | 'KAFKA_UNREACHABLE'
      | 'KAFKA_TOPIC_MISSING'
    )[]
    const { extractor, commits } = heldPartition(async ({ offset }) => {
      const code = offset === 0n ? errors.shift() : undefined
      if (code !== undefined) throw new MillraceError(code, 'no')
      return { offset, messages: [], totals: new Map(), counts: 'page' }
    })
    await eventually(() => commits.at(-1) === 20n, { what: 'the end of the log', everyMs: 1 })
    extractor.drain()
    expect(await extractor.finished).toBe('ended')
  })
})
