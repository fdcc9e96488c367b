import type { AssignedPartition } from '../kafka/assignment.ts'
import { LogEndLooks } from '../kafka/log-end-looks.ts'
import type { KafkaMessage, OutgoingMessage } from '../kafka/message.ts'
import { messageBytes } from '../kafka/outgoing.ts'
import { backoffMs } from '../kernel/backoff.ts'
import { greatestOf, leastOf } from '../kernel/bigint.ts'
import { type Clock, slept } from '../kernel/clock.ts'
import { endsStage, errorText, isMillraceError, MillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import { addTotals, decodeMetadata, encodeMetadata, freshMetadata, NO_TOTALS, type OffsetMetadata } from './offset-metadata.ts'
import { PageQueue } from './page-queue.ts'
import { type PartitionLimits, type PartitionPort, type ProcessedPage, shareOf } from './partition-port.ts'
import { afterJump, type Course, courseOf, overtaken, type ReplayOrder, replayStep, rewound, turned } from './replay-step.ts'
import { ReplayTurns } from './replay-turns.ts'

const RETRY = { firstMs: 100, maxMs: 5_000 } as const
/** A broker that starts again may not know its topics at first: so often it is tried anew, for a minute in all. */
const MISSING_TRIES = 20

export interface PartitionExtractorOptions {
  readonly assigned: AssignedPartition
  readonly group: string
  readonly port: PartitionPort
  readonly limits: PartitionLimits
  /** Bounded range of a shadow replay: where to begin when nothing is committed, and the first offset that is not read. */
  readonly range?: { readonly from: bigint; readonly until: bigint }
  readonly clock: Clock
  readonly observer: Observer
}

/**
 * One input partition of the extract stage: pages in order, output and consumed offset in one transaction.
 *
 * Guarantees: it begins by fencing whoever owned the partition before and only then reads the committed offset; what it commits is
 * a contiguous prefix of the log; after any failure it drops everything it holds and begins again from the committed offset, since a
 * commit that was rejected may have happened. It obeys the replay state in the metadata of the offset and carries it on. While it
 * replays, live pages that wait have a turn every `replayTurnMs`, as far as could be read when the turn began and for `liveTurnMs` at
 * most; so neither waits for the end of the other.
 *
 * Ends: `drain` finishes and commits what was taken; `abandon` stops at the next step and commits nothing more; what only an operator
 * can mend (`isEnd`) rejects `finished`.
 */
export class PartitionExtractor {
  readonly #options: PartitionExtractorOptions
  readonly #queue: PageQueue
  #metadata: OffsetMetadata = freshMetadata(0n)
  /** Next offset to commit. */
  #next = 0n
  #committed = 0n
  #course: Course = { kind: 'go-on' }
  /** Of replay and live work the other one is next, once the queue is dry. */
  #turning = false
  readonly #turns: ReplayTurns
  /** Where reading ended when it was looked at last: what lies behind an open transaction can't be read in a turn, however long. */
  #logEnd = 0n
  readonly #endLooks = new LogEndLooks()
  #draining = false
  #abandoned = new AbortController()
  /** range-done: a range was worked to its end. ended: the partition was drained or abandoned. */
  readonly finished: Promise<'range-done' | 'ended'>

  constructor(options: PartitionExtractorOptions) {
    this.#options = options
    this.#turns = new ReplayTurns(options.limits)
    this.#queue = new PageQueue({
      limits: () => shareOf(options.limits, options.port.waitingPartitions()),
      pause: () => options.port.pause(),
      resume: () => options.port.resume(),
      process: (message, giveBack) => this.#process(message, giveBack),
      ahead: () => this.#ahead(),
    })
    this.finished = this.#run()
  }

  /** Offset up to which everything is committed. */
  get committed(): bigint {
    return this.#committed
  }

  get metadata(): OffsetMetadata {
    return this.#metadata
  }

  /** Pages of it wait in memory. */
  get hasWaiting(): boolean {
    return this.#queue.hasWaiting
  }

  accept(messages: readonly KafkaMessage[], position: bigint): void {
    this.#queue.add(messages, position)
  }

  /** `control` holds something new about replays. */
  controlChanged(): void {
    this.#setCourse()
  }

  drain(): void {
    this.#draining = true
    // Pages that wait for their rate would hold up the end for as long as that takes.
    if (this.#rate !== undefined) this.#queue.halt()
    this.#queue.close()
  }

  abandon(): void {
    this.#abandoned.abort(new MillraceError('ABORTED', 'the partition went to another member'))
    this.#queue.halt()
    this.#queue.close()
  }

  async #run(): Promise<'range-done' | 'ended'> {
    const { port, clock, observer, group, assigned } = this.#options
    let failures = 0
    /** Of those, the last in a row that missed a topic: what an outage took before says nothing of it. */
    let missing = 0
    let end: 'range-done' | 'ended' = 'ended'
    while (!this.#abandoned.signal.aborted) {
      try {
        await this.#begin()
        end = await this.#work(() => {
          failures = 0
          missing = 0
        })
        break
      } catch (error) {
        if (this.#abandoned.signal.aborted) break
        failures += 1
        missing = isMillraceError(error, 'KAFKA_TOPIC_MISSING') ? missing + 1 : 0
        if (isEnd(error, missing)) {
          await port.transactions.close()
          throw error
        }
        // A replay that this worker can't do waits for one that can; nothing else of the partition is worked meanwhile.
        const event = isMillraceError(error, 'REPLAY_REFUSED') ? 'ReplayRefused' : 'PartitionRepeated'
        observer.emit(event, { group, partition: assigned.partition, error: errorText(error) })
        if (this.#draining) break
        await slept(clock, backoffMs(RETRY, failures, Math.random()), this.#abandoned.signal)
      }
    }
    await port.transactions.close()
    return end
  }

  /** Control first, then the fence, then the offset: in this order nobody can move it behind our back. */
  async #begin(): Promise<void> {
    const { port, range } = this.#options
    await port.readControl()
    const committed = await port.transactions.fence(this.#abandoned.signal)
    const { low, stableEnd, end } = await port.logBounds()
    const start = committed.offset ?? range?.from ?? low
    this.#endLooks.check(start, end)
    // Below the log: retention overtook us. Above it: not our log. Reading goes on at what is there, and says so.
    const offset = leastOf(greatestOf(start, low), end)
    if (offset !== start) this.#sayOutOfRange(start, { low, end })
    this.#metadata = overtaken(decodeMetadata(committed.metadata) ?? freshMetadata(offset), start, offset, range?.until)
    // Nothing is left to read, and no transaction of pages will tell so.
    if (range !== undefined && start < range.until && offset >= range.until)
      await port.transactions.commit([], offset, encodeMetadata(this.#metadata))
    const replay = this.#metadata.replay
    if (replay?.phase === 'done') {
      if (port.isReplayClosed(replay.replayId)) this.#metadata = { ...this.#metadata, replay: undefined }
      // Whoever was done last may have died before it could say so.
      else port.replayDone(replay.replayId)
    }
    const course = courseOf(this.#metadata, port.replayOrder(), (id) => this.#isEnded(id))
    if (course.kind === 'rewind') this.#refuseUnlessAble(course.order.replayId)
    if (course.kind === 'go-on' && replay !== undefined && replay.phase !== 'done') this.#refuseUnlessAble(replay.replayId)
    this.#logEnd = stableEnd
    this.#startAt(offset)
  }

  #sayOutOfRange(offset: bigint, { low, end }: { readonly low: bigint; readonly end: bigint }): void {
    const { group, assigned, observer } = this.#options
    observer.emit('OffsetOutOfRange', { group, partition: assigned.partition, offset, low, end })
  }

  #refuseUnlessAble(replayId: string): void {
    const refusal = this.#options.port.refuseReplay(replayId)
    if (refusal !== undefined) throw new MillraceError('REPLAY_REFUSED', refusal, { context: { replayId } })
  }

  #isEnded(replayId: string): boolean {
    return this.#options.port.isReplayCancelled(replayId) || this.#options.port.isReplayClosed(replayId)
  }

  #setCourse(): void {
    this.#course = courseOf(this.#metadata, this.#options.port.replayOrder(), (id) => this.#isEnded(id))
    if (this.#course.kind !== 'go-on') this.#queue.halt()
  }

  #startAt(offset: bigint): void {
    this.#next = offset
    this.#committed = offset
    this.#turning = false
    this.#turns.begin(this.#metadata.replay?.phase, offset, this.#logEnd, this.#options.clock.mono())
    this.#queue.reset(offset)
    this.#setCourse()
    this.#options.port.readFrom(offset)
  }

  #process(message: KafkaMessage, giveBack: AbortSignal): Promise<ProcessedPage | undefined> | 'stop' {
    if (this.#options.range !== undefined && message.offset >= this.#options.range.until) return 'stop'
    const step = replayStep(this.#metadata, message.offset)
    if (step.kind === 'jump') return 'stop'
    return this.#options.port.process(
      message,
      { replayId: step.kind === 'replay' ? step.replayId : undefined, readFrom: this.#readFrom },
      giveBack,
    )
  }

  /** As `PageWork` has it. Of what retention has deleted under a replay some may have been read, and nobody knows what. */
  get #readFrom(): bigint {
    const { replay, gone, since } = this.#metadata
    if (replay?.phase === 'replaying') return replay.gone?.until ?? 0n
    return this.#options.range === undefined ? since : (gone?.until ?? 0n)
  }

  async #work(onProgress: () => void): Promise<'range-done' | 'ended'> {
    for (;;) {
      if (this.#queue.isDry) {
        const course = this.#course
        const step = course.kind === 'jump' ? course : replayStep(this.#metadata, this.#next)
        if (step.kind === 'jump') {
          await this.#jump(step.resumeAt ?? this.#next)
          continue
        }
        if (course.kind === 'rewind' && !this.#draining) {
          await this.#rewind(course.order)
          continue
        }
        if (this.#turning && !this.#draining) {
          await this.#takeTurn()
          continue
        }
        const { range } = this.#options
        if (range !== undefined && this.#next >= range.until) return 'range-done'
        if (this.#draining || this.#abandoned.signal.aborted) return 'ended'
        if (this.#queue.isHalted) {
          // What it was halted for is off again: a replay that was withdrawn before its rewind.
          this.#startAt(this.#next)
          continue
        }
      }
      await this.#endTurn()
      const pages = await this.#gather()
      if (this.#abandoned.signal.aborted) return 'ended'
      await this.#commit(pages)
      onProgress()
    }
  }

  /**
   * Pages for one transaction: with output it closes when no further page waits, at `maxPages` or `maxTransactionBytes`, or after
   * `maxBusyGatherMs`. Pages without output are gathered for `maxGatherMs`, so that a log nobody matches costs two commits a second and not
   * one per page.
   */
  async #gather(): Promise<ProcessedPage[]> {
    const { limits, clock } = this.#options
    const pages: ProcessedPage[] = []
    let hasOutput = false
    let outputBytes = 0
    let begunMono = 0
    for (;;) {
      const waitsMs = hasOutput ? limits.maxBusyGatherMs : limits.maxGatherMs
      // A turn of a replay ends with its transaction; where pages wait for its rate, without one.
      const turnEndsMono = this.#turns.replayEndsMono ?? Number.POSITIVE_INFINITY
      const givesWay = this.#replaying !== undefined && this.#rate !== undefined && !this.#turning && !this.#draining
      const closesMono = pages.length > 0 ? Math.min(begunMono + waitsMs, turnEndsMono) : givesWay ? turnEndsMono : undefined
      const leftMs = closesMono === undefined ? undefined : closesMono - clock.mono()
      if (leftMs !== undefined && leftMs <= 0) break
      const page = await this.#queue.next(leftMs === undefined ? undefined : { ms: leftMs, clock })
      if (page === undefined) break
      if (pages.length === 0) begunMono = clock.mono()
      pages.push(page)
      hasOutput ||= page.messages.length > 0
      for (const message of page.messages) outputBytes += messageBytes(message)
      const isFull = pages.length >= limits.maxPages || outputBytes >= limits.maxTransactionBytes
      if (hasOutput && (isFull || this.#queue.isDry)) break
    }
    const last = pages.at(-1)
    if (this.#queue.isDry) this.#next = this.#queue.position
    else if (last !== undefined) this.#next = last.offset + 1n
    return pages
  }

  async #commit(pages: readonly ProcessedPage[]): Promise<void> {
    if (this.#next === this.#committed && pages.length === 0) return
    const messages: OutgoingMessage[] = pages.flatMap((page) => page.messages)
    const metadata = pages.reduce(countPage, this.#metadata)
    await this.#options.port.transactions.commit(messages, this.#next, encodeMetadata(metadata))
    this.#metadata = metadata
    this.#committed = this.#next
    // Not sooner: what a failed transaction held comes once more.
    for (const { totals } of pages)
      for (const [extractor, { records }] of totals) this.#options.observer.emit('RecordsWritten', { extractor, count: records })
  }

  /** Pages per second that may be read here as it stands: by a replay in place that is at work, or by a shadow. */
  get #rate(): number | undefined {
    return this.#options.port.rate(this.#replaying)
  }

  /** The replay in place that is at work here. */
  get #replaying(): string | undefined {
    const replay = this.#metadata.replay
    return replay?.phase === 'replaying' ? replay.replayId : undefined
  }

  /** Pages in work at the same time: where there is a cap, half a second's worth, so that few of them hold their place in its rate. */
  #ahead(): number {
    const { pagesAhead } = this.#options.limits
    const rate = this.#rate
    return rate === undefined ? pagesAhead : Math.min(pagesAhead, Math.max(1, Math.ceil(rate / 2)))
  }

  /** Halts the queue where the other one of replay and live work is to have its turn, as `ReplayTurns` says. */
  async #endTurn(): Promise<void> {
    const { port, clock } = this.#options
    const replay = this.#metadata.replay
    if (this.#turning || this.#draining || replay === undefined || replay.phase === 'done') return
    if (!this.#turns.isOver({ next: this.#next, nowMono: clock.mono() }, this.#rate !== undefined)) return
    if (replay.phase === 'replaying') {
      const { stableEnd } = await port.logBounds()
      if (stableEnd <= replay.resumeAt) {
        this.#turns.extend(clock.mono())
        return
      }
      this.#logEnd = stableEnd
    }
    this.#turning = true
    this.#queue.halt()
  }

  /** Of replay and live work the other one goes on where it stood. */
  async #takeTurn(): Promise<void> {
    const { port } = this.#options
    const bounds = await port.logBounds()
    const { offset, metadata } = turned(this.#metadata, this.#next, bounds.low)
    const stood = this.#metadata.replay?.resumeAt ?? offset
    if (offset > stood) this.#sayOutOfRange(stood, bounds)
    await this.#moveTo(offset, metadata)
  }

  /** Live work has drained: the offset goes back to the begin of the range. */
  async #rewind(order: ReplayOrder): Promise<void> {
    const { port, observer, group, assigned } = this.#options
    this.#refuseUnlessAble(order.replayId)
    const { low } = await port.logBounds()
    const { offset, metadata } = rewound(this.#metadata, order, this.#next, low)
    await this.#moveTo(offset, metadata)
    observer.emit('ReplayPartitionBegan', { group, partition: assigned.partition, replayId: order.replayId, from: offset })
    if (metadata.replay?.phase === 'done') port.replayDone(order.replayId)
  }

  /** The replayed range has ended: back to where live work stood, or what retention has left behind that. */
  async #jump(resumeAt: bigint): Promise<void> {
    const { port, observer, group, assigned } = this.#options
    const bounds = await port.logBounds()
    const offset = greatestOf(resumeAt, bounds.low)
    if (offset !== resumeAt) this.#sayOutOfRange(resumeAt, bounds)
    const metadata = overtaken(afterJump(this.#metadata, this.#next), resumeAt, offset)
    await this.#moveTo(offset, metadata)
    const replayId = metadata.replay?.replayId
    observer.emit('ReplayPartitionDone', { group, partition: assigned.partition, replayId })
    if (replayId !== undefined) port.replayDone(replayId)
  }

  /** In a transaction of its own on the fenced producer; the state follows the commit. */
  async #moveTo(offset: bigint, metadata: OffsetMetadata): Promise<void> {
    await this.#options.port.transactions.commit([], offset, encodeMetadata(metadata))
    this.#metadata = metadata
    this.#startAt(offset)
  }
}

/**
 * Whether the stage ends by it; everything else is tried again from the committed offset, since of the many pages of a transaction nobody
 * can say which one it was. What was stopped is ended by whoever stopped it, and a replay that this worker can't do waits for one that can.
 */
function isEnd(error: unknown, missing: number): boolean {
  if (isMillraceError(error, 'ABORTED') || isMillraceError(error, 'REPLAY_REFUSED')) return false
  return endsStage(error) && (error.code !== 'KAFKA_TOPIC_MISSING' || missing > MISSING_TRIES)
}

/** Totals after one more message: those of a replay are kept apart, the main ones count each page once. */
function countPage(metadata: OffsetMetadata, page: ProcessedPage): OffsetMetadata {
  if (page.counts === 'replayed') {
    if (metadata.replay === undefined) return metadata
    const totals = [...page.totals.values()].reduce(addTotals, metadata.replay.totals)
    return { ...metadata, replay: { ...metadata.replay, totals } }
  }
  if (page.counts === 'put-back-of-replay') return metadata
  const isPage = page.counts === 'page'
  if (isPage && page.totals.size === 0) return { ...metadata, totals: { ...metadata.totals, noMatch: metadata.totals.noMatch + 1 } }
  const extractors = { ...metadata.totals.extractors }
  for (const [name, totals] of page.totals)
    extractors[name] = addTotals(extractors[name] ?? NO_TOTALS, isPage ? totals : { ...totals, pages: 0 })
  return { ...metadata, totals: { ...metadata.totals, extractors } }
}
