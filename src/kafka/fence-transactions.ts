import type { AdminBroker } from './admin-broker.ts'
import type { ClusterSession } from './cluster-session.ts'

/** How long the broker lets a transaction of ours be open before it aborts it. */
export const TRANSACTION_TIMEOUT_MS = 60_000
/** Type of coordinator of a transactional id. */
export const TRANSACTION_COORDINATOR = 1 as const

/**
 * Shuts out whoever uses these transactional ids: what is open is aborted, and their next request is refused. This is the first
 * request of every transactional producer, sent alone. Safe to repeat.
 */
export async function fenceTransactions(session: ClusterSession, transactionalIds: readonly string[]): Promise<void> {
  for (const transactionalId of transactionalIds) {
    await session.run(`fencing ${transactionalId}`, async (cluster) => {
      const broker = await cluster.findGroupCoordinator({ groupId: transactionalId, coordinatorType: TRANSACTION_COORDINATOR })
      await (broker as AdminBroker).initProducerId({ transactionalId, transactionTimeout: TRANSACTION_TIMEOUT_MS })
    })
  }
}
