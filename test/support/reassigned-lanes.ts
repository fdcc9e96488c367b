import type { LaneConsumer, LaneHandlers } from '../../src/fetch/fetch-options.ts'
import type { KafkaMessage } from '../../src/kafka/message.ts'
import { OffsetTracker } from '../../src/kafka/offset-tracker.ts'
import { PartitionWindow } from '../../src/kafka/partition-window.ts'
import type { WindowEntry } from '../../src/kafka/window-entry.ts'
import { BaseService } from '../../src/kernel/lifecycle.ts'

/**
 * A consumer of one partition that is assigned when a test says so, and then reads again whatever has not been completed. It tells of it as
 * the real one does.
 */
export class ReassignedLanes extends BaseService implements LaneConsumer {
  readonly #handlers: LaneHandlers
  readonly #messages: readonly KafkaMessage[]
  #epoch = 0
  #window: PartitionWindow | undefined
  #committed = 0n

  constructor(handlers: LaneHandlers, messages: readonly KafkaMessage[]) {
    super()
    this.#handlers = handlers
    this.#messages = messages
  }

  protected async onStart(): Promise<void> {}
  protected async onDrain(): Promise<void> {}

  /** Lost and gained at once, as after an outage of the broker. */
  assign(): void {
    this.revoke()
    const [first] = this.#messages
    if (first === undefined) return
    this.#epoch += 1
    const { topic, partition } = first
    const window = new PartitionWindow({ topic, partition, epoch: this.#epoch }, new OffsetTracker(this.#committed))
    this.#window = window
    this.#handlers.onGained(window.assigned)
    const entries = this.#messages
      .filter(({ offset }) => offset >= this.#committed)
      .map((message) => window.take(message, performance.now(), () => undefined))
    this.#handlers.onEntries(entries.filter((entry) => entry !== undefined))
  }

  revoke(): void {
    const window = this.#window
    this.#window = undefined
    if (window === undefined) return
    this.#handlers.onRebalancing()
    window.lose()
    this.#handlers.onLost(window.assigned)
  }

  incompleteCount(): number {
    return this.#window?.tracker.incompleteCount ?? 0
  }

  bases(): readonly WindowEntry[] {
    return this.#window?.base === undefined ? [] : [this.#window.base]
  }
}
