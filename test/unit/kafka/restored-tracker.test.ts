import { describe, expect, it } from 'vitest'
import type { ClusterSession } from '../../../src/kafka/cluster-session.ts'
import type { GroupPosition } from '../../../src/kafka/committed-offsets.ts'
import { restoreTrackers } from '../../../src/kafka/restored-tracker.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'

/** Where two partitions begin to be read, with 5 committed in each, as the end of the second is told from one look to the next. */
async function startsWhereEndIs(ends: readonly bigint[]): Promise<{ readonly starts: readonly bigint[]; readonly looks: number }> {
  let looks = 0
  const positions = (): GroupPosition[] => {
    looks += 1
    const high = ends[Math.min(looks, ends.length) - 1] ?? 0n
    const at = { topic: 'urls', committed: 5n, metadata: '', low: 1n }
    return [
      { ...at, partition: 0, high: 9n },
      { ...at, partition: 1, high },
    ]
  }
  const restored = await restoreTrackers({
    session: { run: async () => positions() } as unknown as ClusterSession,
    groupId: 'g',
    wanted: () => [0, 1].map((partition) => ({ topic: 'urls', partition, epoch: 1 })),
    observer: silentObserver,
    clock: { ...systemClock, sleep: async () => undefined },
    signal: new AbortController().signal,
  })
  return { starts: restored.map(({ tracker }) => tracker.position), looks }
}

describe('a partition whose committed offset lies behind the end of its log', () => {
  it('is looked at again, since a broker that has just started may not know the end yet', async () => {
    expect(await startsWhereEndIs([0n, 4n, 5n])).toEqual({ starts: [5n, 5n], looks: 3 })
  })

  it('begins at the beginning where the log stays shorter: of what came since nobody knows what was read', async () => {
    expect(await startsWhereEndIs([3n])).toEqual({ starts: [5n, 1n], looks: 6 })
  })
})
