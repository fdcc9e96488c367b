import type { PolitenessKey } from '../../kernel/brand.ts'
import type { Observer } from '../../kernel/observe.ts'
import { randomBytes } from '../../kernel/random-bytes.ts'
import { bootId, isGone } from '../../machine/process-identity.ts'
import { chunksOf } from '../chunks.ts'
import { checkLimiterRequest } from '../limiter-rules.ts'
import type {
  AnswerReport,
  AttemptId,
  Budget,
  BudgetPlaces,
  Claim,
  ClaimVerdict,
  CrawlCounts,
  FinishedAttempt,
  FullBudget,
  KnownHealth,
  LeaseOwner,
  LimiterAnswer,
  LimiterKey,
  LimiterRequest,
  LimiterState,
  OpenCrawls,
  ReleasedKey,
  ReleasedState,
  RobotsEntry,
  StateStore,
  StoreHealth,
  Validators,
  WorkerHeartbeat,
} from '../state-store.ts'
import { BudgetSteps } from './budget-steps.ts'
import { ClaimSteps } from './claim-steps.ts'
import { CrawlSteps } from './crawl-steps.ts'
import type { Timed } from './file-time.ts'
import { Keys } from './keys.ts'
import { LimiterSteps } from './limiter-steps.ts'
import { FORMAT, LmdbFile, type LmdbFileOptions } from './lmdb-file.ts'
import { SharedSteps } from './shared-steps.ts'
import { Sweep } from './sweep.ts'

export interface LmdbStoreOptions extends Omit<LmdbFileOptions, 'bootId'> {
  readonly folder: string
  readonly namespace: { readonly clusterId: string; readonly prefix: string }
  /** Whether an empty start calls for a warm-up: not where the whole deployment is new, since then nobody was asked before. */
  readonly warmUp: boolean
  /** Id of this start of the machine; the system's where not given. */
  readonly bootId?: string
  /** Whether the process of that owner, known to be of this host, has ended; asks the system where not given. */
  readonly isGone?: (owner: LeaseOwner) => boolean
}

/** Longest list that one step takes; longer ones are several steps, so that no call holds the file for long. */
const STEP_ITEMS = 512

/** The StateStore of one machine: a file in the data folder, shared by its processes (lmdb-file.ts says what that guarantees). */
export class LmdbStore implements StateStore {
  readonly #file: LmdbFile
  readonly #observer: Observer
  readonly #claims: ClaimSteps
  readonly #crawls: CrawlSteps
  readonly #budgets: BudgetSteps
  readonly #limiter: LimiterSteps
  readonly #shared: SharedSteps

  private constructor(file: LmdbFile, keys: Keys, bornAt: Timed | undefined, options: LmdbStoreOptions) {
    const sweep = new Sweep(file, keys)
    this.#file = file
    this.#observer = options.observer
    this.#claims = new ClaimSteps(file, keys, sweep)
    this.#crawls = new CrawlSteps(file, keys)
    this.#budgets = new BudgetSteps(file, keys)
    this.#limiter = new LimiterSteps({ file, keys, sweep, bornAt, isGone: options.isGone ?? isGone })
    this.#shared = new SharedSteps(file, keys, sweep)
  }

  /** Errors: STATE_BROKEN, DISK_FULL, CONFIG_UNREADABLE. */
  static async open(options: LmdbStoreOptions): Promise<LmdbStore> {
    const file = await LmdbFile.open(options.folder, { ...options, bootId: options.bootId ?? bootId() })
    try {
      const keys = new Keys(options.namespace.clusterId, options.namespace.prefix)
      const bornAt = await file.step((now) => readBirth(file, keys, options.warmUp, now))
      return new LmdbStore(file, keys, bornAt, options)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Facts of a file that is there, whatever deployments have their state in it. Errors: as of `open`. */
  static async healthOf({ folder, ...options }: Omit<LmdbStoreOptions, 'namespace' | 'warmUp'>): Promise<StoreHealth> {
    const file = await LmdbFile.open(folder, { ...options, bootId: options.bootId ?? bootId() })
    try {
      return healthOf(file)
    } finally {
      await file.close()
    }
  }

  async claim(claims: readonly Claim[]): Promise<readonly ClaimVerdict[]> {
    const verdicts = await Promise.all(chunks(claims).map((chunk) => this.#file.step((now) => this.#claims.claim(chunk, now))))
    return verdicts.flat()
  }

  async lookUpClaims(claims: readonly Claim[]): Promise<readonly ClaimVerdict[]> {
    return this.#file.read((now) => claims.map((claim) => this.#claims.lookUp(claim, now)))
  }

  async markFinished(attempts: readonly FinishedAttempt[], ttlMs: number): Promise<void> {
    await Promise.all(chunks(attempts).map((chunk) => this.#file.step((now) => this.#claims.markFinished(chunk, ttlMs, now))))
  }

  async noteUnderWay(attempts: readonly AttemptId[], ttlMs: number): Promise<void> {
    await Promise.all(chunks(attempts).map((chunk) => this.#file.step((now) => this.#claims.noteUnderWay(chunk, ttlMs, now))))
  }

  async isUnderWay(attempts: readonly AttemptId[]): Promise<readonly boolean[]> {
    return this.#file.read((now) => attempts.map((attempt) => this.#claims.isUnderWay(attempt, now)))
  }

  async isFinished(attempts: readonly AttemptId[]): Promise<readonly boolean[]> {
    return this.#file.read((now) => attempts.map(({ taskId, attempt }) => this.#claims.isFinished(taskId, attempt, now)))
  }

  async accept(crawlId: string, taskIds: readonly string[]): Promise<readonly boolean[]> {
    const parts = chunks(taskIds).map((chunk) => this.#file.step(() => this.#crawls.accept(crawlId, chunk)))
    return (await Promise.all(parts)).flat()
  }

  async finalise(crawlId: string, taskIds: readonly string[]): Promise<void> {
    await Promise.all(chunks(taskIds).map((chunk) => this.#file.step(() => this.#crawls.finalise(crawlId, chunk))))
  }

  async crawlCounts(crawlId: string): Promise<CrawlCounts> {
    return this.#file.read(() => this.#crawls.counts(crawlId))
  }

  async openCrawls(named: readonly string[], atMost: number): Promise<OpenCrawls> {
    return this.#file.read(() => this.#crawls.openCrawls(named, atMost))
  }

  async dropOpen(crawlId: string, { accepted, final }: CrawlCounts): Promise<number> {
    let left = accepted
    for (;;) {
      const counts = { accepted: left, final }
      const dropped = await this.#file.step(() => this.#crawls.dropOpen(crawlId, counts, STEP_ITEMS))
      if (dropped === 0) return accepted - left
      left -= dropped
    }
  }

  async forgetEnded(quietMs: number, limit: number): Promise<readonly string[]> {
    const ended = this.#file.read(() => this.#crawls.ended(quietMs, limit))
    const gone: string[] = []
    for (const crawlId of ended) if (await this.#forget(crawlId, quietMs)) gone.push(crawlId)
    return gone
  }

  async #forget(crawlId: string, quietMs: number): Promise<boolean> {
    for (;;) {
      // Part by part; other steps come in between.
      const verdict = await this.#file.step(() => this.#crawls.forget(crawlId, quietMs, STEP_ITEMS))
      if (verdict !== 'more') return verdict === 'gone'
    }
  }

  reserve(taskId: string, budgets: readonly Budget[], holdMs: number): Promise<FullBudget | undefined> {
    return this.#file.step(() => this.#budgets.reserve(taskId, budgets, holdMs))
  }

  keepPlaces(taskId: string, budgetIds: readonly string[]): Promise<void> {
    return this.#file.step(() => this.#budgets.keep(taskId, budgetIds))
  }

  unreserve(taskId: string, budgetIds: readonly string[]): Promise<void> {
    return this.#file.step(() => this.#budgets.unreserve(taskId, budgetIds))
  }

  async budgetPlaces(budgetId: string): Promise<BudgetPlaces> {
    return this.#file.read(() => this.#budgets.places(budgetId))
  }

  async acquire(request: LimiterRequest): Promise<LimiterAnswer> {
    checkLimiterRequest(request)
    const leaseId = randomBytes(12).toString('hex')
    const { answer, ended } = await this.#file.step((now) => this.#limiter.acquire(request, leaseId, now))
    if (ended > 0) this.#observer.emit('DeadLeasesEnded', { count: ended, host: request.owner.host })
    return answer
  }

  release(leaseId: string, keys: readonly ReleasedKey[], report?: AnswerReport): Promise<readonly ReleasedState[]> {
    return this.#file.step((now) => this.#limiter.release(leaseId, keys, report, now))
  }

  startAgain(leaseId: string, keys: readonly LimiterKey[]): Promise<number> {
    return this.#file.step((now) => this.#limiter.startAgain(leaseId, keys, now))
  }

  reportLate(leaseId: string, keys: readonly PolitenessKey[], lateMs: number): Promise<void> {
    return this.#file.step((now) => this.#limiter.reportLate(leaseId, keys, lateMs, now))
  }

  reset(key: PolitenessKey, resetAt: number): Promise<void> {
    return this.#file.step((now) => this.#limiter.reset(key, resetAt, now))
  }

  reassert(key: PolitenessKey, known: KnownHealth, resetAt: number): Promise<void> {
    return this.#file.step((now) => this.#limiter.reassert(key, known, resetAt, now))
  }

  async limiterState(key: PolitenessKey): Promise<LimiterState> {
    return this.#file.read((now) => this.#limiter.limiterState(key, now))
  }

  spillSlot(key: PolitenessKey, localWaitMs: number, intervalMs: number): Promise<number> {
    return this.#file.step((now) => this.#limiter.spillSlot(key, localWaitMs, intervalMs, now))
  }

  async readRobots(origin: string): Promise<RobotsEntry | undefined> {
    return this.#file.read((now) => this.#shared.readRobots(origin, now))
  }

  writeRobots(origin: string, entry: RobotsEntry, ttlMs: number): Promise<void> {
    return this.#file.step((now) => this.#shared.writeRobots(origin, entry, ttlMs, now))
  }

  async readValidators(canonicalUrl: string): Promise<Validators | undefined> {
    return this.#file.read((now) => this.#shared.readValidators(canonicalUrl, now))
  }

  writeValidators(canonicalUrl: string, validators: Validators | undefined, ttlMs: number): Promise<void> {
    return this.#file.step((now) => this.#shared.writeValidators(canonicalUrl, validators, ttlMs, now))
  }

  async readValue(name: string): Promise<string | undefined> {
    return this.#file.read(() => this.#shared.readValue(name))
  }

  writeValue(name: string, value: string): Promise<void> {
    return this.#file.step(() => this.#shared.writeValue(name, value))
  }

  async readTimed(name: string): Promise<string | undefined> {
    return this.#file.read((now) => this.#shared.readTimed(name, now))
  }

  writeTimed(name: string, value: string, ttlMs: number): Promise<void> {
    return this.#file.step((now) => this.#shared.writeTimed(name, value, ttlMs, now))
  }

  writeValueOnce(name: string, value: string): Promise<boolean> {
    return this.#file.step(() => this.#shared.writeValueOnce(name, value))
  }

  heartbeat(worker: WorkerHeartbeat, ttlMs: number): Promise<void> {
    return this.#file.step((now) => this.#shared.heartbeat(worker, ttlMs, now))
  }

  removeWorker(workerId: string): Promise<void> {
    return this.#file.step(() => this.#shared.removeWorker(workerId))
  }

  async workers(): Promise<readonly WorkerHeartbeat[]> {
    return this.#file.read((now) => this.#shared.workers(now))
  }

  async health(): Promise<StoreHealth> {
    return healthOf(this.#file)
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}

function healthOf(file: LmdbFile): StoreHealth {
  const sizeBytes = file.read(() => file.sizeBytes())
  return { kind: 'lmdb', version: `${FORMAT}`, location: file.folder, persistence: 'file', sizeBytes }
}

/**
 * Finds the namespace in the file, or begins it. Only one of several processes begins it. Shape: undefined where nothing has to warm up.
 */
function readBirth(file: LmdbFile, keys: Keys, warmUp: boolean, now: number): Timed | undefined {
  const key = keys.kind('meta')
  const found = file.get<{ readonly bornAt: Timed | null }>(key)
  if (found !== undefined) return found.bornAt ?? undefined
  const bornAt = warmUp ? file.time.timed(now, 0) : undefined
  file.put(key, { bornAt: bornAt ?? null })
  return bornAt
}

const chunks = <T>(items: readonly T[]): readonly (readonly T[])[] => chunksOf(items, STEP_ITEMS)
