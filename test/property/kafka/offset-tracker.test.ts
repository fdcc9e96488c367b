import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeOffsetMap, encodeOffsetMap, MAX_MAP_CHARS } from '../../../src/kafka/offset-map.ts'
import { DEFAULT_TRACKER_LIMITS, OffsetTracker } from '../../../src/kafka/offset-tracker.ts'

/** What one assignment does; numbers choose among the possible. `restart` commits and begins again from what was committed. */
const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('deliver' as const), gap: fc.nat({ max: 3 }), some: fc.nat() }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('complete' as const), gap: fc.constant(0), some: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('redeliver' as const), gap: fc.constant(0), some: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('marker' as const), gap: fc.nat({ max: 3 }), some: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('commit' as const), gap: fc.constant(0), some: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), gap: fc.constant(0), some: fc.nat() }) },
)

/** A log with holes, a group that reads it, and what really happened, kept apart from the tracker. */
class Model {
  readonly log: bigint[] = []
  logEnd = 0n
  readonly completed = new Set<bigint>()
  /** Completed when the last commit was made: what a restart must not repeat. */
  completedAtCommit = new Set<bigint>()
  committed = 0n
  metadata = ''
  tracker = new OffsetTracker(0n)
  /** Index in the log of the next delivery of this assignment. */
  next = 0
  readonly inWork = new Set<bigint>()

  deliver(gap: number): void {
    let offset = this.log[this.next]
    if (offset === undefined) {
      offset = this.logEnd + BigInt(gap)
      this.log.push(offset)
      this.logEnd = offset + 1n
    }
    this.next += 1
    const take = this.tracker.take(offset)
    expect(take).toBe(this.completedAtCommit.has(offset) ? 'completed' : 'taken')
    if (take === 'taken') this.inWork.add(offset)
  }

  complete(some: number): void {
    const offset = [...this.inWork][some % Math.max(1, this.inWork.size)]
    if (offset === undefined) return
    expect(this.tracker.complete(offset)).toBe(true)
    this.inWork.delete(offset)
    this.completed.add(offset)
  }

  redeliver(some: number): void {
    const offset = this.log[some % Math.max(1, this.next)]
    if (offset === undefined || this.next === 0 || offset < this.committed) return
    expect(this.tracker.take(offset)).toBe('seen')
  }

  marker(gap: number): void {
    if (this.next < this.log.length) return
    this.logEnd += BigInt(gap)
    this.tracker.advanceTo(this.logEnd)
  }

  commit(): void {
    const committable = this.tracker.committable()
    if (committable === undefined) return
    expect(committable.offset).toBeGreaterThanOrEqual(this.committed)
    for (const offset of this.log) {
      // The heart of it: nothing below the commit is undone, and everything done above it is in the map.
      if (offset < committable.offset) expect(this.completed.has(offset)).toBe(true)
    }
    this.committed = committable.offset
    this.metadata = committable.metadata
    this.completedAtCommit = new Set(this.completed)
    this.tracker.stored(committable)
  }

  restart(): void {
    const decoded = decodeOffsetMap(this.metadata, this.committed, this.logEnd)
    if (decoded.kind !== 'map') throw new Error(`unreadable: ${decoded.reason}`)
    this.tracker = new OffsetTracker(this.committed, decoded.map, { stored: true })
    this.inWork.clear()
    this.next = this.log.findIndex((offset) => offset >= this.committed)
    if (this.next === -1) this.next = this.log.length
    // Work that was done after the last commit is forgotten with the process.
    this.completed.clear()
    for (const offset of this.completedAtCommit) this.completed.add(offset)
  }
}

describe('the offset tracker, in any order of events', () => {
  it('never commits past an incomplete offset, and repeats after a restart exactly what was not completed', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 120 }), (actions) => {
        const model = new Model()
        for (const { kind, gap, some } of actions) {
          if (kind === 'deliver') model.deliver(gap)
          else if (kind === 'complete') model.complete(some)
          else if (kind === 'redeliver') model.redeliver(some)
          else if (kind === 'marker') model.marker(gap)
          else if (kind === 'commit') model.commit()
          else model.restart()
        }
        while (model.next < model.log.length) model.deliver(0)
        while (model.inWork.size > 0) model.complete(0)
        model.tracker.advanceTo(model.logEnd)
        expect(model.tracker.committableOffset).toBe(model.logEnd)
        for (const offset of model.log) expect(model.completed.has(offset)).toBe(true)
      }),
      { numRuns: 300 },
    )
  })
})

describe('the offset map, of any shape', () => {
  const map = fc.uniqueArray(fc.nat({ max: 3_000 }), { maxLength: 300 }).chain((offsets) => {
    const incomplete = offsets.sort((a, b) => a - b)
    return fc.nat({ max: 500 }).map((above) => ({ span: (incomplete.at(-1) ?? 0) + 1 + above, incomplete }))
  })

  it('reads back as it was written', () => {
    fc.assert(
      fc.property(map, fc.bigInt({ min: 0n, max: 2n ** 62n }), (written, committed) => {
        const encoded = encodeOffsetMap(written, committed)
        if (encoded.kind !== 'map') throw new Error('too large')
        expect(decodeOffsetMap(encoded.text, committed, committed + BigInt(written.span))).toEqual({ kind: 'map', map: written })
      }),
    )
  })

  it('never throws at what it is given to read', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), fc.constantFrom('', 'mo1g', 'mo1R', 'mo1b', 'mo1B'), (text, head) => {
        expect(decodeOffsetMap(head + text, 5n, 1_000n).kind).toMatch(/^(map|unreadable)$/)
      }),
    )
  })

  const { maxIncomplete, maxSpan, maxMapChars } = DEFAULT_TRACKER_LIMITS
  it.each([
    ['scattered at random', (at: () => number) => new Set(Array.from({ length: maxIncomplete }, () => Math.floor(at() * maxSpan)))],
    [
      'in bursts',
      (at: () => number) => {
        const offsets = new Set<number>()
        while (offsets.size < maxIncomplete) {
          const start = Math.floor(at() * maxSpan)
          for (let offset = start; offset < start + 20; offset += 1) offsets.add(offset)
        }
        return offsets
      },
    ],
  ])('fits for the fullest window with offsets %s, even when that took in one fetch too many', (_, choose) => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { minLength: 97, maxLength: 97 }), (seeds) => {
        let turn = 0
        const at = (): number => {
          turn += 1
          return ((seeds[turn % 97] ?? 0) + turn * 0.618_033_988_75) % 1
        }
        const incomplete = [...new Set([0, ...choose(at)])].sort((a, b) => a - b)
        const encoded = encodeOffsetMap({ span: maxSpan, incomplete }, 0n)
        expect(encoded.kind === 'map' ? encoded.text.length : encoded.chars).toBeLessThan(maxMapChars)
        const twice = [...new Set([...incomplete, ...choose(at)])].sort((a, b) => a - b)
        const overfull = encodeOffsetMap({ span: 2 * maxSpan, incomplete: twice }, 0n)
        expect(overfull.kind === 'map' ? overfull.text.length : overfull.chars).toBeLessThan(MAX_MAP_CHARS)
      }),
      { numRuns: 15 },
    )
  })
})
