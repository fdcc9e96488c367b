import type { KafkaAdmin } from '../kafka/admin.ts'
import type { AssignedPartition, AssignmentChange } from '../kafka/assignment.ts'
import type { KafkaClient } from '../kafka/client.ts'
import { CommitTrail } from '../kafka/commit-trail.ts'
import { ConsumerLoop } from '../kafka/consumer-loop.ts'
import type { ConsumerSettings } from '../kafka/consumer-settings.ts'
import type { LayoutSource } from '../kafka/layout.ts'
import { TopicLimits } from '../kafka/topic-limits.ts'
import { createPartitionTransactions } from '../kafka/transactional.ts'
import { unlessAborted } from '../kernel/abort.ts'
import { type PartitionId, partitionId } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { isMillraceError } from '../kernel/errors.ts'
import { BaseService } from '../kernel/lifecycle.ts'
import type { Observer } from '../kernel/observe.ts'
import type { MessageCodec } from '../message/codec.ts'
import { commandPayload, parseSubject, subject } from '../message/command.ts'
import type { Command } from '../message/generated/types.ts'
import { parseReplayRequest, partitionShare, type ReplayRequest, rangeOf } from '../message/replay-request.ts'
import type { OffsetMetadata } from './offset-metadata.ts'
import type { ExtractorSummary, PageExtraction } from './page-extraction.ts'
import { createPageProcessor } from './page-processor.ts'
import { PartitionCounts } from './partition-counts.ts'
import { PartitionExtractor } from './partition-extractor.ts'
import { DEFAULT_LIMITS, type PartitionLimits, type PartitionPort } from './partition-port.ts'
import { RatePace } from './rate-pace.ts'
import type { ReplayOrder } from './replay-step.ts'

export interface ExtractWorkerOptions {
  readonly client: KafkaClient
  readonly admin: KafkaAdmin
  readonly groupId: string
  /** The topic of pages. */
  readonly topic: string
  readonly recordsTopic: string
  readonly deadLettersTopic: string
  readonly extraction: PageExtraction
  readonly codec: MessageCodec
  readonly control: ControlView
  /** How many partitions what is written may go to; see `PartitionCounts` for topics that differ from it. */
  readonly layout: LayoutSource
  /** Largest batch per topic. */
  readonly maxBatchBytes: (topic: string) => number
  readonly limits?: Partial<PartitionLimits>
  /** A partition of this worker has worked its part of a replay. */
  readonly onReplayDone?: (replayId: string) => void
  /** A replay beside live work: bounded, for one extractor, to a topic of its own. */
  readonly shadow?: ShadowReplay
  /** A version that works on live pages beside the live one. */
  readonly isCandidate?: boolean
  readonly settings?: ConsumerSettings
  readonly observer: Observer
  readonly clock: Clock
}

/** What the worker reads of the control topic. */
export interface ControlView {
  /** Resolves when everything that the topic held at this moment has been read. */
  readToEnd(): Promise<void>
  get(subject: string): Command | undefined
  /** The last commands of all subjects that begin so. */
  withPrefix(prefix: string): readonly Command[]
  /** Calls the listener for each command that is read from now on. Shape: a function that ends it. */
  subscribe(listener: (logged: { readonly command: Command }) => void): () => void
}

export interface ShadowReplay {
  readonly request: ReplayRequest
  /** By partition; one without a range is not read. */
  readonly ranges: ReadonlyMap<number, { readonly from: bigint; readonly until: bigint }>
  readonly recordsTopic: string
  /** Pages per second, over all partitions; undefined: as fast as it goes. */
  readonly pagesPerSecond: number | undefined
}

/** Where a partition stands. */
export interface ExtractProgress {
  readonly partition: number
  readonly committed: bigint
  readonly metadata: OffsetMetadata
}

/**
 * The extract stage of one process: a member of the group, one `PartitionExtractor` per partition that it owns. Everything that
 * parses runs in the processes behind `PageExtraction`; this loop never blocks for longer than it takes to build messages.
 */
export class ExtractWorker extends BaseService {
  readonly #options: ExtractWorkerOptions
  readonly #loop: ConsumerLoop
  readonly #partitions = new Map<PartitionId, PartitionExtractor>()
  /** Of partitions that went and came back too. */
  readonly #trail = new CommitTrail()
  /** Lost, and still in a step that can't be cut short. */
  readonly #leaving = new Set<PartitionExtractor>()
  readonly #counts: PartitionCounts
  /** By the command that asked; another one takes its place when it is changed. */
  readonly #requests = new WeakMap<Command, ReplayRequest | undefined>()
  readonly #topicLimits: TopicLimits
  readonly #finished = new Set<number>()
  #onFinished: (() => void) | undefined

  constructor(options: ExtractWorkerOptions) {
    super()
    this.#options = options
    this.#topicLimits = new TopicLimits(options.maxBatchBytes, options.clock)
    const { client, admin, layout, groupId, topic, observer, clock, settings } = options
    this.#counts = new PartitionCounts({ layout, partitions: (name) => admin.partitions(name), clock })
    this.#loop = new ConsumerLoop({
      client,
      groupId,
      topics: [topic],
      observer,
      clock,
      // A partition is read only once it is fenced and its offset is known.
      startPaused: true,
      settings: { maxBytesPerPartition: 1_048_576, maxBytesPerFetch: 8_388_608, ...settings },
      handler: {
        onAssignment: (change) => this.#onAssignment(change),
        onMessages: ({ partition }, messages, position) => this.#partitions.get(partitionId(topic, partition))?.accept(messages, position),
        onPosition: ({ partition }, position) => this.#partitions.get(partitionId(topic, partition))?.accept([], position),
      },
    })
  }

  progress(): ExtractProgress[] {
    return [...this.#partitions].map(([id, { committed, metadata }]) => ({
      partition: Number(id.slice(id.lastIndexOf(':') + 1)),
      committed,
      metadata,
    }))
  }

  /** Resolves when every range of a shadow replay has been worked; rejects when the worker fails. */
  async rangesDone(): Promise<void> {
    const ranges = this.#options.shadow?.ranges ?? new Map()
    const done = new Promise<void>((resolve) => {
      this.#onFinished = () => {
        if ([...ranges.keys()].every((partition) => this.#finished.has(partition))) resolve()
      }
      this.#onFinished()
    })
    await Promise.race([done, this.closed])
  }

  protected async onStart(signal: AbortSignal): Promise<void> {
    const { codec, extraction, deadLettersTopic } = this.#options
    const extractors = [...extraction.extractors.values()]
    await this.#counts.look(new Set([...extractors.map((extractor) => this.#recordsTopicOf(extractor)), deadLettersTopic]))
    this.#counts.follow(this.aborted.signal).catch((error: unknown) => this.fail(error))
    // A dead letter holds the bytes that were read: nothing is encoded for it.
    for (const extractor of extractors) await codec.prepare(this.#recordsTopicOf(extractor), extractor.schema)
    this.releases.add('partitions', () => this.#abandonAll())
    this.releases.add('consumer', () => this.#loop.stop({ mode: 'abort', timeoutMs: 0 }))
    this.releases.add('listening to control', this.#listen())
    this.#loop.closed.catch((error: unknown) => this.fail(error))
    await this.#loop.start({ signal })
  }

  protected async onDrain(signal: AbortSignal): Promise<void> {
    this.#loop.pauseAll()
    const partitions = [...this.#partitions.values()]
    for (const partition of partitions) partition.drain()
    await unlessAborted(signal, () => Promise.all(partitions.map((partition) => partition.finished)))
  }

  #recordsTopicOf({ topic }: Pick<ExtractorSummary, 'topic'>): string {
    const { shadow, recordsTopic } = this.#options
    return shadow?.recordsTopic ?? topic ?? recordsTopic
  }

  #listen(): () => void {
    return this.#options.control.subscribe(({ command }) => {
      if (parseSubject(command.subject)?.kind !== 'replay') return
      for (const partition of this.#partitions.values()) partition.controlChanged()
    })
  }

  async #abandonAll(): Promise<void> {
    for (const partition of this.#partitions.values()) partition.abandon()
    await Promise.all([...this.#partitions.values(), ...this.#leaving].map((partition) => partition.finished))
  }

  #onAssignment({ gained, lost }: AssignmentChange): void {
    for (const { topic, partition } of lost) {
      const id = partitionId(topic, partition)
      const extractor = this.#partitions.get(id)
      if (extractor === undefined) continue
      this.#partitions.delete(id)
      extractor.abandon()
      this.#leaving.add(extractor)
      extractor.finished.then(
        () => this.#leaving.delete(extractor),
        () => this.#leaving.delete(extractor),
      )
    }
    if (this.state === 'draining' || this.state === 'closing') return
    for (const assigned of gained) this.#take(assigned)
  }

  #take(assigned: AssignedPartition): void {
    const { shadow, groupId, limits, clock, observer } = this.#options
    const range = shadow?.ranges.get(assigned.partition)
    if (shadow !== undefined && range === undefined) return
    const partition = new PartitionExtractor({
      assigned,
      group: groupId,
      port: this.#portOf(assigned),
      limits: { ...DEFAULT_LIMITS, ...limits },
      ...(range === undefined ? {} : { range }),
      clock,
      observer,
    })
    this.#partitions.set(partitionId(assigned.topic, assigned.partition), partition)
    partition.finished.then(
      (end) => {
        if (!this.#loop.isCurrent(assigned)) return
        this.#loop.pause([assigned])
        if (end !== 'range-done') return
        this.#finished.add(assigned.partition)
        this.#onFinished?.()
      },
      (error: unknown) => this.fail(error),
    )
  }

  #portOf(assigned: AssignedPartition): PartitionPort {
    const { client, admin, groupId, topic, control, shadow, clock, observer } = this.#options
    return {
      transactions: createPartitionTransactions({
        client,
        groupId,
        topic,
        partition: assigned.partition,
        clock,
        observer,
        topicLimits: this.#topicLimits,
        session: admin.session,
        trail: this.#trail,
      }),
      readControl: () => control.readToEnd(),
      logBounds: () => admin.logBounds({ topic, partition: assigned.partition }),
      // A partition that went away and came back has a new extractor, which the old one must not move.
      readFrom: (offset) => {
        if (!this.#loop.isCurrent(assigned)) return
        this.#loop.seek(assigned, offset)
        this.#loop.resume([assigned])
      },
      pause: () => {
        if (this.#loop.isCurrent(assigned)) this.#loop.pause([assigned])
      },
      resume: () => {
        if (this.#loop.isCurrent(assigned)) this.#loop.resume([assigned])
      },
      waitingPartitions: () => {
        let count = 0
        for (const { hasWaiting } of this.#partitions.values()) if (hasWaiting) count += 1
        return count
      },
      refuseReplay: (replayId) => this.#refuseReplay(replayId),
      isReplayClosed: (replayId) => control.get(subject.replay(replayId))?.kind === 'close',
      isReplayCancelled: (replayId) => this.#replayRequest(replayId)?.cancelled === true,
      replayOrder: () => this.#replayOrder(assigned.partition),
      rate: (replayId) => {
        const request = shadow?.request ?? (replayId === undefined ? undefined : this.#replayRequest(replayId))
        return request === undefined ? undefined : this.#rateOf(request, assigned.partition)
      },
      replayDone: (replayId) => this.#options.onReplayDone?.(replayId),
      process: this.#processor(assigned.partition),
    }
  }

  #processor(partition: number): ReturnType<typeof createPageProcessor> {
    const { admin, topic, codec, extraction, deadLettersTopic, shadow, isCandidate = false, clock, observer } = this.#options
    return createPageProcessor({
      codec,
      extraction,
      firstOffset: async (other) => (await admin.logBounds({ topic, partition: other })).low,
      replayRequest: (replayId) => this.#replayRequest(replayId),
      moment: this.#pace(partition),
      ...(shadow === undefined ? {} : { shadow: shadow.request }),
      isCandidate,
      output: {
        recordsTopic: (extractor) => this.#recordsTopicOf(extractor),
        deadLettersTopic,
        partitionCount: (name) => this.#counts.of(name),
        maxBatchBytes: (name) => this.#topicLimits.maxBatchBytes(name),
        recordHeaders: (schema, traceparent) => codec.headers(schema, traceparent),
      },
      clock,
      observer,
    })
  }

  #replayRequest(replayId: string): ReplayRequest | undefined {
    const command = this.#options.control.get(subject.replay(replayId))
    if (command === undefined || command.kind !== 'request') return undefined
    // Asked several times for each page.
    if (this.#requests.has(command)) return this.#requests.get(command)
    const request = this.#readRequest(command, replayId)
    this.#requests.set(command, request)
    return request
  }

  #readRequest(command: Command, replayId: string): ReplayRequest | undefined {
    try {
      return parseReplayRequest(commandPayload(command))
    } catch (error) {
      // Whatever stands on `control` must not end a worker: what is no request asks for nothing.
      if (!isMillraceError(error, 'MESSAGE_INVALID')) throw error
      this.#options.observer.emit('ReplayRefused', { group: this.#options.groupId, replayId, error: error.message })
      return undefined
    }
  }

  #refuseReplay(replayId: string): string | undefined {
    const request = this.#replayRequest(replayId)
    if (request === undefined) return `the control topic holds no request for replay ${replayId}`
    const extractor = this.#options.extraction.extractors.get(request.extractor)
    if (extractor?.version === request.extractorVersion) return undefined
    const here =
      extractor === undefined ? `has no extractor ${request.extractor}` : `has version ${extractor.version} of ${request.extractor}`
    return `replay ${replayId} wants version ${request.extractorVersion} of ${request.extractor}, and this worker ${here}`
  }

  /** The open request of this group that names the partition; the oldest where there are several. */
  #replayOrder(partition: number): ReplayOrder | undefined {
    const { control, groupId } = this.#options
    for (const { kind, subject: about } of control.withPrefix('replay:')) {
      const request = kind === 'request' ? this.#replayRequest(about.slice('replay:'.length)) : undefined
      if (request?.groupId !== groupId || request.cancelled === true) continue
      const range = rangeOf(request, partition)
      if (range !== undefined) return { replayId: request.replayId, ...range }
    }
    return undefined
  }

  /**
   * Pages per second of one partition of a replay. Each has its share of the rate, by its share of the pages, so that all of them keep the
   * cap together whoever owns them. A shadow takes its rate anew from whoever begins it again.
   */
  #rateOf(request: ReplayRequest, partition: number): number | undefined {
    const { shadow } = this.#options
    const rate = shadow === undefined ? request.rate : shadow.pagesPerSecond
    const share = partitionShare(request, partition)
    return rate === undefined || share === undefined ? undefined : rate * share
  }

  /** The rate cap of a replay: a page that is replayed waits for its turn. */
  #pace(partition: number): (request: ReplayRequest, giveBack: AbortSignal) => Promise<boolean> {
    const pace = new RatePace(this.#options.clock)
    return (request, giveBack) => pace.next(this.#rateOf(request, partition), giveBack)
  }
}
