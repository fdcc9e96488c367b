import type { KafkajsModules } from './kafkajs-modules.ts'

interface Runner {
  readonly running: boolean
  commitOffsets(offsets: unknown): Promise<void> | undefined
}

/**
 * A commit while the consumer has not joined yet, or is stopping, rejects. Stock kafkajs resolves and stores nothing.
 */
export function patchSilentCommit(modules: KafkajsModules): void {
  const { prototype } = modules.load('consumer/runner.js') as { prototype: Runner }
  const { KafkaJSNonRetriableError } = modules.load('errors.js') as { KafkaJSNonRetriableError: new (message: string) => Error }
  const stock = prototype.commitOffsets
  prototype.commitOffsets = function commitOnlyWhileRunning(this: Runner, offsets) {
    if (this.running) return stock.call(this, offsets)
    return Promise.reject(new KafkaJSNonRetriableError('the consumer is not in its group (joining or stopping): nothing was committed'))
  }
}
