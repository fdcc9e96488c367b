import type { Consumer } from 'kafkajs'
import type { TopicPartition } from '../kernel/brand.ts'

export interface GroupJoin {
  readonly memberId: string
  readonly memberAssignment: Readonly<Record<string, readonly number[]>>
}

export interface BatchEnd extends TopicPartition {
  /** Visible messages; 0 for a batch of markers, aborted or compacted records alone. */
  readonly batchSize: number
  readonly lastOffset: string
}

export interface CommitSent {
  readonly topics: readonly {
    readonly topic: string
    readonly partitions: readonly { readonly partition: number; readonly offset: unknown }[]
  }[]
}

export interface ConsumerListener {
  onFetch(): void
  onJoin(join: GroupJoin): void
  /** Not before every join: a member that was expelled joins again without it. */
  onRebalancing(): void
  onBatchEnd(end: BatchEnd): void
  onCommit(commit: CommitSent): void
  /** It has left its group; from here on every call of it throws. */
  onStop(): void
  /** It has stopped and disconnected. */
  onCrash(error: unknown): void
}

/** Subscribes to what a consumer of kafkajs tells. The listener must not throw: it is called from inside kafkajs. */
export function listenTo(consumer: Consumer, listener: ConsumerListener): void {
  const on = <T>(name: string, run: (payload: T) => void): void => {
    const subscribe = consumer.on.bind(consumer) as (event: string, listener: (event: { payload: T }) => void) => void
    subscribe(name, ({ payload }) => run(payload))
  }
  const { events } = consumer
  on(events.FETCH, () => listener.onFetch())
  on<GroupJoin>(events.GROUP_JOIN, (payload) => listener.onJoin(payload))
  on(events.REBALANCING, () => listener.onRebalancing())
  on<BatchEnd>(events.END_BATCH_PROCESS, (payload) => listener.onBatchEnd(payload))
  on<CommitSent>(events.COMMIT_OFFSETS, (payload) => listener.onCommit(payload))
  on(events.STOP, () => listener.onStop())
  on<{ error: unknown }>(events.CRASH, ({ error }) => listener.onCrash(error))
}
