import type { Consumer, EachBatchPayload } from 'kafkajs'
import { AwakeTime } from '../kernel/awake-time.ts'
import { backoffMs } from '../kernel/backoff.ts'
import { type PartitionId, partitionId, type TopicPartition } from '../kernel/brand.ts'
import { type Clock, repeated, within } from '../kernel/clock.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { BaseService } from '../kernel/lifecycle.ts'
import type { Observer } from '../kernel/observe.ts'
import { stickyAssigner } from './assigner.ts'
import { type AssignedPartition, type Assignment, type AssignmentChange, begunAnew, joined, left, NO_ASSIGNMENT } from './assignment.ts'
import type { KafkaClient, KafkajsLogLine } from './client.ts'
import { type BatchEnd, type GroupJoin, listenTo } from './consumer-events.ts'
import { AWAY_BUDGET_MS, fatalCrash, hungConsumer, startFailure } from './consumer-failure.ts'
import { type ConsumerSettings, DEFAULT_CONSUMER_SETTINGS, kafkajsConsumerConfig, PARTITIONS_AT_ONCE } from './consumer-settings.ts'
import { FormerMember } from './former-member.ts'
import { type CommitResult, GroupCommits, type PartitionCommit } from './group-commits.ts'
import { incomingMessages } from './incoming.ts'
import type { KafkaMessage } from './message.ts'

/** What is done with what the loop reads. Called synchronously; must return at once and keep the work for itself. */
export interface ConsumerHandler {
  /** After a join or a crash. Lost partitions first: an epoch that is lost can never be committed again. */
  onAssignment(change: AssignmentChange): void
  /** In the order of the log; may repeat after a rebalance. `position` is the offset after the last one, markers included. */
  onMessages(assigned: AssignedPartition, messages: readonly KafkaMessage[], position: bigint): void
  /** The log was read up to here without anything to show: transaction markers, aborted or compacted records. */
  onPosition(assigned: AssignedPartition, position: bigint): void
  /** A rebalance has begun: the last moment in which a commit of what may be lost can still arrive. */
  onRebalancing?(): void
}

export interface ConsumerLoopOptions {
  readonly client: KafkaClient
  readonly groupId: string
  readonly topics: readonly string[]
  readonly handler: ConsumerHandler
  readonly settings?: ConsumerSettings
  /** A gained partition is read only after `resume`, usually after a `seek`. False where not given. */
  readonly startPaused?: boolean
  readonly observer: Observer
  readonly clock: Clock
}

const RESTART_BACKOFF = { firstMs: 200, maxMs: 5_000 } as const
/** A broker that is gone lets a goodbye hang until its retries are used up. */
const LEAVE_TIMEOUT_MS = 10_000
const OUT_OF_RANGE = 'Offset out of range, resetting to default offset'

/**
 * A member of a consumer group that hands over what it reads and does nothing else in kafkajs's own loop, so that a slow handler can
 * not stop heartbeats or hold up a rebalance.
 *
 * Guarantees: every batch carries the epoch of its assignment; messages come in order and without a hole since the last position,
 * or under a new epoch; a commit is reported as stored only when the client's commit event showed it, and is sent only for epochs
 * that are current. It stores no offset by itself and knows nothing of completion.
 *
 * A consumer that crashed since the broker was away is replaced by a new one, with all partitions lost meanwhile.
 */
export class ConsumerLoop extends BaseService {
  readonly #options: ConsumerLoopOptions
  readonly #settings: Required<ConsumerSettings>
  readonly #commits: GroupCommits
  readonly #former: FormerMember
  #consumer: Consumer | undefined
  /** Connect, subscribe and first join of the present consumer; leaving waits for it, or it would join after we left. */
  #launch: Promise<void> = Promise.resolve()
  #assignment: Assignment = NO_ASSIGNMENT
  /** Next offset to come, of partitions that have been read in this assignment or were put somewhere by `seek`. */
  readonly #positions = new Map<PartitionId, bigint>()
  readonly #paused = new Set<PartitionId>()
  /** Gained with `startPaused` and not resumed yet: what still arrives of it is dropped. */
  readonly #held = new Set<PartitionId>()
  #allPaused = false
  #leaving = false
  /** A standstill of our own, after which kafkajs joins again, is no consumer that hangs and no broker that is away. */
  readonly #awake: AwakeTime
  #activeAt = 0
  #failingSince: number | undefined
  #restarts = 0
  #firstJoin: { resolve: () => void; reject: (reason: unknown) => void } | undefined

  constructor(options: ConsumerLoopOptions) {
    super()
    this.#options = options
    this.#awake = new AwakeTime(options.clock)
    this.#commits = new GroupCommits(options.groupId, options.observer)
    this.#former = new FormerMember(options)
    this.#settings = { ...DEFAULT_CONSUMER_SETTINGS, ...options.settings }
  }

  /** What this member owns now. */
  get assigned(): readonly AssignedPartition[] {
    return [...this.#assignment.owned.values()]
  }

  /** True while the partition is still under this very assignment. */
  isCurrent({ topic, partition, epoch }: AssignedPartition): boolean {
    return this.#assignment.owned.get(partitionId(topic, partition))?.epoch === epoch
  }

  /** Stops reading partitions until `resume`; survives rebalances, ends with the assignment. One fetch may still arrive. */
  pause(partitions: readonly TopicPartition[]): void {
    for (const { topic, partition } of partitions) this.#paused.add(partitionId(topic, partition))
    this.#tell('pause', partitions)
  }

  resume(partitions: readonly TopicPartition[]): void {
    for (const { topic, partition } of partitions) {
      this.#paused.delete(partitionId(topic, partition))
      this.#held.delete(partitionId(topic, partition))
    }
    if (!this.#allPaused) this.#tell('resume', partitions)
  }

  /** Stops reading for good: what is gained later is paused too. */
  pauseAll(): void {
    this.#allPaused = true
    this.#tell('pause', this.assigned)
  }

  /** Reads on from `offset`, which the caller has checked to lie in the log. Local: nothing is committed. Stale epochs are ignored. */
  seek(assigned: AssignedPartition, offset: bigint): void {
    if (!this.isCurrent(assigned)) return
    this.#positions.set(partitionId(assigned.topic, assigned.partition), offset)
    this.#seek(assigned, offset)
  }

  /** Commits offsets of current epochs; others are left out. Errors: none, a refusal is a value. */
  commit(commits: readonly PartitionCommit[]): Promise<CommitResult> {
    return this.#commits.send(
      this.#consumer,
      commits.filter((commit) => this.isCurrent(commit)),
    )
  }

  protected async onStart(signal: AbortSignal): Promise<void> {
    this.releases.add('awake time', () => this.#awake.stop())
    this.releases.add('consumer', () => this.#leave())
    const firstJoin = new Promise<void>((resolve, reject) => {
      this.#firstJoin = { resolve, reject }
    })
    const onAbort = (): void => this.#firstJoin?.reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      signal.throwIfAborted()
      this.#launch = this.#connect()
      await Promise.race([Promise.all([this.#launch, firstJoin]), firstJoin])
    } catch (error) {
      throw signal.aborted ? signal.reason : startFailure(error, this.#options.groupId, this.#options.topics)
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#firstJoin = undefined
    }
    const check = (): void => this.#checkActivity()
    this.releases.add('watchdog', repeated(this.#options.clock, 5_000, check, { unref: true }))
  }

  protected async onDrain(): Promise<void> {
    this.pauseAll()
  }

  async #connect(): Promise<void> {
    const { client, groupId, topics } = this.#options
    const kafka = client.isolated((line) => this.#guard(() => this.#onLog(line)))
    const ownedNumbers = (): number[] => [...new Set(this.assigned.map(({ partition }) => partition))]
    const consumer = kafka.consumer({
      ...kafkajsConsumerConfig(groupId, this.#settings),
      partitionAssigners: [stickyAssigner(client.kafkajs.AssignerProtocol, ownedNumbers)],
    })
    this.#consumer = consumer
    this.#listen(consumer)
    await consumer.connect()
    if (this.#leaving) return
    await consumer.subscribe({ topics: [...topics], fromBeginning: true })
    if (this.#leaving) return
    // Resolves after the first join, or after a crash was reported.
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: true,
      partitionsConsumedConcurrently: PARTITIONS_AT_ONCE,
      eachBatch: async (payload) => this.#guard(() => this.#onBatch(payload)),
    })
  }

  #listen(consumer: Consumer): void {
    // Events of a consumer that was replaced say nothing about the present one.
    const present = (run: () => void): void => {
      if (this.#consumer === consumer) this.#guard(run)
    }
    const active = (): void => {
      this.#activeAt = this.#awake.ms()
    }
    listenTo(consumer, {
      onFetch: active,
      onJoin: (join) => {
        active()
        present(() => this.#onJoin(join))
      },
      onRebalancing: () => {
        active()
        present(() => this.#options.handler.onRebalancing?.())
      },
      onBatchEnd: (end) => present(() => this.#onBatchEnd(end)),
      onCommit: (commit) => present(() => this.#commits.observe(commit)),
      onStop: () => present(() => this.#onStop()),
      onCrash: (error) => present(() => this.#onCrash(error)),
    })
  }

  #onJoin({ memberId, memberAssignment }: GroupJoin): void {
    const { groupId: group, observer, startPaused } = this.#options
    const partitions = Object.entries(memberAssignment).flatMap(([topic, numbers]) => numbers.map((partition) => ({ topic, partition })))
    const { after, change } = joined(this.#assignment, { memberId, partitions })
    this.#failingSince = undefined
    this.#restarts = 0
    this.#apply(after, change, startPaused ?? false)
    for (const kept of change.kept) {
      const id = partitionId(kept.topic, kept.partition)
      if (this.#paused.has(id)) this.#tell('pause', [kept])
      // kafkajs goes back to the committed offset of every partition at every join; we know better where we are.
      const position = this.#positions.get(id)
      if (position !== undefined) this.#seek(kept, position)
    }
    if (this.#allPaused) this.#tell('pause', this.assigned)
    observer.emit('GroupJoined', { group, memberId, gained: change.gained.length, kept: change.kept.length, lost: change.lost.length })
    this.#options.handler.onAssignment(change)
    this.#firstJoin?.resolve()
  }

  /** The state of partitions that went or came; kafkajs keeps a pause for a partition that comes back one day. */
  #apply(after: Assignment, change: AssignmentChange, startPaused: boolean): void {
    this.#assignment = after
    for (const { topic, partition } of change.lost) {
      const id = partitionId(topic, partition)
      this.#positions.delete(id)
      this.#paused.delete(id)
      this.#held.delete(id)
    }
    this.#tell('resume', change.lost)
    if (change.lost.length > 0) this.#options.observer.emit('PartitionsLost', { group: this.#options.groupId, count: change.lost.length })
    if (!startPaused) return
    for (const { topic, partition } of change.gained) {
      this.#paused.add(partitionId(topic, partition))
      this.#held.add(partitionId(topic, partition))
    }
    this.#tell('pause', change.gained)
  }

  #onBatch({ batch }: EachBatchPayload): void {
    const { topic, partition } = batch
    const id = partitionId(topic, partition)
    const assigned = this.#assignment.owned.get(id)
    if (assigned === undefined || this.#held.has(id)) return
    const from = BigInt((batch as unknown as { fetchedOffset: string }).fetchedOffset)
    const expected = this.#positions.get(id)
    if (expected !== undefined && from > expected) {
      // A fetch of an earlier assignment that ended late; taking it would call everything between the two done.
      this.#seek(assigned, expected)
      return
    }
    const position = BigInt(batch.lastOffset()) + 1n
    if (expected === undefined || position > expected) this.#positions.set(id, position)
    const messages = incomingMessages(batch, this.#options)
    this.#options.handler.onMessages(assigned, messages, position)
  }

  /** kafkajs does not call the handler for a batch without visible messages; its end is to be learnt from the event alone. */
  #onBatchEnd({ topic, partition, batchSize, lastOffset }: BatchEnd): void {
    const id = partitionId(topic, partition)
    const assigned = this.#assignment.owned.get(id)
    if (batchSize > 0 || assigned === undefined || this.#held.has(id)) return
    const position = BigInt(lastOffset) + 1n
    const known = this.#positions.get(id)
    if (known !== undefined && position <= known) return
    this.#positions.set(id, position)
    this.#options.handler.onPosition(assigned, position)
  }

  /** The only way in which kafkajs tells that it left the place where it read: retention overtook us, or the log was cut. */
  #onLog({ message, fields }: KafkajsLogLine): void {
    if (message !== OUT_OF_RANGE || typeof fields.topic !== 'string' || typeof fields.partition !== 'number') return
    const { groupId: group, observer, startPaused } = this.#options
    const { topic, partition } = fields
    observer.emit('OffsetOutOfRange', { group, topic, partition, reason: 'while-reading' })
    const { after, change } = begunAnew(this.#assignment, partitionId(topic, partition))
    this.#apply(after, change, startPaused ?? false)
    this.#options.handler.onAssignment(change)
  }

  /** Out of the group, by our will or by a crash: whatever was owned may be another's. */
  #onStop(): void {
    this.#former.note(this.#assignment.memberId)
    const { after, change } = left(this.#assignment)
    this.#apply(after, change, false)
    if (change.lost.length > 0) this.#options.handler.onAssignment(change)
  }

  /** This consumer is disconnected already: by kafkajs after a crash, by us where it could not begin. */
  #onCrash(error: unknown): void {
    const { groupId: group, observer } = this.#options
    this.#onStop()
    this.#consumer = undefined
    this.#activeAt = this.#awake.ms()
    if (this.#leaving) return
    const fatal = fatalCrash(error, { group, topics: this.#options.topics, connection: this.#options.client.connection })
    this.#failingSince ??= this.#awake.ms()
    const failingMs = this.#awake.ms() - this.#failingSince
    if (fatal !== undefined || failingMs > this.#settings.awayBudgetMs) {
      const away = `the consumer of group ${group} could not come back for ${Math.round(failingMs / 1000)} s: ${errorText(error)}`
      this.#giveUp(fatal ?? new MillraceError('KAFKA_UNREACHABLE', away, { cause: error, context: { group } }))
      return
    }
    this.#restarts += 1
    observer.emit('ConsumerRestarted', { group, attempt: this.#restarts, reason: errorText(error) })
    this.#launch = this.#restartLater(backoffMs(RESTART_BACKOFF, this.#restarts, Math.random()))
  }

  async #restartLater(ms: number): Promise<void> {
    try {
      await this.#options.clock.sleep(ms, this.aborted.signal)
      await this.#former.evict(this.aborted.signal)
      if (this.#leaving) return
      await this.#connect()
    } catch (error) {
      // One that can't subscribe is connected all the same. A peer that says nothing is not waited for.
      this.#consumer?.disconnect().catch(() => undefined)
      if (!this.aborted.signal.aborted) this.#guard(() => this.#onCrash(error))
    }
  }

  async #leave(): Promise<void> {
    const { clock, observer } = this.#options
    this.#leaving = true
    const goodbye = async (): Promise<void> => {
      await this.#launch.catch(() => undefined)
      await this.#consumer?.disconnect()
    }
    const done = goodbye().catch((error: unknown) =>
      observer.emit('KafkaClientLogged', { text: 'leaving a group failed', error: errorText(error) }),
    )
    await within(clock, LEAVE_TIMEOUT_MS, done)
  }

  #checkActivity(): void {
    if (this.#consumer === undefined) return
    const { groupId: group, client } = this.#options
    // After a crash it is the budget that ends it, and a try that hangs beyond.
    const awayMs = this.#failingSince === undefined ? 0 : Math.min(this.#settings.awayBudgetMs, AWAY_BUDGET_MS)
    const silentMs = this.#awake.ms() - this.#activeAt
    const hung = hungConsumer({ group, silentMs, awayMs, ...this.#settings, ...client.connection })
    if (hung !== undefined) this.#giveUp(hung)
  }

  #seek({ topic, partition }: TopicPartition, offset: bigint): void {
    if (this.#isInGroup()) this.#consumer?.seek({ topic, partition, offset: offset.toString() })
  }

  #tell(what: 'pause' | 'resume', partitions: readonly TopicPartition[]): void {
    if (partitions.length === 0 || !this.#isInGroup()) return
    const call = partitions.map(({ topic, partition }) => ({ topic, partitions: [partition] }))
    if (what === 'pause') this.#consumer?.pause(call)
    else this.#consumer?.resume(call)
  }

  /** kafkajs throws at calls for a consumer that has no group: one that stopped by itself and has not told us yet. */
  #isInGroup(): boolean {
    return this.#consumer !== undefined && this.#assignment.memberId !== undefined
  }

  /** Nothing may be thrown into kafkajs: it would take it for a failure of its own and read the same again. */
  #guard(run: () => unknown): void {
    try {
      run()
    } catch (error) {
      this.#giveUp(error)
    }
  }

  #giveUp(error: unknown): void {
    if (this.#firstJoin !== undefined) this.#firstJoin.reject(error)
    else this.fail(error)
  }
}
