import type { PolitenessKey } from '../../kernel/brand.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Observer } from '../../kernel/observe.ts'
import { randomBytes } from '../../kernel/random-bytes.ts'
import { isGone } from '../../machine/process-identity.ts'
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
  OpenCrawl,
  OpenCrawls,
  ReleasedKey,
  ReleasedState,
  RobotsEntry,
  StateStore,
  StoreHealth,
  Validators,
  WaitReason,
  WorkerHeartbeat,
} from '../state-store.ts'
import { AbandonedLeases } from './abandoned-leases.ts'
import { knownHealth, policyArguments, reportArguments } from './limiter-arguments.ts'
import { RedisBudgets } from './redis-budgets.ts'
import { readHealth } from './redis-health.ts'
import { RedisLink } from './redis-link.ts'
import { parseRedisUrl } from './redis-url.ts'
import { shortHash, urlId } from './short-id.ts'
import { packValidators, unpackValidators } from './validators-text.ts'

export interface RedisStoreOptions {
  readonly url: string
  readonly namespace: { readonly clusterId: string; readonly prefix: string }
  readonly clock: Clock
  readonly observer: Observer
  /** Whether an empty start calls for a warm-up. */
  readonly warmUp: boolean
  /** Whether the process of that owner, known to be of this host, has ended; asks the system where not given. */
  readonly isGone?: (owner: Pick<LeaseOwner, 'pid' | 'pidStartedAt'>) => boolean
}

/** Longest list that one script takes: it holds the server, and with it everyone, for about a millisecond. */
const SCRIPT_ITEMS = 512
const VERDICTS: readonly ClaimVerdict[] = ['new', 'own', 'known']

/** The StateStore of many machines. Time is Redis TIME; redis-link.ts says what happens when the server is away. */
export class RedisStore implements StateStore {
  readonly #link: RedisLink
  readonly #observer: Observer
  readonly #prefix: string
  readonly #abandoned: AbandonedLeases
  readonly #budgets: RedisBudgets
  readonly #isGone: (owner: Pick<LeaseOwner, 'pid' | 'pidStartedAt'>) => boolean

  private constructor(link: RedisLink, prefix: string, options: RedisStoreOptions) {
    this.#link = link
    this.#prefix = prefix
    this.#budgets = new RedisBudgets(link, (kind, ...parts) => this.#key(kind, ...parts))
    this.#abandoned = new AbandonedLeases(link, options.clock)
    this.#observer = options.observer
    this.#isGone = options.isGone ?? isGone
  }

  /** Errors: CONFIG_INVALID, CONFIG_UNREADABLE, REDIS_UNREACHABLE, STATE_UNAVAILABLE. */
  static async open(options: RedisStoreOptions): Promise<RedisStore> {
    const link = new RedisLink(parseRedisUrl(options.url), options)
    await link.open()
    try {
      const prefix = `${options.namespace.clusterId}:${options.namespace.prefix}:`
      await link.script('beginDeployment', [`${prefix}birth`], [options.warmUp ? 1 : 0])
      return new RedisStore(link, prefix, options)
    } catch (error) {
      await link.close()
      throw error
    }
  }

  claim(claims: readonly Claim[]): Promise<readonly ClaimVerdict[]> {
    return this.#claims('claimUrls', claims)
  }

  lookUpClaims(claims: readonly Claim[]): Promise<readonly ClaimVerdict[]> {
    return this.#claims('lookUpClaims', claims)
  }

  async #claims(script: 'claimUrls' | 'lookUpClaims', claims: readonly Claim[]): Promise<readonly ClaimVerdict[]> {
    const parts = chunks(claims).map(async (chunk) => {
      const ids = chunk.map((claim) => urlId(claim))
      const keys = chunk.flatMap((claim, index) => [
        this.#key('claims', claim.crawlId),
        this.#key('claim', claim.crawlId, ids[index] ?? ''),
      ])
      const args = chunk.flatMap((claim, index) => [ids[index] ?? '', claim.claimant, claim.ttlMs ?? ''])
      const answer = (await this.#link.script(script, keys, args)) as number[]
      return answer.map((verdict) => VERDICTS[verdict] ?? 'known')
    })
    return (await Promise.all(parts)).flat()
  }

  async markFinished(attempts: readonly FinishedAttempt[], ttlMs: number): Promise<void> {
    // A task that is finished as a whole needs no note of its attempts: either note completes a copy.
    const notes = attempts.map(({ taskId, attempt, final }) => this.#finishedKey(taskId, final ? undefined : attempt))
    await Promise.all(chunks(notes).map((chunk) => this.#link.script('markFinished', chunk, [ttlMs])))
  }

  async noteUnderWay(attempts: readonly AttemptId[], ttlMs: number): Promise<void> {
    const notes = attempts.map((attempt) => this.#underWayKey(attempt))
    await Promise.all(chunks(notes).map((chunk) => this.#link.script('markFinished', chunk, [ttlMs])))
  }

  async isUnderWay(attempts: readonly AttemptId[]): Promise<readonly boolean[]> {
    if (attempts.length === 0) return []
    const keys = attempts.map((attempt) => this.#underWayKey(attempt))
    const found = await this.#link.call('isUnderWay', (redis) => redis.mget(keys))
    return attempts.map((_, index) => (found[index] ?? null) !== null)
  }

  async isFinished(attempts: readonly AttemptId[]): Promise<readonly boolean[]> {
    if (attempts.length === 0) return []
    const keys = attempts.flatMap(({ taskId, attempt }) => [this.#finishedKey(taskId, undefined), this.#finishedKey(taskId, attempt)])
    const found = await this.#link.call('isFinished', (redis) => redis.mget(keys))
    return attempts.map((_, index) => (found[index * 2] ?? null) !== null || (found[index * 2 + 1] ?? null) !== null)
  }

  async accept(crawlId: string, taskIds: readonly string[]): Promise<readonly boolean[]> {
    const keys = this.#crawlKeys(crawlId)
    const parts = chunks(taskIds).map(async (chunk) => (await this.#link.script('acceptTasks', keys, [crawlId, ...chunk])) as number[])
    return (await Promise.all(parts)).flat().map((isFinal) => isFinal === 1)
  }

  async finalise(crawlId: string, taskIds: readonly string[]): Promise<void> {
    await Promise.all(chunks(taskIds).map((chunk) => this.#link.script('finaliseTasks', this.#crawlKeys(crawlId), [crawlId, ...chunk])))
  }

  async crawlCounts(crawlId: string): Promise<CrawlCounts> {
    const answer = await this.#link.script('sizesOf', this.#crawlKeys(crawlId).slice(0, 2), [])
    const [open = 0, final = 0] = answer as number[]
    return { accepted: open + final, final }
  }

  async dropOpen(crawlId: string, { accepted, final }: CrawlCounts): Promise<number> {
    let left = accepted - final
    for (;;) {
      const dropped = await this.#link.script('dropOpenTasks', this.#crawlKeys(crawlId), [crawlId, left, final, SCRIPT_ITEMS])
      if (dropped === 0) return accepted - final - left
      left -= Number(dropped)
    }
  }

  async openCrawls(named: readonly string[], atMost: number): Promise<OpenCrawls> {
    const args = [this.#key('open', ''), atMost, ...named]
    const answer = (await this.#link.script('openCrawls', [this.#key('open-crawls')], args)) as (string | number)[]
    const [count, namedCount, ...rest] = answer
    const found: OpenCrawl[] = []
    for (let index = 0; index < rest.length; index += 2) found.push({ crawlId: String(rest[index]), open: Number(rest[index + 1]) })
    return { count: Number(count), named: found.slice(0, Number(namedCount)), others: found.slice(Number(namedCount)) }
  }

  async forgetEnded(quietMs: number, limit: number): Promise<readonly string[]> {
    const ended = (await this.#link.script('endedCrawls', [this.#key('ended-crawls')], [quietMs, limit])) as string[]
    const gone: string[] = []
    for (const crawlId of ended) if (await this.#forget(crawlId, quietMs)) gone.push(crawlId)
    return gone
  }

  async #forget(crawlId: string, quietMs: number): Promise<boolean> {
    const keys = [this.#key('ended-crawls'), this.#key('claims', crawlId), this.#key('final', crawlId), this.#key('budgets', crawlId)]
    const args = [crawlId, quietMs, ...this.#budgets.placeKeys(''), SCRIPT_ITEMS]
    for (;;) {
      // Part by part; other calls come in between.
      const verdict = await this.#link.script('forgetCrawl', keys, args)
      if (verdict !== 'more') return verdict === 'gone'
    }
  }

  reserve(taskId: string, budgets: readonly Budget[], holdMs: number): Promise<FullBudget | undefined> {
    return this.#budgets.reserve(taskId, budgets, holdMs)
  }

  keepPlaces(taskId: string, budgetIds: readonly string[]): Promise<void> {
    return this.#budgets.keep(taskId, budgetIds)
  }

  unreserve(taskId: string, budgetIds: readonly string[]): Promise<void> {
    return this.#budgets.unreserve(taskId, budgetIds)
  }

  budgetPlaces(budgetId: string): Promise<BudgetPlaces> {
    return this.#budgets.places(budgetId)
  }

  async acquire(request: LimiterRequest): Promise<LimiterAnswer> {
    checkLimiterRequest(request)
    const first = await this.#acquireOnce(request)
    if (first.gone.length === 0) return first.answer
    // The store can't see processes, but the machine that asks sees its own.
    const ended = await this.#link.script(
      'endGoneLeases',
      first.gone.map(({ key }) => this.#paceKey(key)),
      first.gone.map(({ leaseId }) => leaseId),
    )
    this.#observer.emit('DeadLeasesEnded', { count: Number(ended), host: request.owner.host })
    return (await this.#acquireOnce(request)).answer
  }

  async release(leaseId: string, keys: readonly ReleasedKey[], report?: AnswerReport): Promise<readonly ReleasedState[]> {
    const paceKeys = keys.map(({ key }) => this.#paceKey(key))
    const args = [leaseId, ...reportArguments(report), ...keys.map(({ crawlDelayMs }) => crawlDelayMs)]
    const states = (await this.#link.script('releaseLease', paceKeys, args)) as (string | number)[][]
    return states.map((state) => ({ ...knownHealth(state), change: state[6] as ReleasedState['change'] }))
  }

  async startAgain(leaseId: string, keys: readonly LimiterKey[]): Promise<number> {
    const paceKeys = keys.map(({ key }) => this.#paceKey(key))
    return Number(await this.#link.script('startLeaseAgain', paceKeys, [leaseId, ...policyArguments(keys)]))
  }

  async reportLate(leaseId: string, keys: readonly PolitenessKey[], lateMs: number): Promise<void> {
    const paceKeys = keys.map((key) => this.#paceKey(key))
    await this.#link.script('reportLateStart', paceKeys, [leaseId, lateMs])
  }

  async reset(key: PolitenessKey, resetAt: number): Promise<void> {
    await this.#link.script('resetKey', [this.#paceKey(key)], [resetAt])
  }

  async reassert(key: PolitenessKey, known: KnownHealth, resetAt: number): Promise<void> {
    const { backOffMs, isAsked, allowed, rateFactor, trips, parkedMs } = known
    const args = [backOffMs, isAsked ? 1 : 0, allowed ?? -1, rateFactor, trips, parkedMs, resetAt]
    await this.#link.script('reassertKey', [this.#paceKey(key)], args)
  }

  async limiterState(key: PolitenessKey): Promise<LimiterState> {
    const reply = (await this.#link.script('limiterState', [this.#paceKey(key)], [])) as (string | number)[]
    const [leases = 0, nextMs = 0, latencyMs = 0, failingMs = 0, atOnce = -1, ...known] = reply
    return {
      leases: Number(leases),
      nextMs: Number(nextMs),
      latencyMs: Number(latencyMs),
      failingMs: Number(failingMs),
      atOnce: Number(atOnce) < 0 ? null : Number(atOnce),
      ...knownHealth(known),
    }
  }

  async spillSlot(key: PolitenessKey, localWaitMs: number, intervalMs: number): Promise<number> {
    return (await this.#link.script('spillSlot', [this.#key('spill', key)], [localWaitMs, intervalMs])) as number
  }

  async readRobots(origin: string): Promise<RobotsEntry | undefined> {
    const found = await this.#link.call('readRobots', (redis) => redis.get(this.#key('robots', origin)))
    return found === null ? undefined : (JSON.parse(found) as RobotsEntry)
  }

  async writeRobots(origin: string, entry: RobotsEntry, ttlMs: number): Promise<void> {
    const { verdict, body, status, fetchedAt } = entry
    const json = JSON.stringify({ verdict, body, status, fetchedAt })
    await this.#link.call('writeRobots', (redis) => redis.set(this.#key('robots', origin), json, 'PX', Math.max(1, Math.ceil(ttlMs))))
  }

  async readValidators(canonicalUrl: string): Promise<Validators | undefined> {
    const found = await this.#link.call('readValidators', (redis) => redis.get(this.#key('validators', shortHash(canonicalUrl))))
    return found === null ? undefined : unpackValidators(found)
  }

  async writeValidators(canonicalUrl: string, validators: Validators | undefined, ttlMs: number): Promise<void> {
    const key = this.#key('validators', shortHash(canonicalUrl))
    await this.#link.call('writeValidators', (redis): Promise<unknown> => {
      if (validators === undefined) return redis.del(key)
      return redis.set(key, packValidators(validators), 'PX', Math.max(1, Math.ceil(ttlMs)))
    })
  }

  async readValue(name: string): Promise<string | undefined> {
    const found = await this.#link.call('readValue', (redis) => redis.get(this.#key('value', name)))
    return found ?? undefined
  }

  async writeValue(name: string, value: string): Promise<void> {
    await this.#link.call('writeValue', (redis) => redis.set(this.#key('value', name), value))
  }

  async writeValueOnce(name: string, value: string): Promise<boolean> {
    return (await this.#link.call('writeValueOnce', (redis) => redis.set(this.#key('value', name), value, 'NX'))) === 'OK'
  }

  async readTimed(name: string): Promise<string | undefined> {
    const found = await this.#link.call('readTimed', (redis) => redis.get(this.#key('timed', name)))
    return found ?? undefined
  }

  async writeTimed(name: string, value: string, ttlMs: number): Promise<void> {
    await this.#link.call('writeTimed', (redis) => redis.set(this.#key('timed', name), value, 'PX', Math.max(1, Math.ceil(ttlMs))))
  }

  async heartbeat(worker: WorkerHeartbeat, ttlMs: number): Promise<void> {
    const keys = [this.#key('worker', worker.workerId), this.#key('workers')]
    await this.#link.script('announceWorker', keys, [worker.workerId, JSON.stringify(worker), ttlMs])
  }

  async removeWorker(workerId: string): Promise<void> {
    await this.#link.script('removeWorker', [this.#key('worker', workerId), this.#key('workers')], [workerId])
  }

  async workers(): Promise<readonly WorkerHeartbeat[]> {
    const live = (await this.#link.script('listWorkers', [this.#key('workers')], [this.#key('worker', '')])) as string[]
    return live.map((json) => JSON.parse(json) as WorkerHeartbeat)
  }

  health(): Promise<StoreHealth> {
    return readHealth(this.#link)
  }

  close(): Promise<void> {
    this.#abandoned.stop()
    return this.#link.close()
  }

  async #acquireOnce(request: LimiterRequest): Promise<{ answer: LimiterAnswer; gone: { key: PolitenessKey; leaseId: string }[] }> {
    const { keys, owner } = request
    const leaseId = randomBytes(12).toString('hex')
    const asker = [owner.workerId, owner.host, owner.pid, owner.pidStartedAt]
    const args = [
      leaseId,
      request.leaseMs,
      request.countsForRate ? 1 : 0,
      ...asker,
      request.aheadMs ?? 0,
      request.resetAt ?? 0,
      ...policyArguments(keys),
    ]
    const paceKeys = keys.map(({ key }) => this.#paceKey(key))
    const reply = await this.#askForLease(leaseId, paceKeys, args)
    const [kind, inForce, ms, born, reason, which, ...candidates] = reply
    const concurrency = Number(inForce)
    const { server } = this.#link
    const memory = { birth: String(born), ...(server === undefined ? {} : { server }) }
    if (kind === 'lease') return { answer: { kind: 'lease', leaseId, startInMs: Number(ms), concurrency, ...memory }, gone: [] }
    const keyAt = (number: unknown): PolitenessKey => keys[Number(number) - 1]?.key ?? ('' as PolitenessKey)
    const gone: { key: PolitenessKey; leaseId: string }[] = []
    for (let index = 0; index < candidates.length; index += 4) {
      const [number, id, pid, pidStartedAt] = candidates.slice(index, index + 4)
      if (this.#isGone({ pid: Number(pid), pidStartedAt: String(pidStartedAt) })) gone.push({ key: keyAt(number), leaseId: String(id) })
    }
    return { answer: { kind: 'wait', waitMs: Number(ms), reason: reason as WaitReason, key: keyAt(which), concurrency, ...memory }, gone }
  }

  /** A lease that comes after we have given up on it belongs to nobody: it is ended as soon as the server answers again. */
  async #askForLease(leaseId: string, paceKeys: readonly string[], args: readonly (string | number)[]): Promise<(string | number)[]> {
    let hasLeft = false
    const onSend = (): void => {
      hasLeft = true
    }
    try {
      return (await this.#link.script('acquireLease', [this.#key('birth'), ...paceKeys], args, onSend)) as (string | number)[]
    } catch (error) {
      const ids = paceKeys.map(() => leaseId)
      // A call that never left gave no lease; whoever waits for the store makes one each second.
      if (hasLeft) this.#abandoned.end(paceKeys, ids)
      throw error
    }
  }

  #key(kind: string, ...parts: readonly string[]): string {
    return `${this.#prefix}${[kind, ...parts].join(':')}`
  }

  #paceKey(key: PolitenessKey): string {
    return this.#key('pace', key)
  }

  #underWayKey({ taskId, attempt }: AttemptId): string {
    return this.#key('under-way', `${attempt}`, taskId)
  }

  #finishedKey(taskId: string, attempt: number | undefined): string {
    return attempt === undefined ? this.#key('done', taskId) : this.#key('tried', `${attempt}`, taskId)
  }

  #crawlKeys(crawlId: string): string[] {
    return [this.#key('open', crawlId), this.#key('final', crawlId), this.#key('open-crawls'), this.#key('ended-crawls')]
  }
}

const chunks = <T>(items: readonly T[]): readonly (readonly T[])[] => chunksOf(items, SCRIPT_ITEMS)
