import type { PartitionId, TopicPartition } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { type AdminBroker, groupBroker } from './admin-broker.ts'
import type { KafkaClient } from './client.ts'
import type { Cluster } from './cluster.ts'
import { byTopic, type ClusterSession, partitionsOf } from './cluster-session.ts'
import type { CommittedOffset } from './committed-offsets.ts'
import { kafkajsFailure } from './failure.ts'
import { readStableOffsets } from './stable-offsets.ts'

export interface GroupMember {
  readonly memberId: string
  readonly clientId: string
  /** Address as the broker saw it, without the leading slash. */
  readonly host: string
  readonly assignment: readonly TopicPartition[]
}

export interface GroupDescription {
  readonly groupId: string
  /** Dead is also a group that never was. */
  readonly state: 'Dead' | 'Empty' | 'PreparingRebalance' | 'CompletingRebalance' | 'Stable' | 'Unknown'
  readonly members: readonly GroupMember[]
}

export interface OffsetToCommit extends TopicPartition {
  /** Next offset to read; never negative. */
  readonly offset: bigint
  /** At most 4,096 UTF-16 units. */
  readonly metadata: string
}

/** What a broker takes as metadata of a commit where nothing else is set. */
const MAX_METADATA_LENGTH = 4_096
/** A transaction is at its end for some ms; one that is open for longer than this has lost its producer, and whoever asks is not kept. */
const HANGING_MS = 1_000
/** Answers to a commit that comes from nobody, when the group has members. */
const ACTIVE = new Set(['UNKNOWN_MEMBER_ID', 'ILLEGAL_GENERATION', 'REBALANCE_IN_PROGRESS'])

/** Consumer groups from outside: their members, and what they have committed. */
export class GroupAdmin {
  readonly #session: ClusterSession
  readonly #client: KafkaClient
  readonly #clock: Pick<Clock, 'mono' | 'sleep'>

  constructor(session: ClusterSession, client: KafkaClient, clock: Pick<Clock, 'mono' | 'sleep'>) {
    this.#session = session
    this.#client = client
    this.#clock = clock
  }

  /** Ids of all groups of all brokers, sorted. */
  async list(): Promise<string[]> {
    return this.#session.run('listing groups', async (cluster) => {
      await cluster.refreshMetadata()
      const answers = await Promise.all(
        cluster.getNodeIds().map(async (nodeId) => ((await cluster.findBroker({ nodeId })) as AdminBroker).listGroups()),
      )
      return [...new Set(answers.flatMap(({ groups }) => groups.map(({ groupId }) => groupId)))].sort()
    })
  }

  async describe(groupId: string): Promise<GroupDescription> {
    return this.#session.run(`describing group ${groupId}`, async (cluster) => {
      const broker = await groupBroker(cluster, groupId)
      const { groups } = await broker.describeGroups({ groupIds: [groupId] })
      const found = groups.find((group) => group.groupId === groupId)
      return {
        groupId,
        state: (found?.state ?? 'Dead') as GroupDescription['state'],
        members: (found?.members ?? []).map(({ memberId, clientId, clientHost, memberAssignment }) => ({
          memberId,
          clientId,
          host: clientHost.replace(/^\//, ''),
          assignment: this.#assignment(memberAssignment),
        })),
      }
    })
  }

  /**
   * Takes a member out, as it would leave itself: the others need not wait for its session to run out. A living one joins again. Shape:
   * false when it was no member.
   */
  async evict(groupId: string, memberId: string, options: { signal?: AbortSignal } = {}): Promise<boolean> {
    const leave = async (cluster: Cluster): Promise<boolean> => {
      const broker = await groupBroker(cluster, groupId)
      try {
        await broker.leaveGroup({ groupId, memberId })
        return true
      } catch (error) {
        if (kafkajsFailure(error).type === 'UNKNOWN_MEMBER_ID') return false
        throw error
      }
    }
    return this.#session.run(`taking a member out of group ${groupId}`, leave, options)
  }

  /** Shape: false when there was none. Errors: KAFKA_GROUP_ACTIVE when it has members. */
  async delete(groupId: string): Promise<boolean> {
    return this.#session.run(`deleting group ${groupId}`, async (cluster) => {
      const broker = await groupBroker(cluster, groupId)
      const { results } = await broker.deleteGroups([groupId])
      const error = results.find((result) => result.groupId === groupId)?.error
      if (error === undefined) return true
      if (error.type === 'GROUP_ID_NOT_FOUND') return false
      if (error.type === 'NON_EMPTY_GROUP') throw groupActive(groupId, 'deleted', error)
      throw error
    })
  }

  /**
   * What a group has committed, for every partition of the topics, after the transactions that are just ending; of one that hangs what was
   * before it, after `limitMs`. Shape: one entry per partition, committed or not.
   */
  async committed(groupId: string, topics: readonly string[], limitMs = HANGING_MS): Promise<Map<PartitionId, CommittedOffset>> {
    const what = `reading the offsets of group ${groupId}`
    const byTopics = await this.#session.run(what, (cluster) => partitionsOf(cluster, topics))
    const partitions = [...byTopics].flatMap(([topic, numbers]) => numbers.map((partition) => ({ topic, partition })))
    const options = { clock: this.#clock, limitMs, what }
    return (await readStableOffsets(this.#session, { groupId, partitions }, options)).committed
  }

  /**
   * Sets offsets of a group without members, in one request. The broker refuses it when there are members, so this can't race with
   * a live group. Errors: KAFKA_GROUP_ACTIVE; INTERNAL for an offset or metadata that must not be stored.
   */
  async commitDirect(groupId: string, offsets: readonly OffsetToCommit[]): Promise<void> {
    for (const { topic, partition, offset, metadata } of offsets) {
      if (offset >= 0n && metadata.length <= MAX_METADATA_LENGTH) continue
      throw new MillraceError(
        'INTERNAL',
        `offset ${offset} with metadata of ${metadata.length} characters can not be committed for ${topic}/${partition}`,
        { context: { topic, partition, offset } },
      )
    }
    if (offsets.length === 0) return
    await this.#session.run(`setting the offsets of group ${groupId}`, async (cluster) => {
      const broker = await groupBroker(cluster, groupId)
      const topics = byTopic(offsets, ({ partition, offset, metadata }) => ({ partition, offset: String(offset), metadata }))
      try {
        await broker.offsetCommit({ groupId, groupGenerationId: -1, memberId: '', topics })
      } catch (error) {
        if (ACTIVE.has(kafkajsFailure(error).type ?? '')) throw groupActive(groupId, 'set', error)
        throw error
      }
    })
  }

  #assignment(bytes: Buffer): TopicPartition[] {
    if (bytes.length === 0) return []
    const decoded = this.#client.kafkajs.AssignerProtocol.MemberAssignment.decode(bytes)
    return Object.entries(decoded?.assignment ?? {}).flatMap(([topic, partitions]) => partitions.map((partition) => ({ topic, partition })))
  }
}

function groupActive(groupId: string, verb: string, cause: unknown): MillraceError {
  return new MillraceError('KAFKA_GROUP_ACTIVE', `group ${groupId} has members: it can not be ${verb} while they run. Stop them first.`, {
    cause,
    context: { groupId },
  })
}
