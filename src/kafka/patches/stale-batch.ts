import type { KafkajsModules } from './kafkajs-modules.ts'

interface TopicPartition {
  readonly topic: string
  readonly partition: number
}
interface Runner {
  readonly running: boolean
  readonly consumerGroup: { hasSeekOffset(of: TopicPartition): boolean }
  handleBatch(batch: TopicPartition): Promise<void>
  heartbeat(): Promise<void>
}

/**
 * A batch that was fetched before a seek is not handled after it. Stock kafkajs hands it over with a flag, and for a batch without
 * visible messages (markers only) reports its end as the position read, which lies where the reader no longer is: a tracker that
 * believed it would commit over everything between the target of a rewind and that end.
 */
export function patchStaleBatch(modules: KafkajsModules): void {
  const { prototype } = modules.load('consumer/runner.js') as { prototype: Runner }
  const stock = prototype.handleBatch
  prototype.handleBatch = async function handleCurrentBatch(this: Runner, batch) {
    if (this.running && this.consumerGroup.hasSeekOffset(batch)) return this.heartbeat()
    return stock.call(this, batch)
  }
}
