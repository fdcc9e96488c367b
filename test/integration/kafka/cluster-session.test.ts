import { afterAll, describe, expect, it } from 'vitest'
import type { Cluster } from '../../../src/kafka/cluster.ts'
import { byLeader, ClusterSession, partitionsOf } from '../../../src/kafka/cluster-session.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { testAdmin, testClient, testTopic } from '../../support/kafka.ts'

const client = testClient()
const admin = testAdmin(client)
const session = new ClusterSession({ client, clock: systemClock })

afterAll(async () => {
  await session.close()
  await admin.close()
})

describe('the partitions of a topic', () => {
  it('are known although the refresh that was joined had been asked before the topic was wanted', async () => {
    const known = await testTopic(admin, 'known', 2)
    const wanted = await testTopic(admin, 'wanted', 3)
    const also = await testTopic(admin, 'also', 1)
    await session.run('a test', async (cluster) => {
      await partitionsOf(cluster, [known])
      const refreshes = joinedRefreshes(cluster, 2)
      expect([...(await partitionsOf(cluster, [known, wanted]))]).toEqual([
        [known, [0, 1]],
        [wanted, [0, 1, 2]],
      ])
      expect(refreshes.joined).toBe(2)
      joinedRefreshes(cluster, 2)
      const [leader] = await byLeader(cluster, [{ topic: also, partition: 0 }])
      expect(leader?.partitions).toEqual([{ topic: also, partition: 0 }])
    })
  })
})

/** The next refreshes of this cluster resolve like one that was under way: without topics that were added meanwhile. */
function joinedRefreshes(cluster: Cluster, count: number): { joined: number } {
  const refreshes = { joined: 0 }
  const stock = { all: cluster.refreshMetadata.bind(cluster), needed: cluster.refreshMetadataIfNecessary.bind(cluster) }
  const joined = (next: () => Promise<void>): Promise<void> => {
    if (refreshes.joined === count) return next()
    refreshes.joined += 1
    return Promise.resolve()
  }
  cluster.refreshMetadata = () => joined(stock.all)
  cluster.refreshMetadataIfNecessary = () => joined(stock.needed)
  return refreshes
}
