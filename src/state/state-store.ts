import type { PolitenessKey } from '../kernel/brand.ts'

/**
 * What the workers of one deployment know together. Kafka stays the truth of what is to be done. A store that lost its data is not
 * filled again from the topics: URLs that were seen are fetched again where a link leads to them, and budgets and paces count anew.
 *
 * Two implementations, one contract suite: Redis for many machines, LMDB in the data folder for one. Every method is one atomic
 * step. Every key lies under (clusterId, topics.prefix). Time is the store's own (Redis TIME; the monotonic clock on LMDB): callers
 * give and get durations in ms, never points in time, unless a field says epoch ms.
 *
 * Errors: STATE_UNAVAILABLE when the store does not answer (fetching pauses, nothing is guessed), STATE_BROKEN when its file can't be used,
 * REDIS_REFUSED when its server refuses for good.
 */
export interface StateStore {
  // --- the seen set -------------------------------------------------------------------------------------------------------
  /** One verdict per claim, in order. The first claimant of (crawlId, canonicalUrl, round) keeps it. */
  claim(claims: readonly Claim[]): Promise<readonly ClaimVerdict[]>
  /** What `claim` would answer to each alone; claims nothing. */
  lookUpClaims(claims: readonly Claim[]): Promise<readonly ClaimVerdict[]>

  // --- repeats ------------------------------------------------------------------------------------------------------------
  /** Remembers attempts (and with `final` the whole task) as finished, for `ttlMs`. */
  markFinished(attempts: readonly FinishedAttempt[], ttlMs: number): Promise<void>
  /** True where that attempt, or the task as a whole, is finished. In order. */
  isFinished(attempts: readonly AttemptId[]): Promise<readonly boolean[]>
  /**
   * Notes for `ttlMs` that these attempts are on the wire: written by a worker for those that it can't give up when their partition goes
   * to another one, so that the next owner does not ask again. Their end is `markFinished`.
   */
  noteUnderWay(attempts: readonly AttemptId[], ttlMs: number): Promise<void>
  /** True where such a note is. In order. */
  isUnderWay(attempts: readonly AttemptId[]): Promise<readonly boolean[]>

  // --- crawls -------------------------------------------------------------------------------------------------------------
  /** Adds tasks to the accepted set of a crawl. Adding one twice changes nothing. True, in order, for those that are final already. */
  accept(crawlId: string, taskIds: readonly string[]): Promise<readonly boolean[]>
  /** Adds tasks to the final set of a crawl (and to accepted, where it was missed). */
  finalise(crawlId: string, taskIds: readonly string[]): Promise<void>
  crawlCounts(crawlId: string): Promise<CrawlCounts>
  /**
   * Drops the open tasks of a crawl, where its counts are still those: nothing was accepted and nothing became final since they were read.
   * In parts, as `forgetEnded`; a task that is accepted meanwhile ends it. Returns how many are gone; one of them may be accepted anew.
   */
  dropOpen(crawlId: string, counts: CrawlCounts): Promise<number>
  /**
   * Crawls with accepted tasks that are not final: those of `named`, and at most `atMost` others. Where there are more, which ones says
   * nothing about them, and `count` may be an estimate. Cost: O(named + atMost), however many are open or have ended.
   */
  openCrawls(named: readonly string[], atMost: number): Promise<OpenCrawls>
  /**
   * Drops what is kept of crawls that have ended: all of their tasks are final, and no task was added for `quietMs`. That is their claims
   * without a time to live, both sets, and the budgets that name them. The one that ended first goes first, at most `limit`. Not one
   * step: it works in parts, so that a crawl of millions of pages does not block the store, and leaves a crawl alone that goes on
   * meanwhile; called again it goes on where it stopped. Returns the crawls that are gone.
   */
  forgetEnded(quietMs: number, limit: number): Promise<readonly string[]>

  // --- page budgets -------------------------------------------------------------------------------------------------------
  /**
   * Reserves a place for the task in all the budgets, or in none. The places are held until they are kept or given back; the same task may
   * reserve again and gets the same answer. Returns a budget that is full, one that is so for good before the others; undefined: none is.
   *
   * `holdMs`: the holds of a budget lapse together where nobody has reserved in it for so long. Their tasks may be lost, and others would
   * wait for ever for their places; these then count as kept.
   */
  reserve(taskId: string, budgets: readonly Budget[], holdMs: number): Promise<FullBudget | undefined>
  /** The task has its page: its places are taken for good. */
  keepPlaces(taskId: string, budgetIds: readonly string[]): Promise<void>
  /** Gives the places of the task back. */
  unreserve(taskId: string, budgetIds: readonly string[]): Promise<void>
  budgetPlaces(budgetId: string): Promise<BudgetPlaces>

  // --- limiter ------------------------------------------------------------------------------------------------------------
  /** Admits one request under all the keys together, or says how long to wait. Never refuses. */
  acquire(request: LimiterRequest): Promise<LimiterAnswer>
  /**
   * Ends a lease; the crawl delay of each key counts from the end of the request (not after a lease that did not count for the rate). An
   * unknown (expired) lease is no error. `report`: what came of the request; every key learns from it in the same step (site-health.ts), so
   * that nothing starts between the end of the request and the back-off that it asks for. Safe to repeat: it teaches once, and with
   * `endedAgoMs` counts from the same moment. Shape: one state per key, in order.
   */
  release(leaseId: string, keys: readonly ReleasedKey[], report?: AnswerReport): Promise<readonly ReleasedState[]>
  /**
   * The request did not leave at the start that its lease named, and could leave now: gives it another start. That is now where no request
   * of the keys was given one since, else the next one that they all have free. Returns ms from now; the lease counts from there. A lease
   * that is not known, or does not count for the rate, waits for nothing.
   */
  startAgain(leaseId: string, keys: readonly LimiterKey[]): Promise<number>
  /** The request left only so long after the start that its lease named: the next one counts from there. */
  reportLate(leaseId: string, keys: readonly PolitenessKey[], lateMs: number): Promise<void>
  /**
   * Forgets what answers have taught of the key (back-off, breaker, slow-down), unless it knows of this reset, or a later one. Leases, rate
   * and crawl delay stay. `resetAt`: epoch ms of who gave it, to tell resets apart; never compared with the time of the store.
   */
  reset(key: PolitenessKey, resetAt: number): Promise<void>
  /**
   * What this worker knew of a key before the store was lost: of each the stricter one counts from now on. `resetAt`: the last reset that
   * the worker knew of when it learnt that (0: none); where the store knows of a later one it was about what is over.
   */
  reassert(key: PolitenessKey, known: KnownHealth, resetAt: number): Promise<void>
  /** What is remembered of a key: for `explain` and for re-asserting after an empty start of the store. */
  limiterState(key: PolitenessKey): Promise<LimiterState>

  /**
   * Start time for a task that will wait in a delay topic: slot = max(now + localWaitMs, clock of the key) + intervalMs, and the
   * clock moves there. Returns ms from now. So a domain of a million URLs is read once per slot, not over and over.
   */
  spillSlot(key: PolitenessKey, localWaitMs: number, intervalMs: number): Promise<number>

  // --- robots.txt ---------------------------------------------------------------------------------------------------------
  readRobots(origin: string): Promise<RobotsEntry | undefined>
  writeRobots(origin: string, entry: RobotsEntry, ttlMs: number): Promise<void>

  // --- validators ---------------------------------------------------------------------------------------------------------
  /** What is known of the newest stored page of a URL, for a conditional request. */
  readValidators(canonicalUrl: string): Promise<Validators | undefined>
  /** Replaces it, for `ttlMs`; undefined: forgets it. */
  writeValidators(canonicalUrl: string, validators: Validators | undefined, ttlMs: number): Promise<void>

  // --- overrides, workers -------------------------------------------------------------------------------------------------
  /** Small shared values by name (JSON), without a time to live: the definition of a version, how fast the last replay was. */
  readValue(name: string): Promise<string | undefined>
  writeValue(name: string, value: string): Promise<void>
  /** Writes only where no value is; true when this call wrote it. */
  writeValueOnce(name: string, value: string): Promise<boolean>
  /** The same for a time; its names are apart from those of values that stay. */
  readTimed(name: string): Promise<string | undefined>
  writeTimed(name: string, value: string, ttlMs: number): Promise<void>

  /** Announces a worker for `ttlMs`. */
  heartbeat(worker: WorkerHeartbeat, ttlMs: number): Promise<void>
  removeWorker(workerId: string): Promise<void>
  workers(): Promise<readonly WorkerHeartbeat[]>

  /** Facts of the store for `doctor`. */
  health(): Promise<StoreHealth>
  /**
   * Gives the connection or the file back, at most 2 s after the call; what was asked for before is finished. Calls afterwards are refused.
   */
  close(): Promise<void>
}

export interface StoreHealth {
  readonly kind: 'redis' | 'lmdb'
  /** Of the Redis server, or of the file format. */
  readonly version: string
  /** URL without its password, or path. */
  readonly location: string
  /** What outlives the server: `aof`, `rdb`, `none`, or `unknown` where the server does not say; LMDB is a `file`. */
  readonly persistence: 'aof' | 'rdb' | 'none' | 'unknown' | 'file'
  /** Redis: must be `noeviction`, else what was claimed may be forgotten. */
  readonly maxmemoryPolicy?: string
  /** Bytes taken by the file, or by the whole server. */
  readonly sizeBytes: number
}

export interface Claim {
  readonly crawlId: string
  readonly canonicalUrl: string
  readonly round: number
  /** The fetchId of the page for a link, which stays the same where the page is put back; the taskId for a produced task. */
  readonly claimant: string
  /** How long the claim lives; undefined: as long as the crawl. */
  readonly ttlMs?: number
}

/** `new`: claimed now. `own`: this claimant had it (a redelivery). `known`: somebody else has it. */
export type ClaimVerdict = 'new' | 'own' | 'known'

export interface AttemptId {
  readonly taskId: string
  readonly attempt: number
}

export interface FinishedAttempt extends AttemptId {
  readonly final: boolean
}

export interface CrawlCounts {
  readonly accepted: number
  readonly final: number
}

export interface OpenCrawl {
  readonly crawlId: string
  /** Accepted and not final. */
  readonly open: number
}

export interface OpenCrawls {
  /** All of them. */
  readonly count: number
  /** Those that were asked for and are open. */
  readonly named: readonly OpenCrawl[]
  readonly others: readonly OpenCrawl[]
}

export interface Budget {
  readonly id: string
  readonly limit: number
  /** Crawl whose end is also the end of this budget. */
  readonly crawlId?: string
}

export interface FullBudget {
  readonly id: string
  /** Enough of its places are held that one may become free; false: it stays full. */
  readonly isHeld: boolean
}

export interface BudgetPlaces {
  /** Held and kept. */
  readonly taken: number
  /** By tasks that may give them back. */
  readonly held: number
}

export interface LimiterRequest {
  readonly keys: readonly LimiterKey[]
  /** The lease ends by itself after this; the crawl delay then counts from its expiry. */
  readonly leaseMs: number
  /** Worker that asks; leases of dead processes of this machine count as ended when found. */
  readonly owner: LeaseOwner
  /** False for robots.txt: it takes a place and obeys the back-off, but takes no turn and waits for no crawl delay. */
  readonly countsForRate: boolean
  /** A start that is due within this is given out now, with the time that is left; 0 where not given. */
  readonly aheadMs?: number
  /** The last reset that the asker knows of, for all the keys: as `reset` does it, in the same step. 0 where not given: none. */
  readonly resetAt?: number
}

export interface ReleasedKey {
  readonly key: PolitenessKey
  readonly crawlDelayMs: number
}

/** Why no answer came, or none that is one. connect: no connection. timeout: a connection, and then nothing. server: 5xx. */
export type FailureKind = 'connect' | 'timeout' | 'server'

/** What came of a request, as the site's pace is concerned. */
export interface AnswerReport {
  /** success: it answered, whatever it said of the page. overload: 429, 503. failure: see `failure`. none: it says nothing of the site. */
  readonly kind: 'success' | 'overload' | 'failure' | 'none'
  /** With `failure`, and with an overload that is a failure of the server too. */
  readonly failure?: FailureKind
  /** Until the first byte of the answer, without the time for a connection. */
  readonly latencyMs?: number
  /** The site is left alone for so long. */
  readonly backOffMs?: number
  /** True: the site named the time, as `Retry-After`. */
  readonly isAsked?: boolean
  /** The request left so long after the start that the lease named; the next one counts from there. */
  readonly sentLateMs?: number
  /** The request ended so long ago: its release comes late. 0 where not given. */
  readonly endedAgoMs?: number
  /** The last reset that the worker knew of when it asked: one that the store does not know was before this answer. 0 where not given. */
  readonly resetAt?: number
  readonly rules: HealthRules
}

export interface HealthRules {
  /** False: answers change neither concurrency nor rate. */
  readonly isAdaptive: boolean
  /** Failed connections in a row that open the breaker; 0: nothing does. */
  readonly breakerFailures: number
  readonly firstParkMs: number
  readonly maxParkMs: number
}

/** What answers have taught about a key. */
export interface KnownHealth {
  readonly backOffMs: number
  /** The site named the end of the back-off. */
  readonly isAsked: boolean
  /** Requests at the same time; null: as many as the policy has. */
  readonly allowed: number | null
  /** Share of the rate. */
  readonly rateFactor: number
  /** Openings of the breaker since the last answer; 0: it is closed. */
  readonly trips: number
  /** ms until the breaker is half open; 0: it is, or it is closed. */
  readonly parkedMs: number
}

export interface ReleasedState extends KnownHealth {
  readonly change: 'none' | 'slowed' | 'opened' | 'closed'
}

export interface LimiterKey {
  readonly key: PolitenessKey
  readonly ratePerSecond: number
  /** Requests that may start at once after idling; 1 spaces them all. */
  readonly burst: number
  readonly concurrency: number
  /** From the end of one request to the start of the next. */
  readonly crawlDelayMs: number
}

export interface LeaseOwner {
  readonly workerId: string
  /** The machine, and the set of processes in it, within which `pid` is unique (machine/process-identity.ts). */
  readonly host: string
  readonly pid: number
  /** Start of the process as the system tells it, so that a reused pid is not taken for the old process. */
  readonly pidStartedAt: string
}

export type WaitReason = 'rate' | 'concurrency' | 'crawl-delay' | 'back-off' | 'retry-after' | 'breaker' | 'warm-up'

export type LimiterAnswer =
  | {
      readonly kind: 'lease'
      readonly leaseId: string
      /** The request may leave after this, at most `aheadMs`; 0: now. */
      readonly startInMs: number
      /** Requests at the same time that are allowed now, at most those of the policy. */
      readonly concurrency: number
      readonly birth: StoreBirth
      readonly server?: StoreServer
    }
  | {
      readonly kind: 'wait'
      readonly waitMs: number
      readonly reason: WaitReason
      readonly key: PolitenessKey
      readonly concurrency: number
      readonly birth: StoreBirth
      readonly server?: StoreServer
    }

/**
 * Tells one memory of the store from the next: another one means that it was lost meanwhile. Where an empty start calls for it, no key is
 * asked before one crawl delay has passed since (`warm-up`).
 */
export type StoreBirth = string

/**
 * Tells one server, and one start of it, from the next: the memory of another one may be the same some moments ago (a failover, a
 * snapshot). Not given where there is none, or it does not tell.
 */
export type StoreServer = string

export interface LimiterState extends KnownHealth {
  /** Requests in flight. */
  readonly leases: number
  /** ms until a request may start by rate and by crawl delay; 0: now. */
  readonly nextMs: number
  /** Slow mean of the time to the first byte; 0: not known. */
  readonly latencyMs: number
  /** Since the first failure after the last answer; 0: the last request was answered. */
  readonly failingMs: number
  /** Requests at the same time that its answers leave, whole ones; null: as many as the policy has. `allowed` is what it grows from. */
  readonly atOnce: number | null
}

export interface RobotsEntry {
  /** parsed: `body` holds rules; absent: 4xx, all is allowed; unreachable: 5xx or no answer, which tells people, and decides nothing. */
  readonly verdict: 'parsed' | 'absent' | 'unreachable'
  /** Text of the file, at most 512 KiB; what is written now holds the lines that are understood alone, at most 64 KiB of JSON. */
  readonly body: string
  readonly status: number | null
  /** Epoch ms. */
  readonly fetchedAt: number
}

export interface Validators {
  /** Of the URL that answered and the headers it was asked with: they hold for the same request alone. */
  readonly requestHash: string
  /** As received. */
  readonly etag: string | null
  readonly lastModified: string | null
  /** Of the decoded body. */
  readonly bodySha256: string
  /** Epoch ms of the stored page, which is also the time of its message: with the canonical URL as key it is found by this. */
  readonly fetchedAt: number
  /** Epoch ms at which the site last said that the page is the same. */
  readonly checkedAt: number
}

export interface WorkerHeartbeat {
  readonly workerId: string
  readonly host: string
  readonly pid: number
  readonly pidStartedAt: string
  readonly stage: string
  readonly groupId: string
  /** Epoch ms. */
  readonly startedAt: number
  /** Extractor name to version, of extract workers. */
  readonly extractors: Readonly<Record<string, number>>
  /** What its process waits for beside Kafka and the state store (`registry`, `blobs`); a worker of an earlier version does not tell. */
  readonly waitsFor?: readonly string[]
}
