import type { TopicPartition } from '../kernel/brand.ts'
import type { Cluster, ClusterBroker, TopicsOf } from './cluster.ts'
import { byTopic, type ClusterSession } from './cluster-session.ts'
import type { CommitStep } from './commit-trail.ts'
import { TRANSACTION_COORDINATOR, TRANSACTION_TIMEOUT_MS } from './fence-transactions.ts'

/** Requests of a producer with transactions. They throw the error of an answer, with a `type`. */
interface TransactionBroker extends ClusterBroker {
  initProducerId(request: {
    transactionalId: string
    transactionTimeout: number
  }): Promise<Pick<ProducerId, 'producerId' | 'producerEpoch'>>
  addPartitionsToTxn(request: ProducerId & { topics: readonly TopicsOf<number>[] }): Promise<unknown>
  addOffsetsToTxn(request: ProducerId & { groupId: string }): Promise<unknown>
  txnOffsetCommit(
    request: ProducerId & { groupId: string; topics: readonly TopicsOf<{ partition: number; offset: string; metadata: string }>[] },
  ): Promise<unknown>
  endTxn(request: ProducerId & { transactionResult: boolean }): Promise<unknown>
}

interface ProducerId {
  readonly transactionalId: string
  readonly producerId: string
  readonly producerEpoch: number
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
  const asked = { groupId: transactionalId, coordinatorType: TRANSACTION_COORDINATOR }
  const run = <T>(call: (broker: TransactionBroker, cluster: Cluster) => Promise<T>): Promise<T> =>
    session.run(what, async (cluster) => call((await cluster.findGroupCoordinator(asked)) as TransactionBroker, cluster))
  const transactionTimeout = TRANSACTION_TIMEOUT_MS
  const { producerId, producerEpoch } = await run((broker) => broker.initProducerId({ transactionalId, transactionTimeout }))
  if (producerId !== lost.producerId) return false
  const id: ProducerId = { transactionalId, producerId, producerEpoch }
  const topics = byTopic(open, ({ partition }) => partition)
  await run((broker) => broker.addPartitionsToTxn({ ...id, topics }))
  if (offset !== undefined) {
    const { groupId, input, step } = offset
    await run((broker) => broker.addOffsetsToTxn({ ...id, groupId }))
    const partitions = [{ partition: input.partition, offset: String(step.offset), metadata: step.metadata }]
    const request = { ...id, groupId, topics: [{ topic: input.topic, partitions }] }
    if (result === 'commit')
      await run(async (_, cluster) => ((await cluster.findGroupCoordinator({ groupId })) as TransactionBroker).txnOffsetCommit(request))
  }
  await run((broker) => broker.endTxn({ ...id, transactionResult: result === 'commit' }))
  return true
}
