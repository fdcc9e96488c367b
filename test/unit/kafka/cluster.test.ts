import { describe, expect, it } from 'vitest'
import { type ClusterMetadata, clusterMetadata } from '../../../src/kafka/cluster.ts'
import { kafkajsFailure } from '../../../src/kafka/failure.ts'

describe('the metadata of a cluster', () => {
  it('is what a broker answers', async () => {
    const metadata: ClusterMetadata = { brokers: [], clusterId: 'c', controllerId: 1, topicMetadata: [] }
    expect(await clusterMetadata({ metadata: async () => metadata })).toBe(metadata)
  })

  it('is a failure of the connection where no broker answers, for which the client has nothing but null', async () => {
    const failed = await clusterMetadata({ metadata: async () => null }).catch((error: unknown) => error)
    expect(kafkajsFailure(failed)).toEqual({ type: undefined, name: 'KafkaJSConnectionError', message: 'no broker has answered' })
  })
})
