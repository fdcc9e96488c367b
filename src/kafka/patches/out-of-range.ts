import type { KafkajsModules } from './kafkajs-modules.ts'

interface TopicPartition {
  readonly topic: string
  readonly partition: number
}
interface OffsetManager {
  clearOffsets(of: TopicPartition): void
  setDefaultOffset(of: TopicPartition): Promise<void>
}
interface ConsumerGroup {
  hasSeekOffset(of: TopicPartition): boolean
  recoverFromOffsetOutOfRange(error: TopicPartition): Promise<void>
}

/**
 * A partition whose place the log has lost (retention, or another log) is forgotten until somebody seeks, and nothing is committed. Stock
 * kafkajs commits offset -2 without metadata: what the group had done is lost, with whatever stood in the metadata. Whoever reads is told
 * before (`ConsumerLoop`), and begins the partition anew from what is committed. A place that was left by a seek meanwhile is none any
 * more.
 */
export function patchOutOfRange(modules: KafkajsModules): void {
  const { prototype: offsets } = modules.load('consumer/offsetManager/index.js') as { prototype: OffsetManager }
  offsets.setDefaultOffset = async function forgetOffset(this: OffsetManager, of) {
    this.clearOffsets(of)
  }
  const { prototype: group } = modules.load('consumer/consumerGroup.js') as { prototype: ConsumerGroup }
  const stock = group.recoverFromOffsetOutOfRange
  group.recoverFromOffsetOutOfRange = async function recoverUnlessLeft(this: ConsumerGroup, error) {
    if (!this.hasSeekOffset(error)) await stock.call(this, error)
  }
}
