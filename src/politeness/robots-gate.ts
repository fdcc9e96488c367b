import type { Clock } from '../kernel/clock.ts'
import type { Observer } from '../kernel/observe.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import { registrableDomainOfHost } from '../url/registrable-domain.ts'
import { parseRobotsInTurns, robotsCrawlDelayMs, robotsVerdict, textFor, understoodText } from './robots.ts'
import { type RememberedRobots, RobotsMemory } from './robots-memory.ts'

/** A robots.txt as it is kept for all workers; the state store holds this shape. */
export interface KeptRobots {
  /**
   * parsed: `body` holds the lines that were understood, as latin1. absent: 4xx, all is allowed. unreachable: 5xx or no answer; it tells
   * people, and decides nothing.
   */
  readonly verdict: 'parsed' | 'absent' | 'unreachable'
  /** Of `unreachable`: why it is, for people. */
  readonly body: string
  readonly status: number | null
  /** Epoch ms. */
  readonly fetchedAt: number
}

export interface RobotsCache {
  read(origin: string): Promise<KeptRobots | undefined>
  write(origin: string, entry: KeptRobots, ttlMs: number): Promise<void>
}

/** What asking a site for its robots.txt gave. wait: the site has no place free now. */
export type RobotsFetch<Wait> =
  | { readonly kind: 'answer'; readonly status: number; readonly body: Buffer }
  | { readonly kind: 'failure'; readonly reason: string | null; readonly detail: string }
  | Wait

/**
 * Nothing is known of the file. `reason`: why the site could not be asked for it; null where it, or a host that it led to, answered or
 * failed.
 */
export interface Unreachable {
  readonly kind: 'unreachable'
  readonly reason: string | null
  readonly detail: string
}

export type RobotsDecision<Wait> =
  | {
      readonly kind: 'allowed'
      readonly verdict: 'allowed' | 'absent' | 'ignored'
      readonly rule: string | null
      readonly crawlDelayMs: number
    }
  | { readonly kind: 'refused'; readonly rule: string | null }
  | Unreachable
  | Wait

export interface RobotsGateOptions<Wait> {
  /** `ignore` asks nobody. */
  readonly mode: 'obey' | 'ignore'
  /** Lower case; see `productToken`. */
  readonly token: string
  readonly cache: RobotsCache
  /** One walk to the file, redirects included (RFC 9309 asks for five hops), on a place of the site. */
  readonly ask: (robotsUrl: URL, signal: AbortSignal) => Promise<RobotsFetch<Wait>>
  readonly clock: Clock
  readonly observer: Observer
}

/** What is known of an origin, or why nothing is. `no-file` stands for a file that nobody may ask for. */
type Found<Wait> = RememberedRobots | Unreachable | Wait | 'no-file'

/** A file is asked for again after this; until `LAST_GOOD_MS` the old one stands in when the site does not answer. */
const FRESH_MS = 12 * 3_600_000
const LAST_GOOD_MS = 24 * 3_600_000
/** Clocks of workers differ by less. A file from further ahead was fetched nobody knows when. */
const CLOCK_SKEW_MS = 600_000
/** A site that did not answer is not asked again by the tasks that wait beside this one. */
const UNREACHABLE_MS = 5_000
const UNREACHABLE_KEPT = 5_000
/**
 * Of a file as the store holds it, in JSON: a domain that answers for every name could fill the store with ten thousand files. Where it
 * takes more, what speaks to others is left out; whose own rules take more keeps them in the memory of the worker that has asked for them,
 * which has all hosts of the domain.
 */
const MAX_KEPT_BYTES = 65_536
const TOO_LARGE = `its rules take more than ${MAX_KEPT_BYTES / 1_024} KiB: known to the worker alone that asked for them`
/**
 * Of all files of a registrable domain in a day, as the worker knows that has them: a name of its own for each page costs a site nothing.
 */
const MAX_DOMAIN_BYTES = 16_777_216
const TOO_MANY = `the files of its domain take more than ${MAX_DOMAIN_BYTES / 1_048_576} MiB a day: known to the worker alone that asked for it`
/** Domains whose bytes are counted. */
const DOMAINS_COUNTED = 10_000
/** Characters: it may hold all the names of a certificate. */
const MAX_DETAIL = 1_000
const MEMORY = { maxOrigins: 10_000, maxBodyBytes: 16_777_216 } as const

/**
 * What robots.txt of an origin says, asked before the first page of it and kept for all workers.
 *
 * 2xx: its rules. 4xx but 429, and a redirect that leads nowhere: no rules, all is allowed. 429, 5xx, a wall and no answer: the last good
 * copy for a day, else nothing of the origin is fetched and the tasks try again later. Source: RFC 9309 section 2.3.1.
 */
export class RobotsGate<Wait extends { readonly kind: 'wait' }> {
  readonly #options: RobotsGateOptions<Wait>
  readonly #known = new RobotsMemory(MEMORY)
  readonly #unreachable = new RecentMap<string, { readonly failure: Unreachable; readonly untilMono: number }>(UNREACHABLE_KEPT)
  readonly #asking = new Map<string, Promise<Found<Wait>>>()
  readonly #keptBytes = new RecentMap<string, { readonly bytes: number; readonly untilMono: number }>(DOMAINS_COUNTED)

  constructor(options: RobotsGateOptions<Wait>) {
    this.#options = options
  }

  /** Errors: those of the cache; the reason of the signal. */
  async check(url: URL, signal: AbortSignal): Promise<RobotsDecision<Wait>> {
    if (this.#options.mode === 'ignore') return { kind: 'allowed', verdict: 'ignored', rule: null, crawlDelayMs: 0 }
    const found = await this.#rulesOf(url.origin, signal)
    if (found === 'no-file') return ABSENT
    if ('kind' in found) return found
    if (!found.isPresent) return ABSENT
    const { token } = this.#options
    const verdict = robotsVerdict(found.rules, token, url.pathname + url.search)
    if (!verdict.allowed) return { kind: 'refused', rule: verdict.rule ?? null }
    return { kind: 'allowed', verdict: 'allowed', rule: verdict.rule ?? null, crawlDelayMs: robotsCrawlDelayMs(found.rules, token) ?? 0 }
  }

  #rulesOf(origin: string, signal: AbortSignal): Promise<Found<Wait>> {
    const known = this.#known.get(origin)
    if (known !== undefined && this.#age(known) < FRESH_MS) return Promise.resolve(known)
    const asking = this.#asking.get(origin)
    if (asking !== undefined) return asking
    const answer = this.#find(origin, signal).finally(() => this.#asking.delete(origin))
    this.#asking.set(origin, answer)
    return answer
  }

  async #find(origin: string, signal: AbortSignal): Promise<Found<Wait>> {
    const { cache, ask, clock, observer } = this.#options
    const kept = await cache.read(origin)
    if (kept !== undefined && kept.verdict !== 'unreachable' && this.#age(kept) < FRESH_MS)
      return this.#remember(origin, kept, fileOf(kept))
    const silent = this.#unreachable.get(origin)
    if (silent !== undefined && clock.mono() < silent.untilMono) return (await this.#lastGood(origin, kept)) ?? silent.failure
    const answer = await ask(new URL('/robots.txt', origin), signal)
    if (answer.kind === 'wait') return answer
    // The address of the site may not be asked at all: its tasks meet the same wall, and say so.
    if (answer.kind === 'failure' && answer.reason === 'address-refused') return 'no-file'
    const verdict = answer.kind === 'answer' ? verdictOf(answer.status) : undefined
    if (answer.kind === 'answer' && verdict !== undefined) {
      const { status } = answer
      const file = verdict === 'parsed' ? answer.body : Buffer.alloc(0)
      const fetchedAt = clock.now()
      const remembered = await this.#remember(origin, { verdict, fetchedAt }, file)
      const whole = await understoodText(file, () => clock.nextTurn())
      // What stood there before is not true any more.
      const texts = [whole, textFor(remembered.rules, this.#options.token)]
      const toKeep = this.#toKeep(origin, verdict, { texts, replacedBytes: bytesOf(kept?.body ?? '') })
      await cache.write(origin, { ...toKeep, status, fetchedAt }, LAST_GOOD_MS)
      // A page that says "not found" with status 200 allows everything; how often that happens is worth knowing.
      const isEmpty = file.length > 0 && remembered.rules.understoodLines === 0
      observer.emit('RobotsRead', { verdict: isEmpty ? 'no-rules' : verdict, origin })
      return remembered
    }
    const failure: Unreachable =
      answer.kind === 'failure'
        ? { kind: 'unreachable', reason: answer.reason, detail: answer.detail }
        : { kind: 'unreachable', reason: null, detail: `robots.txt of ${origin} answered with status ${answer.status}` }
    observer.emit('RobotsRead', { verdict: 'unreachable', origin, detail: failure.detail })
    this.#unreachable.set(origin, { failure, untilMono: clock.mono() + UNREACHABLE_MS })
    const lastGood = await this.#lastGood(origin, kept)
    if (lastGood !== undefined) return lastGood
    const status = answer.kind === 'answer' ? answer.status : null
    const body = failure.detail.slice(0, MAX_DETAIL)
    await cache.write(origin, { verdict: 'unreachable', body, status, fetchedAt: clock.now() }, LAST_GOOD_MS)
    return failure
  }

  /** What the store is told: the first of the texts that is short enough, where there is room for it. */
  #toKeep(
    origin: string,
    verdict: KeptRobots['verdict'],
    { texts, replacedBytes }: { readonly texts: readonly string[]; readonly replacedBytes: number },
  ): Pick<KeptRobots, 'verdict' | 'body'> {
    const body = texts.find((text) => bytesOf(text) <= MAX_KEPT_BYTES)
    if (body === undefined) return { verdict: 'unreachable', body: TOO_LARGE }
    return this.#hasRoom(origin, bytesOf(body), replacedBytes) ? { verdict, body } : { verdict: 'unreachable', body: TOO_MANY }
  }

  /** Counts a file that is to be kept in the place of a former one; false where those of its domain take too much already. */
  #hasRoom(origin: string, bytes: number, replacedBytes: number): boolean {
    const domain = registrableDomainOfHost(new URL(origin).hostname)
    const mono = this.#options.clock.mono()
    const counted = this.#keptBytes.get(domain)
    const { bytes: before, untilMono } =
      counted !== undefined && mono < counted.untilMono ? counted : { bytes: 0, untilMono: mono + LAST_GOOD_MS }
    const others = Math.max(0, before - replacedBytes)
    if (others + bytes > MAX_DOMAIN_BYTES) return false
    this.#keptBytes.set(domain, { bytes: others + bytes, untilMono })
    return true
  }

  /** That of the store, or a newer one that is not kept there. */
  async #lastGood(origin: string, kept: KeptRobots | undefined): Promise<RememberedRobots | undefined> {
    const known = this.#known.get(origin)
    if (known !== undefined && known.fetchedAt >= (kept?.fetchedAt ?? 0) && this.#age(known) < LAST_GOOD_MS) return known
    if (kept === undefined || kept.verdict === 'unreachable' || this.#age(kept) >= LAST_GOOD_MS) return undefined
    return this.#remember(origin, kept, fileOf(kept))
  }

  async #remember(origin: string, { verdict, fetchedAt }: Omit<KeptRobots, 'body' | 'status'>, file: Buffer): Promise<RememberedRobots> {
    const { clock } = this.#options
    const known = this.#known.get(origin)
    if (known?.fetchedAt === fetchedAt && known.isPresent === (verdict === 'parsed')) return known
    const rules = await parseRobotsInTurns(file, () => clock.nextTurn())
    const remembered = { rules, isPresent: verdict === 'parsed', fetchedAt }
    this.#known.set(origin, remembered, file.length)
    return remembered
  }

  /** Units: ms. Infinite where nobody can know. */
  #age({ fetchedAt }: { readonly fetchedAt: number }): number {
    const ageMs = this.#options.clock.now() - fetchedAt
    return ageMs < -CLOCK_SKEW_MS ? Number.POSITIVE_INFINITY : ageMs
  }
}

const ABSENT = { kind: 'allowed', verdict: 'absent', rule: null, crawlDelayMs: 0 } as const

/** Undefined: the answer counts as no answer. */
function verdictOf(status: number): 'parsed' | 'absent' | undefined {
  if (status >= 200 && status < 300) return 'parsed'
  // What is left of 3xx are redirects without a target, or with too many steps.
  return status >= 300 && status < 500 && status !== 429 ? 'absent' : undefined
}

/** Latin1 loses no octet: rules are compared as octets. */
function fileOf({ body }: KeptRobots): Buffer {
  return Buffer.from(body, 'latin1')
}

/** As the store holds it. */
function bytesOf(text: string): number {
  return Buffer.byteLength(JSON.stringify(text))
}
