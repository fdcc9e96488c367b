import { type PartitionId, partitionId } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { BaseService } from '../kernel/lifecycle.ts'
import type { Observer } from '../kernel/observe.ts'
import type { AssignedPartition, AssignmentChange } from './assignment.ts'
import type { KafkaClient } from './client.ts'
import { ClusterSession } from './cluster-session.ts'
import { ConsumerLoop } from './consumer-loop.ts'
import type { ConsumerSettings } from './consumer-settings.ts'
import type { KafkaMessage } from './message.ts'
import type { TrackerLimits } from './offset-tracker.ts'
import { PartitionWindow } from './partition-window.ts'
import { restoreTrackers } from './restored-tracker.ts'
import type { WindowEntry } from './window-entry.ts'

export interface WindowedConsumerOptions {
  readonly client: KafkaClient
  readonly groupId: string
  readonly topics: readonly string[]
  /** Takes over what was read, in the order of each partition. Synchronous; must not throw. */
  readonly onEntries: (entries: readonly WindowEntry[]) => void
  /** Before the first entry of an assignment. */
  readonly onGained?: (assigned: AssignedPartition) => void
  /** A rebalance has begun: what is in work may soon be another member's as well. */
  readonly onRebalancing?: () => void
  /** Entries of this epoch will not be committed any more; what has not begun is better dropped. */
  readonly onLost?: (assigned: AssignedPartition) => void
  /** Per partition; by topic where they differ. */
  readonly limits?: Partial<TrackerLimits> | ((topic: string) => Partial<TrackerLimits>)
  /** Of all entries in work of this consumer, keys and headers included. 64 MiB where not given. */
  readonly maxBytes?: number
  /** 1 s where not given. */
  readonly commitIntervalMs?: number
  readonly settings?: ConsumerSettings
  readonly observer: Observer
  readonly clock: Clock
}

const MIB = 1_048_576
/** Tries of the last commit of a drain; a rebalance in that moment refuses some. */
const FINAL_COMMIT_TRIES = 10
const FINAL_COMMIT_PAUSE_MS = 200

/**
 * Reads topics in a group and hands out entries that may be completed in any order, at any time.
 *
 * Guarantees: the committed offset of a partition is never above an incomplete entry; after a restart exactly what was not completed
 * at the last commit comes again (repeats are bounded by the commit interval); what is in work is bounded by number, span and bytes,
 * and reading pauses there. A partition that goes to another member and comes back gets new entries under a new epoch.
 *
 * Drain: reading pauses, entries in work are waited for, the last commit is made, then the group is left.
 */
export class WindowedConsumer extends BaseService {
  readonly #options: WindowedConsumerOptions
  readonly #loop: ConsumerLoop
  readonly #session: ClusterSession
  readonly #windows = new Map<PartitionId, PartitionWindow>()
  readonly #maxBytes: number
  #bytes = 0
  #onDrained: (() => void) | undefined

  constructor(options: WindowedConsumerOptions) {
    super()
    const { client, groupId, topics, settings, observer, clock } = options
    this.#options = options
    this.#maxBytes = options.maxBytes ?? 64 * MIB
    this.#session = new ClusterSession({ client, clock })
    this.#loop = new ConsumerLoop({
      client,
      groupId,
      topics,
      observer,
      clock,
      // Paused until the committed offset and its map are loaded: what came before could not be told from what is done.
      startPaused: true,
      ...(settings === undefined ? {} : { settings }),
      handler: {
        onAssignment: (change) => this.#onAssignment(change),
        onMessages: (assigned, messages, position) => this.#onMessages(assigned, messages, position),
        onPosition: (assigned, position) => this.#windowOf(assigned)?.tracker.advanceTo(position),
        onRebalancing: () => {
          this.#options.onRebalancing?.()
          this.#commitSoon()
        },
      },
    })
  }

  /** Entries in work, of all partitions. */
  incompleteCount(): number {
    let count = 0
    for (const { tracker } of this.#windows.values()) count += tracker.incompleteCount
    return count
  }

  /** The entry of each partition that holds back its commit. */
  bases(): readonly WindowEntry[] {
    return [...this.#windows.values()].map(({ base }) => base).filter((base) => base !== undefined)
  }

  /** Commits what has changed now, besides the regular commits: before a burst of work that would be repeated. */
  async commitNow(): Promise<void> {
    const pending = [...this.#windows.values()].map((window) => window.pendingCommit()).filter((commit) => commit !== undefined)
    const { stored, refused } = await this.#loop.commit(pending.map(({ commit }) => commit))
    const arrived = new Set(stored)
    for (const { window, commit, committable } of pending) {
      if (arrived.has(commit)) window.tracker.stored(committable)
      else if (refused === 'metadata-too-large') this.#stopMap(window, committable.metadata)
    }
    for (const window of this.#windows.values()) this.#resumeIfRoom(window)
  }

  protected async onStart(signal: AbortSignal): Promise<void> {
    this.releases.add('cluster session', () => this.#session.close())
    this.releases.add('consumer loop', () => this.#loop.stop({ mode: 'abort', timeoutMs: 0 }))
    await this.#loop.start({ signal })
    this.#loop.closed.catch((error: unknown) => this.fail(error))
    this.releases.add('commit timer', this.#startCommitting())
  }

  protected async onDrain(signal: AbortSignal): Promise<void> {
    this.#loop.pauseAll()
    await this.#untilDrained(signal)
    for (let tries = 0; tries < FINAL_COMMIT_TRIES && this.#hasUncommitted(); tries += 1) {
      if (tries > 0) await this.#options.clock.sleep(FINAL_COMMIT_PAUSE_MS)
      await this.commitNow()
    }
  }

  #hasUncommitted(): boolean {
    return [...this.#windows.values()].some((window) => window.tracker.isChanged)
  }

  /** Resolves when nothing is in work, or the time is up: what is left then is in the map and comes again. */
  #untilDrained(signal: AbortSignal): Promise<void> {
    if (this.incompleteCount() === 0 || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        this.#onDrained = undefined
        signal.removeEventListener('abort', done)
        resolve()
      }
      this.#onDrained = done
      signal.addEventListener('abort', done, { once: true })
    })
  }

  /** Shape: the function that ends it. */
  #startCommitting(): () => void {
    const everyMs = this.#options.commitIntervalMs ?? 1_000
    let disarm = (): void => undefined
    let ended = false
    const arm = (): void => {
      if (!ended) disarm = this.#options.clock.timer(everyMs, () => void this.#committed().then(arm))
    }
    arm()
    return () => {
      ended = true
      disarm()
    }
  }

  async #committed(): Promise<void> {
    try {
      await this.commitNow()
    } catch (error) {
      this.fail(error)
    }
  }

  #commitSoon(): void {
    void this.#committed()
  }

  #onAssignment({ gained, lost }: AssignmentChange): void {
    for (const assigned of lost) {
      const window = this.#windowOf(assigned)
      if (window === undefined) continue
      this.#windows.delete(partitionId(assigned.topic, assigned.partition))
      this.#bytes -= window.lose()
      this.#options.onLost?.(assigned)
    }
    if (lost.length > 0) this.#onFreed()
    if (gained.length > 0) void this.#load(gained)
  }

  /** The window of this very assignment. */
  #windowOf({ topic, partition, epoch }: AssignedPartition): PartitionWindow | undefined {
    const window = this.#windows.get(partitionId(topic, partition))
    return window?.assigned.epoch === epoch ? window : undefined
  }

  async #load(gained: readonly AssignedPartition[]): Promise<void> {
    const { groupId, limits, observer } = this.#options
    try {
      const restored = await restoreTrackers({
        session: this.#session,
        groupId,
        wanted: () => gained.filter((assigned) => this.#loop.isCurrent(assigned)),
        observer,
        clock: this.#options.clock,
        signal: this.aborted.signal,
        ...(limits === undefined ? {} : { limits: typeof limits === 'function' ? limits : () => limits }),
      })
      for (const { assigned, tracker } of restored) {
        // It may have gone while its offset was read.
        if (!this.#loop.isCurrent(assigned)) continue
        this.#windows.set(partitionId(assigned.topic, assigned.partition), new PartitionWindow(assigned, tracker))
        this.#options.onGained?.(assigned)
        this.#loop.seek(assigned, tracker.position)
        this.#loop.resume([assigned])
      }
    } catch (error) {
      if (!this.aborted.signal.aborted) this.fail(error)
    }
  }

  #onMessages(assigned: AssignedPartition, messages: readonly KafkaMessage[], position: bigint): void {
    const window = this.#windowOf(assigned)
    if (window === undefined) return
    const takenMono = this.#options.clock.mono()
    const entries: WindowEntry[] = []
    let isCut = false
    for (const message of messages) {
      // One fetch may be many times the limits (it is compressed); the rest of it is read again when there is room.
      isCut = window.tracker.isOverfull || this.#bytes >= 2 * this.#maxBytes
      if (isCut) break
      const before = window.bytes
      const entry = window.take(message, takenMono, (bytes) => this.#onComplete(window, bytes))
      this.#bytes += window.bytes - before
      if (entry !== undefined) entries.push(entry)
    }
    if (isCut) {
      this.#pause(window)
      this.#loop.seek(assigned, window.tracker.position)
    } else window.tracker.advanceTo(position)
    if (entries.length > 0) this.#options.onEntries(entries)
    if (window.tracker.isFull) this.#pause(window)
    if (this.#bytes >= this.#maxBytes) for (const each of this.#windows.values()) this.#pause(each)
  }

  #onComplete(window: PartitionWindow, bytes: number): void {
    const wasTight = this.#bytes > this.#maxBytes / 2
    this.#bytes -= bytes
    if (wasTight && this.#bytes <= this.#maxBytes / 2) this.#onFreed()
    else this.#resumeIfRoom(window)
    if (this.#onDrained !== undefined && this.incompleteCount() === 0) this.#onDrained()
  }

  #onFreed(): void {
    for (const window of this.#windows.values()) this.#resumeIfRoom(window)
    if (this.#onDrained !== undefined && this.incompleteCount() === 0) this.#onDrained()
  }

  #pause(window: PartitionWindow): void {
    if (window.isPaused || window.isLost) return
    window.isPaused = true
    const { groupId: group, observer } = this.#options
    observer.emit('PartitionPaused', { group, topic: window.assigned.topic, partition: window.assigned.partition })
    this.#loop.pause([window.assigned])
  }

  #resumeIfRoom(window: PartitionWindow): void {
    if (!window.isPaused || window.isLost || !window.tracker.hasRoom || this.#bytes > this.#maxBytes / 2) return
    window.isPaused = false
    this.#loop.resume([window.assigned])
  }

  /** A broker with a lower limit than Kafka's usual one keeps the offset alone: better a repeat than no commit. */
  #stopMap(window: PartitionWindow, metadata: string): void {
    if (metadata === '' || window.withoutMap) return
    window.withoutMap = true
    this.#options.observer.emit('OffsetMapDropped', { group: this.#options.groupId, reason: 'refused' })
  }
}
