import type { AssignedPartition } from '../kafka/assignment.ts'
import { DeadLetterPublisher } from '../kafka/dead-letter-publisher.ts'
import { OutcomePublisher } from '../kafka/outcome-publisher.ts'
import { TaskPublisher } from '../kafka/task-publisher.ts'
import type { WindowEntry } from '../kafka/windowed-consumer.ts'
import { backoffMs } from '../kernel/backoff.ts'
import { partitionId } from '../kernel/brand.ts'
import { repeated } from '../kernel/clock.ts'
import { isMillraceError } from '../kernel/errors.ts'
import { BaseService } from '../kernel/lifecycle.ts'
import type { UrlTask } from '../message/generated/types.ts'
import { LANES } from '../message/topics.ts'
import { AdmissionDesk } from './admission.ts'
import { AttemptsUnderWay } from './attempts-under-way.ts'
import { ChainClaims } from './chain-claims.ts'
import { claimCheckOf } from './claim-check.ts'
import { ConditionalRequests } from './conditional-requests.ts'
import { CookieJars } from './cookie-jars.ts'
import { CrawlShares } from './crawl-shares.ts'
import { CrawlWatch } from './crawl-watch.ts'
import type { FetchWorkerOptions, LaneConsumer } from './fetch-options.ts'
import { FetchTask, type TaskStep } from './fetch-task.ts'
import { type FetchView, fetchView, type TaskView, taskViews } from './fetch-view.ts'
import { Handover } from './handover.ts'
import { endWithoutQueue } from './intake-endings.ts'
import { IntakeQueue } from './intake-queue.ts'
import { LoadControl } from './load-control.ts'
import { type QueuedTask, queuedTask } from './queued-task.ts'
import { createRobotsGate } from './robots-fetch.ts'
import { Scheduler } from './scheduler.ts'
import { isEnding, Settler } from './settler.ts'
import { SiteLeases } from './site-leases.ts'
import { type SpillReason, spillReasonOf } from './spill.ts'
import { Spiller } from './spiller.ts'
import { StoreGate } from './store-gate.ts'
import { TaskEndings } from './task-endings.ts'
import { type IntakeVerdict, TaskIntake } from './task-intake.ts'
import { Turn } from './turn.ts'

const SWEEP_MS = 5_000
const CRAWL_WATCH_MS = 1_000
const LEAST_FINISHED_TTL_MS = 21_600_000
const LEASE_MARGIN_MS = 5_000
/** The last commit of a drain needs no waiting: what is left in the windows comes again. */
const CONSUMER_DRAIN_MS = 1

/**
 * One fetch worker: lanes in, pages and outcomes out. The wiring and the life of it; what is decided is decided in the parts.
 *
 * An entry goes intake -> site queue -> its turn -> endings, and holds its place in the window until its end is acknowledged. The
 * loop is driven by events (something came, something ended, a site may start again) and owns one timer for all sites.
 *
 * running:  takes entries, starts requests while the store answers.
 * draining: starts nothing new; what is on the wire is finished, written and committed; what waits is left for the next owner.
 * closing:  requests are cut off; what was not settled comes again.
 */
export class FetchWorker extends BaseService {
  readonly #options: FetchWorkerOptions
  readonly #spiller: Spiller
  readonly #crawls: CrawlWatch
  readonly #scheduler: Scheduler<QueuedTask>
  readonly #gate: StoreGate
  readonly #intake: IntakeQueue
  readonly #endings: TaskEndings
  readonly #task: FetchTask
  readonly #consumer: LaneConsumer
  readonly #publisher: TaskPublisher
  readonly #outcomes: OutcomePublisher
  readonly #working = new Set<Promise<void>>()
  readonly #underWay = new AttemptsUnderWay()
  readonly #turns = new Set<QueuedTask>()
  readonly #handover: Handover
  #isTaking = true
  #isHeld = false
  #isPumpDue = false
  #disarm: (() => void) | undefined

  constructor(options: FetchWorkerOptions) {
    super()
    this.#options = options
    const { clock, observer, codec, layout, topics, producer, state, retry, limits, random = Math.random } = options
    const { signal } = this.aborted
    this.#scheduler = new Scheduler({ maxInFlight: options.concurrency, maxBytes: options.maxBytesInFlight })
    const gate = new StoreGate({ clock, observer, signal, random, onBack: () => this.holdRequests(this.#isHeld) })
    this.#gate = gate
    this.#publisher = new TaskPublisher({ topics, codec, producer, layout, clock })
    this.#outcomes = new OutcomePublisher({ topics, codec, layout })
    const finishedTtlMs = Math.max(LEAST_FINISHED_TTL_MS, 2 * retry.maxDelayMs)
    this.#endings = new TaskEndings({
      publisher: this.#publisher,
      outcomes: this.#outcomes,
      deadLetters: new DeadLetterPublisher({ topics, layout, maxBytes: options.deadLetterMaxBytes }),
      settler: new Settler({ producer, state, gate, finishedTtlMs, signal }),
      state,
      gate,
      retry,
      random,
      clock,
      observer,
      budgetIdsOf: (task) => options.budgetsOf(task).map(({ id }) => id),
    })
    const shares = new CrawlShares()
    this.#crawls = new CrawlWatch({ state, gate, scheduler: this.#scheduler, turns: this.#turns, shares, clock })
    this.#spiller = new Spiller({
      scheduler: this.#scheduler,
      endings: this.#endings,
      paceOf: options.paceOf,
      shares,
      startsPerSecond: () => this.#crawls.startsPerSecond,
      clock,
      ...(options.spill === undefined ? {} : { limits: options.spill }),
    })
    const intake = new TaskIntake({
      ...options,
      publisher: this.#publisher,
      gate,
      isHeldBack: (entry, task) => this.#underWay.holdsBack(entry, task),
    })
    this.#intake = new IntakeQueue({
      laneOf: ({ message }) => LANES.find((lane) => topics.urls[lane] === message.topic) ?? 'normal',
      sort: (entries) => intake.sort(entries),
      onVerdicts: (verdicts, checkedMono) => this.#take(verdicts, checkedMono),
      work: (run) => this.#work(run),
      clock,
      random,
      signal,
    })
    const leaseMs = limits.totalMs + LEASE_MARGIN_MS
    const leases = new SiteLeases({ ...options, gate, leaseMs, rules: options.siteHealth })
    const robots = createRobotsGate({ ...options, leases, gate })
    const handover = new Handover({ state, gate, leaseMs, work: (run) => this.#work(run), clock })
    this.#handover = handover
    const desk = new AdmissionDesk({ ...options, handover, gate, leases, robotsOf: (url) => robots.check(url, signal) })
    const backOff = (attempt: number): number => backoffMs({ firstMs: retry.firstDelayMs, maxMs: retry.maxDelayMs }, attempt, random())
    const cookies = new CookieJars({ keep: options.cookies, observer })
    const load = new LoadControl({ scheduler: this.#scheduler, maxInFlight: options.concurrency, observer, clock })
    const conditional = new ConditionalRequests({ ...options, gate })
    const claimCheck = claimCheckOf({ ...options, random, signal })
    this.#task = new FetchTask({
      ...options,
      load,
      cookies,
      conditional,
      desk,
      endings: this.#endings,
      leases,
      backOffMs: backOff,
      claimCheck,
      chains: new ChainClaims({ ...options, gate }),
    })
    this.#consumer = options.createConsumer({
      onEntries: (entries) => this.#intake.add(entries),
      onGained: (assigned) => handover.gained(assigned),
      onRebalancing: () => this.#work(() => handover.rebalancing()),
      onLost: (assigned) => this.#onLost(assigned),
    })
  }

  /** Tasks that wait in site queues, and those whose request is under way. */
  get load(): { readonly waiting: number; readonly inFlight: number; readonly sites: number } {
    return { waiting: this.#scheduler.waiting, inFlight: this.#scheduler.inFlight, sites: this.#scheduler.siteCount }
  }

  /** What is in memory, and what it waits for. */
  view(): FetchView {
    const stalledBy = this.#gate.isAway ? 'state-store' : this.#isHeld ? 'disk' : null
    const windowMessages = this.#consumer.incompleteCount()
    return fetchView(this.#scheduler, this.#options.clock.mono(), { stalledBy, windowMessages })
  }

  /** Where the tasks of a canonical URL are in this worker. */
  find(canonicalUrl: string): readonly TaskView[] {
    return taskViews(this.#scheduler, this.#turns, canonicalUrl, this.#options.clock.mono())
  }

  /** True: no request starts until it is called with false; what came in waits. For a disk that runs full, or an operator. */
  holdRequests(isHeld: boolean): void {
    this.#isHeld = isHeld
    if (isHeld) return
    // Nothing that sites waited through the pause for is their own pace.
    this.#scheduler.resumed()
    this.#pumpSoon()
  }

  /** The pace of a domain was changed while sites may sleep by the old one: they are asked for anew. */
  paceChanged(domain: string): void {
    const now = this.#options.clock.mono()
    for (const { key } of [...this.#scheduler.sites()]) {
      if (key === domain || key.endsWith(`.${domain}`) || domain.endsWith(`.${key}`)) this.#scheduler.wake(key, now)
    }
    this.#pumpSoon()
  }

  protected async onStart(signal: AbortSignal): Promise<void> {
    const { codec, topics } = this.#options
    await Promise.all([this.#publisher.prepare(), this.#outcomes.prepare(), codec.prepare(topics.html, 'Page')])
    this.releases.add('work under way', () => this.#settled())
    this.releases.add('consumer', () => this.#consumer.stop({ mode: 'abort', timeoutMs: 0 }))
    this.releases.add('timers', () => this.#disarm?.())
    this.#consumer.closed.catch((error: unknown) => this.fail(error))
    await this.#consumer.start({ signal })
    const sweep = (): void => {
      for (const old of this.#spiller.takeOld(this.#consumer.bases())) this.#spill(old, 'old-base')
    }
    this.releases.add('sweep', repeated(this.#options.clock, SWEEP_MS, sweep))
    const shareOut = (): void => this.#work(() => this.#shareOut())
    this.releases.add('shares of crawls', repeated(this.#options.clock, CRAWL_WATCH_MS, shareOut))
  }

  protected async onDrain(signal: AbortSignal): Promise<void> {
    this.#isTaking = false
    this.#intake.close()
    const late = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    await Promise.race([this.#settled(), late])
    await this.#consumer.stop({ mode: 'drain', timeoutMs: CONSUMER_DRAIN_MS })
  }

  async #settled(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(this.#working)
  }

  /** Runs work that ends by itself; what it throws stops the worker. */
  #work(run: () => Promise<void>): void {
    const work = run()
      .catch((error: unknown) => {
        if (!isEnding(error, this.aborted.signal)) this.fail(error)
      })
      .finally(() => this.#working.delete(work))
    this.#working.add(work)
  }

  /** The same for one entry: what it throws ends the entry. */
  #workOn(entry: WindowEntry, task: UrlTask | undefined, run: () => Promise<void>): void {
    this.#work(async () => {
      try {
        await run()
      } catch (error) {
        await this.#failed(entry, task, error)
      }
    })
  }

  async #shareOut(): Promise<void> {
    if (this.#isTaking) await this.#crawls.look()
    if (this.#isTaking) for (const tasks of this.#spiller.takeSurplus()) this.#spill(tasks, 'crawl-full')
  }

  #spill(tasks: readonly QueuedTask[], reason: SpillReason, closedMs?: number): void {
    this.#work(async () => {
      let isSettled = false
      try {
        await this.#spiller.spill(tasks, reason, closedMs)
        isSettled = true
      } finally {
        for (const queued of tasks) this.#ended(queued, isSettled)
      }
    })
  }

  /** The attempt is not under way any more. Copies of it are done as well, or have their turn now. */
  #ended(queued: QueuedTask, isSettled: boolean): void {
    const { entry, task } = queued
    this.#handover.over(queued, isSettled)
    const copies = this.#underWay.end(entry, task)
    if (copies.length === 0) return
    if (isSettled) for (const copy of copies) this.#endings.repeat(copy)
    else this.#intake.add(copies)
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
    this.#pumpSoon()
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
    this.#work(() => this.#handover.lost(assigned))
  }

  // --- requests -------------------------------------------------------------------------------------------------------------

  #pumpSoon(): void {
    if (this.#isPumpDue) return
    this.#isPumpDue = true
    queueMicrotask(() => {
      this.#isPumpDue = false
      this.#pump()
    })
  }

  /** Starts what may start; the one timer then waits for the site that is next. */
  #pump(): void {
    this.#disarm?.()
    this.#disarm = undefined
    while (this.#isTaking && !this.#isHeld && !this.#gate.isAway && !this.aborted.signal.aborted) {
      const next = this.#scheduler.next(this.#options.clock.mono())
      if (next.kind === 'start') {
        this.#work(() => this.#run(next.task))
        continue
      }
      if (next.kind === 'wait') this.#disarm = this.#options.clock.timer(Math.ceil(next.ms), () => this.#pump())
      return
    }
  }

  async #run(queued: QueuedTask): Promise<void> {
    const { clock } = this.#options
    const turn = new Turn({ scheduler: this.#scheduler, queued, clock, onChange: () => this.#pumpSoon() })
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
      // A chain that waits for its next hop has begun; a task that waits for its first request has not.
      if (after !== 'under way' || queued.walk.hops === 0) this.#handover.over(queued, after === 'settled')
      if (after !== 'under way') this.#ended(queued, after === 'settled')
    }
  }

  /** Shape: what has become of the attempt. */
  #next(queued: QueuedTask, step: TaskStep, turn: Turn): 'under way' | 'settled' | 'dropped' {
    switch (step.kind) {
      case 'done':
        return 'settled'
      case 'dropped':
        return 'dropped'
      case 'wait': {
        this.#options.observer.emit('LimiterWaited', { reason: step.reason })
        if (step.concurrency !== undefined) this.#scheduler.setConcurrency(queued.key, step.concurrency, this.#options.clock.mono())
        if (!this.#spiller.isLong(step.waitMs)) {
          turn.putBack(step.waitMs, step.reason)
          return 'under way'
        }
        turn.leave()
        this.#spill([queued, ...this.#spiller.takeSite(queued.key, step.waitMs)], spillReasonOf(step.reason), step.waitMs)
        return 'under way'
      }
      case 'hop': {
        const hop = { ...queued, ...step.next, key: this.#options.paceOf(step.next.target).key }
        this.#handover.follows(queued, hop)
        this.#enqueue(hop, 'head')
        this.#pumpSoon()
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
    if (isMillraceError(error) && error.disposition === 'stop' && error.code !== 'INTERNAL') throw error
    await this.#endings.unwritable(entry, task, error)
    return true
  }
}
