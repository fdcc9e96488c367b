import { LEAST_RATE_PER_SECOND, MOST_CRAWL_DELAY_MS } from '../kernel/pace-bounds.ts'

/** What `site:DOMAIN` on the control topic holds: the live override of a domain and of all hosts below it. */
export interface SiteOverride {
  readonly paused?: boolean
  readonly ratePerSecond?: number
  readonly burst?: number
  readonly concurrency?: number
  readonly crawlDelayMs?: number
  readonly reset?: SiteReset
  /** When its pace became faster last. It stays when the pace is taken back: names of spill clocks hold it. */
  readonly faster?: Said
  /** When it was resumed last. */
  readonly resumed?: Said
}

interface Said {
  /** Epoch ms of who said so. */
  readonly at: number
}

/** What the answers of a site had taught was forgotten. Resets are told apart by their time. */
export interface SiteReset extends Said {
  /**
   * What the limiter held then of what the domain itself is paced by; the hosts below it are not known. Not given where somebody else has
   * written it, who had nothing to tell.
   */
  readonly lifted?: LiftedHealth
}

/** As the state store gives it. */
interface LiftedHealth {
  readonly backOffMs: number
  readonly isAsked: boolean
  readonly allowed: number | null
  readonly rateFactor: number
  readonly trips: number
  readonly parkedMs: number
}

/**
 * Reads what somebody wrote to control; a value that makes no sense is left out, so that it can't make a site faster than configured.
 * Shape: undefined where nothing is left. Total.
 */
export function parseSiteOverride(payload: unknown): SiteOverride | undefined {
  if (!isObject(payload)) return undefined
  const { paused, ratePerSecond, burst, concurrency, crawlDelayMs, reset, faster, resumed } = payload
  const override: SiteOverride = {
    ...(typeof paused === 'boolean' ? { paused } : {}),
    ...(isPositive(ratePerSecond) ? { ratePerSecond: Math.max(ratePerSecond, LEAST_RATE_PER_SECOND) } : {}),
    ...(isPositive(burst) && Number.isSafeInteger(burst) ? { burst } : {}),
    ...(isPositive(concurrency) && Number.isSafeInteger(concurrency) ? { concurrency } : {}),
    ...(isPositive(crawlDelayMs) || crawlDelayMs === 0 ? { crawlDelayMs: Math.min(crawlDelayMs, MOST_CRAWL_DELAY_MS) } : {}),
    ...(isSaid(reset) ? { reset: { at: reset.at, ...(isLifted(reset.lifted) ? { lifted: reset.lifted } : {}) } } : {}),
    ...(isSaid(faster) ? { faster: { at: faster.at } } : {}),
    ...(isSaid(resumed) ? { resumed: { at: resumed.at } } : {}),
  }
  return Object.keys(override).length === 0 ? undefined : override
}

function isSaid(value: unknown): value is Said & { readonly lifted?: unknown } {
  return isObject(value) && isPositive(value.at)
}

function isLifted(value: unknown): value is LiftedHealth {
  if (!isObject(value) || typeof value.isAsked !== 'boolean') return false
  const { backOffMs, allowed, rateFactor, trips, parkedMs } = value
  return [backOffMs, rateFactor, trips, parkedMs, ...(allowed === null ? [] : [allowed])].every(Number.isFinite)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

function isPositive(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value)
}
