import type { AssignedPartition } from '../kafka/assignment.ts'
import type { OutcomePublisher } from '../kafka/outcome-publisher.ts'
import type { TaskPublisher } from '../kafka/task-publisher.ts'
import type { WindowEntry } from '../kafka/window-entry.ts'
import { partitionId } from '../kernel/brand.ts'
import { repeated } from '../kernel/clock.ts'
import { BaseService } from '../kernel/lifecycle.ts'
import { WorkSet } from '../kernel/work-set.ts'
import type { UrlTask } from '../message/generated/types.ts'
import { NO_PLACE } from '../message/header-names.ts'
import { laneOf } from '../message/topics.ts'
import { AttemptsUnderWay } from './attempts-under-way.ts'
import { BodyRoom } from './body-room.ts'
import { CrawlShares } from './crawl-shares.ts'
import { CrawlWatch } from './crawl-watch.ts'
import type { FetchWorkerOptions, LaneConsumer } from './fetch-options.ts'
import { fetchParts } from './fetch-parts.ts'
import type { FetchTask, TaskStep } from './fetch-task.ts'
import { type FetchView, fetchView, type TaskView, taskViews } from './fetch-view.ts'
import { HANDOVER_POLL_MS, type Handover } from './handover.ts'
import { endWithoutQueue } from './intake-endings.ts'
import { IntakeQueue } from './intake-queue.ts'
import { PLACE_POLL_MS, PlaceWaits } from './place-waits.ts'
import { type QueuedTask, queuedTask } from './queued-task.ts'
import { Scheduler } from './scheduler.ts'
import { isEnding, type Settler } from './settler.ts'
import { type SpillReason, spillReasonOf } from './spill.ts'
import { Spiller } from './spiller.ts'
import { StartRate } from './start-rate.ts'
import { StoreGate } from './store-gate.ts'
import { isOfTask, type TaskEndings } from './task-endings.ts'
import { type IntakeVerdict, TaskIntake } from './task-intake.ts'
import { Turn } from './turn.ts'
import { TurnStarter } from './turn-starter.ts'

/** With so many on their way out of the windows the process is busy with a backlog. */
const MANY_LEAVING = 100
const SWEEP_MS = 5_000
const CRAWL_WATCH_MS = 1_000
/** What is not acknowledged after so long waits for the broker, not for its turn. */
const KAFKA_LATE_MS = 5_000
/** The last commit of a drain needs no waiting: what is left in the windows comes again. */
const CONSUMER_DRAIN_MS = 1

/**
 * One fetch worker: lanes in, pages and outcomes out. The way of an entry and the life of the whole; what is decided is decided in the
 * parts.
 *
 * An entry goes intake -> site queue -> its turn -> endings, and holds its place in the window until its end is acknowledged. Whatever
 * happens to it (it came, it ended, its site may start again) is told to the starter, which gives the next turns.
 *
 * running:  takes entries, starts requests while the store answers.
 * draining: starts nothing new; what is on the wire is finished, written and committed; what waits is left for the next owner.
 * closing:  requests are cut off; what was not settled comes again.
 */
export class FetchWorker extends BaseService {
  readonly #options: FetchWorkerOptions
  readonly #spiller: Spiller
  readonly #crawls: CrawlWatch
  readonly #rate: StartRate
  readonly #scheduler: Scheduler<QueuedTask>
  readonly #room: BodyRoom
  readonly #starter: TurnStarter<QueuedTask>
  readonly #intake: IntakeQueue
  readonly #endings: TaskEndings
  readonly #task: FetchTask
  readonly #consumer: LaneConsumer
  readonly #publisher: TaskPublisher
  readonly #outcomes: OutcomePublisher
  readonly #settler: Settler
  /** What it throws stops the worker. */
  readonly #work = new WorkSet((error) => {
    if (!isEnding(error, this.aborted.signal)) this.fail(error)
  })
  readonly #underWay = new AttemptsUnderWay()
  readonly #turns = new Set<QueuedTask>()
  readonly #handover: Handover
  readonly #placeWaits: PlaceWaits
  #isTaking = true

  constructor(options: FetchWorkerOptions) {
    super()
    this.#options = options
    const { clock, observer, topics, state, random = Math.random } = options
    const { signal } = this.aborted
    const isBusy = (): boolean => this.#intake.isBehind || this.#spiller.leaving > MANY_LEAVING
    this.#scheduler = new Scheduler({ maxInFlight: options.concurrency, maxBytes: options.maxBytesInFlight, isBusy })
    this.#room = new BodyRoom({ isFull: () => this.#scheduler.isFull, maxBytes: options.maxBytesInFlight, clock })
    const gate = new StoreGate({ clock, observer, signal, random, onBack: () => this.#starter.resume() })
    const start = (queued: QueuedTask): void => this.#work.run(() => this.#run(queued))
    this.#starter = new TurnStarter({ scheduler: this.#scheduler, gate, start, signal, clock })
    const work = (run: () => Promise<void>): void => this.#work.run(run)
    const parts = fetchParts(options, { scheduler: this.#scheduler, gate, work, signal, random })
    const { publisher, outcomes, endings, settler, handover, task } = parts
    this.#publisher = publisher
    this.#outcomes = outcomes
    this.#endings = endings
    this.#settler = settler
    this.#handover = handover
    this.#task = task
    this.#placeWaits = new PlaceWaits(clock)
    const shares = new CrawlShares()
    this.#crawls = new CrawlWatch({ state, gate, scheduler: this.#scheduler, turns: this.#turns, shares })
    this.#rate = new StartRate({ scheduler: this.#scheduler, clock })
    this.#spiller = new Spiller({
      scheduler: this.#scheduler,
      putAside: (tasks, slots) => endings.spilled(tasks, slots, (queued) => this.#ended(queued, false)),
      paceOf: options.paceOf,
      ...(options.hoursEnd === undefined ? {} : { hoursEnd: options.hoursEnd }),
      shares,
      rate: this.#rate,
      clock,
      ...(options.spill === undefined ? {} : { limits: options.spill }),
    })
    const intake = new TaskIntake({ ...options, publisher, gate, isHeldBack: (entry, task) => this.#underWay.holdsBack(entry, task) })
    this.#intake = new IntakeQueue({
      laneOf: ({ message }) => laneOf(topics, message.topic) ?? 'normal',
      sort: (entries) => intake.sort(entries),
      onVerdicts: (verdicts, checkedMono) => this.#take(verdicts, checkedMono),
      work,
      clock,
      random,
      signal,
    })
    this.#consumer = options.createConsumer({
      onEntries: (entries) => this.#intake.add(entries),
      onGained: (assigned) => handover.gained(assigned),
      onRebalancing: () => this.#work.run(() => handover.rebalancing()),
      onLost: (assigned) => this.#onLost(assigned),
    })
  }

  /** What is in memory, and what it waits for. */
  view(): FetchView {
    const windowMessages = this.#consumer.incompleteCount()
    const proxiesOut = this.#options.proxiesOut?.() ?? []
    const unwrittenMs = this.#settler.unwrittenMs() ?? 0
    const stalledBy = this.#starter.stalledBy ?? this.#options.waitsFor?.()[0] ?? null
    return fetchView(this.#scheduler, this.#options.clock.mono(), { stalledBy, windowMessages, proxiesOut, unwrittenMs })
  }

  /** Where the tasks of a canonical URL are in this worker. */
  find(canonicalUrl: string): readonly TaskView[] {
    return taskViews(this.#scheduler, this.#turns, canonicalUrl, this.#options.clock.mono(), {
      unwrittenMs: ({ entry }) => this.#settler.unwrittenMs(entry),
      handoverMs: (queued) => this.#handover.leftMs(queued),
      awaitsPlace: (queued) => this.#placeWaits.has(queued),
    })
  }

  /**
   * True: no request starts until it is called with false; what came in waits. For a disk that runs full. Nothing is taken
   * up either: what does not fit its queue would be written to a delay topic, on the very disk, and a backlog be read through in an hour.
   */
  holdRequests(isHeld: boolean): void {
    if (isHeld) {
      this.#starter.hold()
      this.#intake.hold()
    } else {
      this.#starter.release()
      this.#intake.release()
    }
  }

  /** The pace of a domain was changed while sites may sleep by the old one: they are asked for anew. */
  paceChanged(domain: string): void {
    const now = this.#options.clock.mono()
    for (const { key } of [...this.#scheduler.sites()]) {
      if (key === domain || key.endsWith(`.${domain}`) || domain.endsWith(`.${key}`)) this.#scheduler.wake(key, now)
    }
    this.#starter.soon()
  }

  protected async onStart(signal: AbortSignal): Promise<void> {
    const { codec, topics } = this.#options
    await Promise.all([this.#publisher.prepare(), this.#outcomes.prepare(), codec.prepare(topics.html, 'Page')])
    this.releases.add('room for bodies', () => this.#room.close())
    this.releases.add('work under way', () => this.#work.settled())
    this.releases.add('notes of it', () => this.#handover.close())
    this.releases.add('consumer', () => this.#consumer.stop({ mode: 'abort', timeoutMs: 0 }))
    this.releases.add('starts', () => this.#starter.close())
    this.#consumer.closed.catch((error: unknown) => this.fail(error))
    await this.#consumer.start({ signal })
    const sweep = (): void => {
      if (this.#starter.stalledBy !== null) return
      for (const old of this.#spiller.takeOld(this.#consumer.bases())) this.#spill(old, 'old-base')
    }
    this.releases.add('sweep', repeated(this.#options.clock, SWEEP_MS, sweep))
    const shareOut = (): void => this.#work.run(() => this.#shareOut())
    this.releases.add('shares of crawls', repeated(this.#options.clock, CRAWL_WATCH_MS, shareOut))
  }

  protected async onDrain(signal: AbortSignal): Promise<void> {
    this.#isTaking = false
    this.#starter.close()
    this.#intake.close()
    await this.#work.settled(signal)
    this.#handover.close()
    await this.#work.settled(signal)
    await this.#consumer.stop({ mode: 'drain', timeoutMs: CONSUMER_DRAIN_MS })
  }

  /** Work for one entry: what it throws ends the entry. */
  #workOn(entry: WindowEntry, task: UrlTask | undefined, run: () => Promise<void>): void {
    this.#work.run(async () => {
      try {
        await run()
      } catch (error) {
        await this.#failed(entry, task, error)
      }
    })
  }

  async #shareOut(): Promise<void> {
    if (this.#starter.stalledBy !== null) return this.#rate.skip()
    // A broker that takes no pages holds all places.
    if ((this.#settler.unwrittenMs() ?? 0) > KAFKA_LATE_MS) this.#rate.skip()
    else this.#rate.measure()
    if (this.#isTaking) await this.#crawls.look()
    if (this.#isTaking) for (const tasks of this.#spiller.takeSurplus()) this.#spill(tasks, 'crawl-full')
  }

  #spill(tasks: readonly QueuedTask[], reason: SpillReason, closedMs?: number): void {
    for (const { entry, task } of tasks) this.#underWay.leaves(entry, task)
    this.#work.run(() => this.#spiller.spill(tasks, reason, closedMs))
  }

  /** It leaves its window for so long, alone. */
  #delay(queued: QueuedTask, forMs: number): void {
    const { entry, task } = queued
    this.#underWay.leaves(entry, task)
    const dueAt = this.#options.clock.now() + forMs
    this.#workOn(entry, task, () => this.#endings.delayed(entry, task, dueAt, NO_PLACE).finally(() => this.#ended(queued, false)))
    this.#options.observer.emit('TaskSpilled', { reason: NO_PLACE })
  }

  /**
   * The attempt is not under way any more. Of its copies those that it was put aside with are done; the others are asked for again, and the
   * store says whether it is finished. `isFinished`: it does.
   */
  #ended(queued: QueuedTask, isFinished: boolean): void {
    const { entry, task } = queued
    this.#handover.over(queued, isFinished)
    this.#placeWaits.ended(queued)
    const { repeats, open } = this.#underWay.end(entry, task)
    for (const copy of repeats) this.#endings.repeat(copy)
    if (open.length > 0) this.#intake.add(open)
  }

  // --- intake ---------------------------------------------------------------------------------------------------------------

  #take(verdicts: readonly IntakeVerdict[], checkedMono: number): void {
    const ready: QueuedTask[] = []
    for (const verdict of verdicts) {
      if (!verdict.entry.isCurrent() || verdict.kind === 'held-back') continue
      if (verdict.kind !== 'ready') {
        this.#workOn(verdict.entry, 'task' in verdict ? verdict.task : undefined, () =>
          endWithoutQueue(this.#endings, verdict, this.#options.clock.now()),
        )
        continue
      }
      if (!this.#underWay.begin(verdict.entry, verdict.task)) continue
      const queued = queuedTask(verdict, checkedMono, (target) => this.#options.paceOf(target).key)
      this.#options.observer.emit('TaskAccepted', { lane: queued.lane })
      ready.push(queued)
    }
    for (const { tasks, reason } of this.#spiller.admit(ready, (queued) => this.#enqueue(queued, 'tail'))) this.#spill(tasks, reason)
    this.#starter.soon()
  }

  #enqueue(queued: QueuedTask, place: 'head' | 'tail'): void {
    const now = this.#options.clock.mono()
    const isNew = this.#scheduler.site(queued.key) === undefined
    this.#scheduler.add(queued, now, place)
    // Later it is what the limiter says, which may be less.
    if (isNew) this.#scheduler.setConcurrency(queued.key, this.#options.paceOf(queued.target).concurrency, now)
  }

  // --- what leaves the windows ------------------------------------------------------------------------------------------------

  /** Its new owner has the tasks as well: what has begun goes on, what waits is dropped. */
  #onLost(assigned: AssignedPartition): void {
    const window = partitionId(assigned.topic, assigned.partition)
    for (const site of [...this.#scheduler.sites()]) {
      const isDropped = ({ entry, walk, window: own }: QueuedTask): boolean => own === window && walk.hops === 0 && !entry.isCurrent()
      for (const queued of this.#scheduler.takeOut(site.key, isDropped)) this.#ended(queued, false)
    }
    this.#work.run(() => this.#handover.lost(assigned))
  }

  // --- requests -------------------------------------------------------------------------------------------------------------

  async #run(queued: QueuedTask): Promise<void> {
    const { clock } = this.#options
    const turn = new Turn({ scheduler: this.#scheduler, queued, room: this.#room, clock, onChange: () => this.#starter.soon() })
    let after: 'under way' | 'settled' | 'dropped' = 'dropped'
    this.#turns.add(queued)
    this.#handover.begun(queued)
    try {
      after = this.#next(queued, await this.#task.run(queued, turn, this.aborted.signal), turn)
    } catch (error) {
      turn.close()
      after = (await this.#failed(queued.entry, queued.task, error)) ? 'settled' : 'dropped'
    } finally {
      this.#turns.delete(queued)
      turn.close()
      if (after !== 'under way') this.#ended(queued, after === 'settled')
      // A chain that waits for its next hop has begun; a task that waits for its first request has not.
      else if (queued.walk.hops === 0) this.#handover.over(queued, false)
    }
  }

  /** Shape: what has become of the attempt. */
  #next(queued: QueuedTask, step: TaskStep, turn: Turn): 'under way' | 'settled' | 'dropped' {
    if (step.kind !== 'no-place') this.#placeWaits.ended(queued)
    switch (step.kind) {
      case 'done':
        return 'settled'
      case 'dropped':
        return 'dropped'
      case 'elsewhere':
        this.#options.observer.emit('LimiterWaited', { reason: 'handover' })
        turn.setAside(HANDOVER_POLL_MS)
        return 'under way'
      case 'no-place': {
        this.#options.observer.emit('LimiterWaited', { reason: NO_PLACE })
        const leavesForMs = this.#placeWaits.leavesFor(queued)
        if (leavesForMs === undefined) turn.setAside(PLACE_POLL_MS)
        else {
          turn.leave()
          this.#delay(queued, leavesForMs)
        }
        return 'under way'
      }
      case 'wait': {
        this.#options.observer.emit('LimiterWaited', { reason: step.reason })
        if (step.concurrency !== undefined) this.#scheduler.setConcurrency(queued.key, step.concurrency, this.#options.clock.mono())
        if (step.reason === 'paused' && this.#options.paceOf(queued.target).byDomain === true) {
          turn.leave()
          this.#spill([queued, ...this.#spiller.takePaused(queued)], 'paused', step.waitMs)
          return 'under way'
        }
        if (!this.#spiller.isLong(step.waitMs)) {
          turn.putBack(step.waitMs, step.reason)
          return 'under way'
        }
        turn.leave()
        this.#spill([queued, ...this.#spiller.takeSite(queued.key, step.waitMs)], spillReasonOf(step.reason), step.waitMs)
        return 'under way'
      }
      case 'again':
        this.#enqueue(queued, 'head')
        this.#starter.soon()
        return 'under way'
      case 'hop': {
        const hop = { ...queued, ...step.next, key: this.#options.paceOf(step.next.target).key }
        this.#handover.follows(queued, hop)
        this.#enqueue(hop, 'head')
        this.#starter.soon()
        return 'under way'
      }
      case 'backed-off':
        if (this.#spiller.isLong(step.forMs))
          this.#spill(this.#spiller.takeSite(queued.key, step.forMs), spillReasonOf(step.reason), step.forMs)
        return 'settled'
    }
  }

  /**
   * What a task does to the work on it ends that task and no other. A dependency that is broken, on the other hand, is no task's fault.
   * Shape: false where the worker ends and the entry comes again.
   */
  async #failed(entry: WindowEntry, task: UrlTask | undefined, error: unknown): Promise<boolean> {
    if (isEnding(error, this.aborted.signal)) return false
    if (!isOfTask(error)) throw error
    await this.#endings.unwritable(entry, task, error)
    return true
  }
}
