import type { ReplayPlan } from './replay-plan.ts'

/** One place in the range of a replay. */
export interface Place {
  readonly partition: number
  readonly offset: bigint
}

/** Fraction of the golden ratio: its multiples fill an interval evenly, however early one stops. */
const GOLDEN = 0.618_033_988_749_894_9

/**
 * Places spread evenly over the whole range, every partition by its share, none twice. Pure: the same range gives the same places in
 * the same order. Shape: at most `count`; whoever stops early has still seen all parts of the range.
 */
export function* samplePlaces(plan: Pick<ReplayPlan, 'partitions' | 'offsets'>, count: number): Generator<Place> {
  const total = Number(plan.offsets)
  const seen = new Set<number>()
  for (let index = 0; index < count && seen.size < total; index += 1) {
    let position = Math.floor((((index + 0.5) * GOLDEN) % 1) * total)
    while (seen.has(position)) position = (position + 1) % total
    seen.add(position)
    const place = placeAt(plan, BigInt(position))
    if (place !== undefined) yield place
  }
}

function placeAt(plan: Pick<ReplayPlan, 'partitions'>, position: bigint): Place | undefined {
  let left = position
  for (const { partition, from, offsets } of plan.partitions) {
    if (left < offsets) return { partition, offset: from + left }
    left -= offsets
  }
  return undefined
}
