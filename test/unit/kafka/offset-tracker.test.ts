import { describe, expect, it } from 'vitest'
import { decodeOffsetMap } from '../../../src/kafka/offset-map.ts'
import { type Committable, OffsetTracker } from '../../../src/kafka/offset-tracker.ts'

const takeRange = (tracker: OffsetTracker, from: number, to: number): void => {
  for (let offset = from; offset <= to; offset += 1) tracker.take(BigInt(offset))
}

/** A tracker as a restart builds it from what was committed. */
const restart = ({ offset, metadata }: Committable, logEnd = 1_000_000n): OffsetTracker => {
  const decoded = decodeOffsetMap(metadata, offset, logEnd)
  if (decoded.kind !== 'map') throw new Error(`the map can not be read: ${decoded.reason}`)
  return new OffsetTracker(offset, decoded.map, { stored: true })
}

const committable = (tracker: OffsetTracker): Committable => {
  const found = tracker.committable()
  if (found === undefined) throw new Error('nothing to commit')
  return found
}

describe('the offset tracker', () => {
  it('commits the lowest incomplete offset, and only what lies below it', () => {
    const tracker = new OffsetTracker(100n)
    takeRange(tracker, 100, 105)
    expect(tracker.committableOffset).toBe(100n)
    tracker.complete(101n)
    tracker.complete(103n)
    expect(tracker.committableOffset).toBe(100n)
    tracker.complete(100n)
    expect(tracker.committableOffset).toBe(102n)
    tracker.complete(102n)
    tracker.complete(104n)
    tracker.complete(105n)
    expect(tracker.committableOffset).toBe(106n)
  })

  it('passes over offsets that never come: compacted ones, and markers at the end', () => {
    const tracker = new OffsetTracker(0n)
    tracker.take(0n)
    tracker.take(5n)
    tracker.complete(0n)
    expect(tracker.committableOffset).toBe(5n)
    tracker.complete(5n)
    tracker.advanceTo(9n)
    expect(tracker.committableOffset).toBe(9n)
    expect(tracker.position).toBe(9n)
  })

  it('commits the position of a partition that holds nothing but markers', () => {
    const tracker = new OffsetTracker(7n, undefined, { stored: true })
    expect(tracker.committable()).toBeUndefined()
    tracker.advanceTo(12n)
    expect(committable(tracker)).toMatchObject({ offset: 12n, metadata: '' })
  })

  it('takes an offset once, whether it is in work or done', () => {
    const tracker = new OffsetTracker(0n)
    expect(tracker.take(0n)).toBe('taken')
    expect(tracker.take(1n)).toBe('taken')
    tracker.complete(1n)
    expect(tracker.take(0n)).toBe('seen')
    expect(tracker.take(1n)).toBe('seen')
    expect(tracker.incompleteCount).toBe(1)
  })

  it('completes an offset once, and none that it did not take', () => {
    const tracker = new OffsetTracker(0n)
    tracker.take(0n)
    expect(tracker.complete(3n)).toBe(false)
    expect(tracker.complete(0n)).toBe(true)
    expect(tracker.complete(0n)).toBe(false)
  })

  it('repeats after a restart what was incomplete, and nothing else', () => {
    const before = new OffsetTracker(10n)
    takeRange(before, 10, 19)
    for (const done of [11n, 12n, 15n, 17n]) before.complete(done)
    const after = restart(committable(before))
    const repeated = Array.from({ length: 12 }, (_, index) => BigInt(10 + index)).filter((offset) => after.take(offset) === 'taken')
    expect(repeated).toEqual([10n, 13n, 14n, 16n, 18n, 19n, 20n, 21n])
  })

  it('never commits a poorer map than the one it was given', () => {
    const before = new OffsetTracker(0n)
    takeRange(before, 0, 99)
    for (let offset = 50; offset < 100; offset += 1) before.complete(BigInt(offset))
    const between = restart(committable(before))
    // Only the first few came again before the next commit.
    expect(between.take(0n)).toBe('taken')
    expect(between.take(1n)).toBe('taken')
    between.complete(0n)
    const after = restart(committable(between))
    const repeated = Array.from({ length: 99 }, (_, index) => BigInt(index + 1)).filter((offset) => after.take(offset) === 'taken')
    expect(repeated).toEqual(Array.from({ length: 49 }, (_, index) => BigInt(index + 1)))
  })

  it('goes to the end of a loaded map when its holes are filled', () => {
    const before = new OffsetTracker(0n)
    takeRange(before, 0, 9)
    for (const done of [1n, 2n, 9n]) before.complete(done)
    for (const done of [3n, 4n, 5n, 6n, 7n, 8n]) before.complete(done)
    const after = restart(committable(before))
    after.take(0n)
    after.complete(0n)
    expect(after.committableOffset).toBe(10n)
  })

  it('does not wait for holes of a loaded map that were compacted away since', () => {
    const before = new OffsetTracker(0n)
    takeRange(before, 0, 5)
    for (const done of [2n, 5n]) before.complete(done)
    const after = restart(committable(before))
    after.take(0n)
    after.complete(0n)
    after.take(7n)
    expect(after.committableOffset).toBe(7n)
  })

  it('has nothing to commit once the very same is stored, whatever was taken above it', () => {
    const tracker = new OffsetTracker(0n)
    takeRange(tracker, 0, 3)
    const first = committable(tracker)
    tracker.stored(first)
    expect(tracker.committable()).toBeUndefined()
    takeRange(tracker, 4, 9)
    expect(tracker.committable()).toBeUndefined()
    tracker.complete(2n)
    expect(tracker.committable()).toMatchObject({ offset: 0n })
  })

  it('commits again what changed while a commit was on its way', () => {
    const tracker = new OffsetTracker(0n)
    takeRange(tracker, 0, 3)
    const sent = committable(tracker)
    tracker.complete(0n)
    tracker.stored(sent)
    expect(tracker.committable()).toMatchObject({ offset: 1n })
  })

  it('overwrites on its first commit whatever the group had, unless that is known to be the same', () => {
    expect(new OffsetTracker(5n).committable()).toMatchObject({ offset: 5n })
    expect(new OffsetTracker(5n, undefined, { stored: true }).committable()).toBeUndefined()
  })

  it('is full at each of its limits, and has room again at half of the places and an eighth of the span', () => {
    const byCount = new OffsetTracker(0n, undefined, { limits: { maxIncomplete: 4 } })
    takeRange(byCount, 0, 2)
    expect(byCount.isFull).toBe(false)
    byCount.take(3n)
    expect(byCount.isFull).toBe(true)
    byCount.complete(1n)
    expect(byCount.hasRoom).toBe(false)
    byCount.complete(2n)
    expect(byCount.hasRoom).toBe(true)

    const bySpan = new OffsetTracker(0n, undefined, { limits: { maxSpan: 100 } })
    for (const offset of [0n, 10n, 15n, 99n]) bySpan.take(offset)
    expect(bySpan.isFull).toBe(true)
    bySpan.complete(0n)
    expect(bySpan.isFull).toBe(false)
    expect(bySpan.hasRoom).toBe(false)
    bySpan.complete(10n)
    expect(bySpan.hasRoom).toBe(true)

    const byMap = new OffsetTracker(0n, undefined, { limits: { maxMapChars: 20 } })
    takeRange(byMap, 0, 500)
    for (let offset = 1; offset < 500; offset += 3) byMap.complete(BigInt(offset))
    expect(byMap.isFull).toBe(false)
    byMap.committable()
    expect(byMap.isFull).toBe(true)
  })

  it('is never full with nothing in work, since nothing could end the pause', () => {
    const before = new OffsetTracker(0n)
    takeRange(before, 0, 2_000)
    for (let offset = 1; offset <= 2_000; offset += 2) before.complete(BigInt(offset))
    const { offset, metadata } = committable(before)
    const decoded = decodeOffsetMap(metadata, offset, 10_000n)
    if (decoded.kind !== 'map') throw new Error('unreadable')
    const after = new OffsetTracker(offset, decoded.map, { limits: { maxIncomplete: 1, maxSpan: 1, maxMapChars: 1 } })
    after.committable()
    expect(after.isFull).toBe(false)
    expect(after.hasRoom).toBe(true)
  })

  it('counts with offsets beyond 2^53', () => {
    const base = 2n ** 60n
    const tracker = new OffsetTracker(base)
    tracker.take(base)
    tracker.take(base + 1n)
    tracker.complete(base)
    expect(tracker.committableOffset).toBe(base + 1n)
  })

  it('leaves the map out when told so', () => {
    const tracker = new OffsetTracker(0n)
    takeRange(tracker, 0, 3)
    tracker.complete(2n)
    expect(committable(tracker).metadata).not.toBe('')
    expect(tracker.committable({ withoutMap: true })).toMatchObject({ offset: 0n, metadata: '' })
  })

  it('keeps as much of a map as fits, from its beginning', () => {
    const tracker = new OffsetTracker(0n)
    takeRange(tracker, 0, 100_000)
    const isCompleted = (offset: number): boolean => offset > 0 && Math.imul(offset, 0x9e3779b1) >>> 31 === 1
    for (let offset = 1; offset < 100_000; offset += 1) if (isCompleted(offset)) tracker.complete(BigInt(offset))
    const { offset, metadata } = committable(tracker)
    const decoded = decodeOffsetMap(metadata, offset, 100_000n)
    if (decoded.kind !== 'map') throw new Error('unreadable')
    const { span, incomplete } = decoded.map
    expect(span).toBeGreaterThan(20_000)
    expect(incomplete).toEqual([...Array(span).keys()].filter((each) => !isCompleted(each)))
  })
})
