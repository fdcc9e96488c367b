import type { MessagePlace, TopicPartition } from '../kernel/brand.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { AdminBroker } from './admin-broker.ts'
import type { Cluster } from './cluster.ts'
import { byLeader, byTopic, type ClusterSession, ledOf, partitionsOf } from './cluster-session.ts'

/** `read_uncommitted` ends at the high watermark, `read_committed` at the last stable offset: before the first open transaction. */
export type Isolation = 'read_uncommitted' | 'read_committed'

/** As the protocol calls the first offset of a log and its end. */
export const EARLIEST = '-2'
export const LATEST = '-1'

export function isolationLevel(isolation: Isolation): 0 | 1 {
  return isolation === 'read_committed' ? 1 : 0
}

/** `led` leaves out offline partitions, which have no leader; `all` fails where there is one. */
export type Which = 'all' | 'led'

export interface LogBounds {
  /** First offset that is still there. */
  readonly low: bigint
  /** Where reading ends: before the first transaction that is open. */
  readonly stableEnd: bigint
  /** Behind the last message. */
  readonly end: bigint
}

/** Offsets of the logs themselves; groups are elsewhere. */
export class LogOffsets {
  readonly #session: ClusterSession

  constructor(session: ClusterSession) {
    this.#session = session
  }

  /** Partition numbers of a topic, ascending. */
  async partitions(topic: string): Promise<number[]> {
    const found = await this.#session.run(`reading the partitions of topic ${topic}`, (cluster) => partitionsOf(cluster, [topic]))
    return found.get(topic) ?? []
  }

  /** First offset that is still there, by partition. */
  earliest(topic: string, which: Which = 'all'): Promise<Map<number, bigint>> {
    return this.#ofTopic(topic, EARLIEST, 'read_uncommitted', which)
  }

  /** Offset behind the last message, by partition. The client's own call shows the last stable offset as if it were the end. */
  end(topic: string, isolation: Isolation, which: Which = 'all'): Promise<Map<number, bigint>> {
    return this.#ofTopic(topic, LATEST, isolation, which)
  }

  bounds(at: TopicPartition): Promise<LogBounds> {
    return this.#session.run(`reading the bounds of ${at.topic}/${at.partition}`, async (cluster) => {
      const [low, stableEnd, end] = await Promise.all([
        listOffsets(cluster, [at], EARLIEST, 'read_uncommitted'),
        listOffsets(cluster, [at], LATEST, 'read_committed'),
        listOffsets(cluster, [at], LATEST, 'read_uncommitted'),
      ])
      return { low: offsetAt(low, at), stableEnd: offsetAt(stableEnd, at), end: offsetAt(end, at) }
    })
  }

  /** First offset with a timestamp of `epochMs` or later, by partition; the end where there is none. */
  async forTime(topic: string, epochMs: number): Promise<Map<number, bigint>> {
    // The end first: what is written in between then counts as later.
    const end = await this.end(topic, 'read_uncommitted')
    // Below 0 the protocol means something else: -1 the end, -2 the begin.
    const found = await this.#ofTopic(topic, String(Math.max(0, Math.ceil(epochMs))), 'read_uncommitted', 'all')
    return new Map([...end].map(([partition, offset]) => [partition, atLeastZero(found.get(partition)) ?? offset]))
  }

  /**
   * Deletes what lies below an offset; disk comes back by whole segments. Shape: offsets above the end are taken as the end, those
   * below the first offset do nothing.
   */
  async deleteBefore(topic: string, offsets: ReadonlyMap<number, bigint>): Promise<void> {
    const end = await this.end(topic, 'read_uncommitted')
    const wanted = [...offsets].map(([partition, offset]) => ({ topic, partition, offset: String(atMost(offset, end.get(partition))) }))
    await this.#session.run(`deleting old messages of topic ${topic}`, async (cluster) => {
      for (const { broker, partitions } of await byLeader(cluster, wanted)) {
        const topics = byTopic(partitions, ({ partition, offset }) => ({ partition, offset }))
        await (broker as AdminBroker).deleteRecords({ topics })
      }
    })
  }

  async #ofTopic(topic: string, timestamp: string, isolation: Isolation, which: Which): Promise<Map<number, bigint>> {
    const entries = await this.#session.run(`reading offsets of topic ${topic}`, async (cluster) => {
      const partitions = (await partitionsOf(cluster, [topic])).get(topic) ?? []
      const asked = partitions.map((partition) => ({ topic, partition }))
      return listOffsets(cluster, which === 'led' ? await ledOf(cluster, asked) : asked, timestamp, isolation)
    })
    return new Map(entries.map(({ partition, offset }) => [partition, offset]))
  }
}

/**
 * One ListOffsets to each leader. Shape: one entry per partition given, ascending by partition; -1 where no message is that late.
 * Errors: what kafkajs throws; KAFKA_REQUEST_FAILED where a broker leaves a partition out, since whoever took that for 0 would begin
 * its log again.
 */
export async function listOffsets(
  cluster: Cluster,
  partitions: readonly TopicPartition[],
  timestamp: string,
  isolation: Isolation,
): Promise<MessagePlace[]> {
  const groups = await byLeader(cluster, partitions)
  const answers = await Promise.all(
    groups.map(({ broker, partitions: led }) =>
      broker.listOffsets({
        replicaId: -1,
        isolationLevel: isolationLevel(isolation),
        topics: byTopic(led, ({ partition }) => ({ partition, timestamp })),
      }),
    ),
  )
  const found = answers
    .flatMap(({ responses }) =>
      responses.flatMap((answer) =>
        answer.partitions.map(({ partition, offset }) => ({ topic: answer.topic, partition, offset: BigInt(offset) })),
      ),
    )
    .sort((a, b) => a.partition - b.partition)
  for (const asked of partitions) offsetAt(found, asked)
  return found
}

/** The offset of one partition. Errors: KAFKA_REQUEST_FAILED where it was left out. */
export function offsetAt(offsets: readonly MessagePlace[], { topic, partition }: TopicPartition): bigint {
  const found = offsets.find((entry) => entry.topic === topic && entry.partition === partition)
  if (found !== undefined) return found.offset
  throw new MillraceError('KAFKA_REQUEST_FAILED', `the brokers gave no offset of ${topic}/${partition}`, { context: { topic, partition } })
}

function atMost(offset: bigint, limit: bigint | undefined): bigint {
  if (limit !== undefined && offset > limit) return limit
  return offset
}

function atLeastZero(offset: bigint | undefined): bigint | undefined {
  return offset === undefined || offset < 0n ? undefined : offset
}
