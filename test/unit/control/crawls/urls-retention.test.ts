import { describe, expect, it } from 'vitest'
import type { Config } from '../../../../src/config/options.ts'
import { deleteFinished, mayHaveDeleted } from '../../../../src/control/crawls/urls-retention.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { groupNames, topicNames } from '../../../../src/message/topics.ts'

const RETENTION_MS = 1_000
const topics = topicNames('p.')

/** A topic from which messages were deleted, in one of its two partitions; undefined: none. */
function runtimeWith(deletedFrom?: string): Pick<Runtime, 'admin' | 'config' | 'topics'> {
  const earliestOffsets = async (topic: string): Promise<Map<number, bigint>> =>
    new Map([0n, topic === deletedFrom ? 7n : 0n].map((first, partition) => [partition, first]))
  const config = { 'topics.retention.urls': RETENTION_MS } as Config
  return { admin: { earliestOffsets } as unknown as Runtime['admin'], config, topics }
}

describe('finished tasks', () => {
  it('leave the delay topics after two hours, where each is written again once an hour, and the lanes by their retention', async () => {
    const DAY_MS = 86_400_000
    const now = 30 * DAY_MS
    const deleted: Record<string, bigint | undefined> = {}
    // A message a second since the beginning, of which all but the last hundred are finished.
    const end = BigInt(now / 1_000)
    const admin = {
      lag: async (_group: string, names: readonly string[]) =>
        names.map((topic) => ({ topic, partition: 0, committed: end - 100n, low: 5n, end })),
      offsetsForTime: async (_topic: string, at: number) => new Map([[0, BigInt(at / 1_000)]]),
      deleteRecordsBefore: async (topic: string, offsets: ReadonlyMap<number, bigint>) => {
        deleted[topic] = offsets.get(0)
      },
    }
    const runtime = (keptMs: number): Runtime =>
      ({
        admin,
        clock: { now: () => now },
        config: { 'topics.retention.urls': keptMs },
        groups: groupNames('p.'),
        topics,
      }) as unknown as Runtime
    const delay = topics.delays.at(-1)?.topic ?? ''
    await deleteFinished(runtime(7 * DAY_MS))
    expect(deleted).toMatchObject({ [topics.urls.normal]: end - 604_800n, [delay]: end - 7_200n })
    await deleteFinished(runtime(1_000))
    expect(deleted).toMatchObject({ [topics.urls.normal]: end - 100n, [delay]: end - 100n })
  })
})

describe('whether retention may have deleted the tasks of a crawl', () => {
  it('is so where messages are gone from a lane, and nobody knows when the crawl began', async () => {
    for (const topic of Object.values(topics.urls)) expect(await mayHaveDeleted(runtimeWith(topic), undefined)).toBe(true)
    // What leaves a delay topic is in a lane again.
    for (const topic of [topics.html, ...topics.delays.map((delay) => delay.topic)])
      expect(await mayHaveDeleted(runtimeWith(topic), undefined)).toBe(false)
    expect(await mayHaveDeleted(runtimeWith(), undefined)).toBe(false)
  })

  it('is not so of a crawl that is younger than what it deletes', async () => {
    expect(await mayHaveDeleted(runtimeWith(topics.urls.normal), RETENTION_MS - 1)).toBe(false)
    expect(await mayHaveDeleted(runtimeWith(topics.urls.normal), RETENTION_MS)).toBe(true)
  })
})
