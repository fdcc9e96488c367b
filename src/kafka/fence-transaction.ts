import type { AdminBroker } from './admin-broker.ts'
import type { Cluster, ClusterBroker } from './cluster.ts'
import type { ClusterSession } from './cluster-session.ts'

/** How long the broker lets a transaction of ours be open before it aborts it. */
export const TRANSACTION_TIMEOUT_MS = 60_000
/** Type of coordinator of a transactional id. */
const TRANSACTION_COORDINATOR = 1

/** Who writes under a transactional id, until somebody else fences it. */
export interface TransactionalProducer {
  readonly transactionalId: string
  readonly producerId: string
  readonly producerEpoch: number
}

/** The broker that knows what becomes of its transactions. */
export function transactionCoordinator(cluster: Cluster, transactionalId: string): Promise<ClusterBroker> {
  return cluster.findGroupCoordinator({ groupId: transactionalId, coordinatorType: TRANSACTION_COORDINATOR })
}

/**
 * Shuts out whoever uses this transactional id: what is open is aborted, and their next request is refused. This is the first request of
 * every transactional producer, sent alone. Safe to repeat.
 */
export async function fenceTransaction(session: ClusterSession, transactionalId: string): Promise<TransactionalProducer> {
  return session.run(`fencing ${transactionalId}`, async (cluster) => {
    const broker = (await transactionCoordinator(cluster, transactionalId)) as AdminBroker
    const { producerId, producerEpoch } = await broker.initProducerId({ transactionalId, transactionTimeout: TRANSACTION_TIMEOUT_MS })
    return { transactionalId, producerId, producerEpoch }
  })
}
