import { describe, expect, it } from 'vitest'
import type { Config } from '../../../src/config/options.ts'
import type { Runtime } from '../../../src/control/runtime.ts'
import { mayHaveDeleted } from '../../../src/control/urls-retention.ts'
import { topicNames } from '../../../src/message/topics.ts'

const RETENTION_MS = 1_000
const topics = topicNames('p.')

/** A topic from which messages were deleted, in one of its two partitions; undefined: none. */
function runtimeWith(deletedFrom?: string): Pick<Runtime, 'admin' | 'config' | 'topics'> {
  const earliestOffsets = async (topic: string): Promise<Map<number, bigint>> =>
    new Map([0n, topic === deletedFrom ? 7n : 0n].map((first, partition) => [partition, first]))
  const config = { 'topics.retention.urls': RETENTION_MS } as Config
  return { admin: { earliestOffsets } as unknown as Runtime['admin'], config, topics }
}

describe('whether retention may have deleted the tasks of a crawl', () => {
  it('is so where messages are gone from a lane or a delay topic, and nobody knows when the crawl began', async () => {
    for (const topic of [...Object.values(topics.urls), ...topics.delays.map((delay) => delay.topic)])
      expect(await mayHaveDeleted(runtimeWith(topic), undefined)).toBe(true)
    expect(await mayHaveDeleted(runtimeWith(topics.html), undefined)).toBe(false)
    expect(await mayHaveDeleted(runtimeWith(), undefined)).toBe(false)
  })

  it('is not so of a crawl that is younger than what it deletes', async () => {
    expect(await mayHaveDeleted(runtimeWith(topics.urls.normal), RETENTION_MS - 1)).toBe(false)
    expect(await mayHaveDeleted(runtimeWith(topics.urls.normal), RETENTION_MS)).toBe(true)
  })
})
