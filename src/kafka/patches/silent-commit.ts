import type { KafkajsModules } from './kafkajs-modules.ts'

interface Runner {
  readonly running: boolean
  readonly consumerGroup: { commitOffsets(offsets: unknown): Promise<void> }
  commitOffsets(offsets: unknown): Promise<void> | undefined
}

/**
 * A commit is tried once, under the generation in which it was asked for, and rejects while the consumer has not joined yet or is
 * stopping. Stock kafkajs resolves there and stores nothing. It also repeats a failed commit under whatever generation it has by
 * then; the broker does not check who owns a partition, so a repeat after a rebalance would move the offset of another member.
 */
export function patchSilentCommit(modules: KafkajsModules): void {
  const { prototype } = modules.load('consumer/runner.js') as { prototype: Runner }
  const { KafkaJSNonRetriableError } = modules.load('errors.js') as { KafkaJSNonRetriableError: new (message: string) => Error }
  prototype.commitOffsets = async function commitOnceWhileRunning(this: Runner, offsets) {
    if (!this.running) throw new KafkaJSNonRetriableError('the consumer is not in its group (joining or stopping): nothing was committed')
    return this.consumerGroup.commitOffsets(offsets)
  }
}
