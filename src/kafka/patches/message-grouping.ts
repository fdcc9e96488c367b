import type { KafkajsModules } from './kafkajs-modules.ts'

interface GroupingInput {
  readonly topic: string
  readonly partitionMetadata: readonly unknown[]
  readonly messages: readonly unknown[]
  readonly partitioner: (args: { topic: string; partitionMetadata: readonly unknown[]; message: unknown }) => number
}

/** Messages of one send by partition, in their order. Linear; stock kafkajs copies the list of a partition for every message. */
export function groupByPartition({ topic, partitionMetadata, messages, partitioner }: GroupingInput): Record<number, unknown[]> {
  const groups: Record<number, unknown[]> = {}
  if (partitionMetadata.length === 0) return groups
  for (const message of messages) {
    const partition = partitioner({ topic, partitionMetadata, message })
    const group = groups[partition]
    if (group === undefined) groups[partition] = [message]
    else group.push(message)
  }
  return groups
}

/** A send of many messages to one partition does not block the event loop for seconds. */
export function patchMessageGrouping(modules: KafkajsModules): void {
  modules.replace('producer/groupMessagesPerPartition.js', groupByPartition)
}
