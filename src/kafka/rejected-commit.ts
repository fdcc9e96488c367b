import type { TopicPartition } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ClusterSession } from './cluster-session.ts'
import type { CommittedOffset } from './committed-offsets.ts'
import { fetchLog } from './log-fetch.ts'

/**
 * A transaction whose commit was rejected: it may have happened. Kept since a broker can lose the offset of a transaction whose messages
 * are committed: after a start it may hold the offset as pending for ever (seen with Apache Kafka 4.4, stopped by SIGTERM in the middle
 * of a commit, once in some hundred times). The messages tell the truth then.
 */
export interface RejectedCommit {
  /** What the broker held before it. */
  readonly before: CommittedOffset
  readonly offset: bigint
  readonly metadata: string
  /** Where one of its messages lies. */
  readonly message: TopicPartition & { readonly offset: bigint }
  /** The one before it, whose offset was restored and which the broker has not heard of since. */
  readonly former?: RejectedCommit | undefined
}

/** By transactional id; of one process. */
export type RejectedCommits = Map<string, RejectedCommit>

const LOOK_EVERY_MS = 100

/**
 * Whether its message is there for readers of committed messages. Its own transaction must have ended; that of another producer may still
 * hold the log up before it, and is waited for until `deadlineMono`. Undefined: not known by then.
 */
export async function isCommitted(
  session: ClusterSession,
  { message }: RejectedCommit,
  { clock, deadlineMono }: { readonly clock: Clock; readonly deadlineMono: number },
): Promise<boolean | undefined> {
  const { topic, partition, offset } = message
  const limits = { isolation: 'read_committed', maxWaitMs: 0, maxBytes: 1, maxBytesPerPartition: 1 } as const
  for (;;) {
    const [fetched] = await session.run(`looking for offset ${offset} of ${topic}/${partition}`, (cluster) =>
      fetchLog(cluster, [{ topic, partition, position: offset }], limits),
    )
    if (fetched !== undefined && fetched.end > offset) return fetched.messages().some((found) => found.offset === offset)
    if (clock.mono() >= deadlineMono) return undefined
    await clock.sleep(LOOK_EVERY_MS)
  }
}
