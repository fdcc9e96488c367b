import type { KafkajsModules } from './kafkajs-modules.ts'

interface Cluster {
  findTopicPartitionMetadata(topic: string): readonly { readonly partitionId: number }[]
  findLeaderForPartitions(topic: string, partitions: readonly (number | string)[]): Record<string, number[]>
}

/**
 * A send to a partition that the client's metadata does not know is retried with fresh metadata, and fails when that does not know
 * it either. Stock kafkajs leaves such messages out and resolves as if they were stored.
 */
export function patchUnknownPartition(modules: KafkajsModules): void {
  const { prototype } = modules.load('cluster/index.js') as { prototype: Cluster }
  const { KafkaJSMetadataNotLoaded } = modules.load('errors.js') as { KafkaJSMetadataNotLoaded: new (message: string) => Error }
  const stock = prototype.findLeaderForPartitions
  prototype.findLeaderForPartitions = function findLeaderOfKnownPartitions(this: Cluster, topic, partitions) {
    const known = new Set(this.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId))
    const unknown = partitions.filter((partition) => !known.has(Number(partition)))
    if (unknown.length > 0) {
      // This class makes the producer refresh its metadata and try again.
      throw new KafkaJSMetadataNotLoaded(`the metadata of topic ${topic} has no partition ${unknown.join(', ')} (it has ${known.size})`)
    }
    return stock.call(this, topic, partitions)
  }
}
