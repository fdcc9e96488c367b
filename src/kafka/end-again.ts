import type { TopicPartition } from '../kernel/brand.ts'
import type { Cluster, ClusterBroker, TopicsOf } from './cluster.ts'
import { byTopic, type ClusterSession } from './cluster-session.ts'
import type { CommitStep } from './commit-trail.ts'
import { fenceTransaction, type TransactionalProducer, transactionCoordinator } from './fence-transaction.ts'

/** Requests of a producer with transactions. They throw the error of an answer, with a `type`. */
interface TransactionBroker extends ClusterBroker {
  addPartitionsToTxn(request: TransactionalProducer & { topics: readonly TopicsOf<number>[] }): Promise<unknown>
  addOffsetsToTxn(request: TransactionalProducer & { groupId: string }): Promise<unknown>
  txnOffsetCommit(
    request: TransactionalProducer & {
      groupId: string
      topics: readonly TopicsOf<{ partition: number; offset: string; metadata: string }>[]
    },
  ): Promise<unknown>
  endTxn(request: TransactionalProducer & { transactionResult: boolean }): Promise<unknown>
}

/** A transaction whose coordinator calls it complete, and whose end does not stand behind its messages. */
export interface LostEnd {
  readonly transactionalId: string
  /** Of its messages. */
  readonly producerId: string
  /** Where its end is missing. */
  readonly open: readonly TopicPartition[]
  readonly result: 'commit' | 'abort'
  /** Its offset, where the broker has lost that as well, or may have. */
  readonly offset?: { readonly groupId: string; readonly input: TopicPartition; readonly step: Pick<CommitStep, 'offset' | 'metadata'> }
}

/**
 * Ends it once more. To a partition a producer has one transaction at a time: the end of the next one, which holds nothing else, is its
 * end too, and so is the one of the group's offsets. Only after a fence: nothing of this id is open at the coordinator then. Each request
 * may be repeated, but a new producer would abort what the one before has begun.
 * Shape: false where the id is another producer's by now, which can't end it. Errors: those of the session.
 */
export async function endAgain(session: ClusterSession, lost: LostEnd): Promise<boolean> {
  const { transactionalId, open, result, offset } = lost
  const what = `ending the transaction of ${transactionalId} once more`
  const run = <T>(call: (broker: TransactionBroker, cluster: Cluster) => Promise<T>): Promise<T> =>
    session.run(what, async (cluster) => call((await transactionCoordinator(cluster, transactionalId)) as TransactionBroker, cluster))
  const producer = await fenceTransaction(session, transactionalId)
  if (producer.producerId !== lost.producerId) return false
  const topics = byTopic(open, ({ partition }) => partition)
  await run((broker) => broker.addPartitionsToTxn({ ...producer, topics }))
  if (offset !== undefined) {
    const { groupId, input, step } = offset
    await run((broker) => broker.addOffsetsToTxn({ ...producer, groupId }))
    const partitions = [{ partition: input.partition, offset: String(step.offset), metadata: step.metadata }]
    const request = { ...producer, groupId, topics: [{ topic: input.topic, partitions }] }
    if (result === 'commit')
      await run(async (_, cluster) => ((await cluster.findGroupCoordinator({ groupId })) as TransactionBroker).txnOffsetCommit(request))
  }
  await run((broker) => broker.endTxn({ ...producer, transactionResult: result === 'commit' }))
  return true
}
