import { NO_PROXY } from '../message/header-names.ts'

/**
 * When a task leaves its window for a delay topic. A window holds back the commit of its partition, so nothing may stay in it for
 * long: neither for a site that is slow nor for one that has too much.
 */
export interface SpillLimits {
  /** Longest wait that is worth a place in the window, ms. */
  readonly maxWaitMs: number
  /** The same in a window that is crowded while there are free places for requests, ms. */
  readonly maxCrowdedWaitMs: number
  /** Tasks that wait in a window from which on it is crowded. */
  readonly crowded: number
  /** Tasks of one site in one window. */
  readonly maxPerWindow: number
  /** A base that is not on the wire is moved on after this, ms. */
  readonly maxBaseAgeMs: number
}

export const SPILL_LIMITS: SpillLimits = {
  maxWaitMs: 30_000,
  maxCrowdedWaitMs: 3_000,
  crowded: 500,
  maxPerWindow: 64,
  maxBaseAgeMs: 120_000,
}

/** Of a site that is closed as a whole, until a moment; nothing is asked of it before. */
const CLOSURES = ['paused', 'parked', 'retry-after', 'back-off', NO_PROXY] as const

export type SpillReason = 'site-full' | 'crawl-full' | 'long-wait' | 'old-base' | (typeof CLOSURES)[number]

/** Why the tasks of a site leave, by what it waits for. */
export function spillReasonOf(waitReason: string): SpillReason {
  switch (waitReason) {
    case 'paused':
    case 'retry-after':
    case 'back-off':
    case NO_PROXY:
      return waitReason
    case 'breaker':
      return 'parked'
    default:
      return 'long-wait'
  }
}

export function isClosure(reason: SpillReason): boolean {
  return (CLOSURES as readonly SpillReason[]).includes(reason)
}

/**
 * What stands in `millrace-reason`: why the task waits, where that is more than its turn at the site, which comes sooner at a faster pace.
 */
export function delayReason(reason: SpillReason): string {
  return isClosure(reason) || reason === 'crawl-full' ? reason : 'spill'
}

export interface QueueView {
  /** Tasks of the site that wait, in any window. */
  readonly waiting: number
  /** Of those, tasks of the window of the new one. */
  readonly heldInWindow: number
  /** ms until the site may be asked again. */
  readonly wakeInMs: number
  /** Between two starts of the site, ms. */
  readonly intervalMs: number
  /**
   * The window is about half full, and it is not for want of places that its tasks wait: their sites are at their paces. Read on no
   * further, it would keep sites waiting that stand behind them.
   */
  readonly isCrowded: boolean
}

/** How long a task that is put to the end would wait. Units: ms. */
export function expectedWaitMs(view: Pick<QueueView, 'waiting' | 'wakeInMs' | 'intervalMs'>): number {
  return Math.max(0, view.wakeInMs) + view.waiting * view.intervalMs
}

/** Why a new task is better off in a delay topic; undefined: it is queued. */
export function spillReason(view: QueueView, limits: SpillLimits = SPILL_LIMITS): SpillReason | undefined {
  if (view.heldInWindow >= limits.maxPerWindow) return 'site-full'
  return expectedWaitMs(view) > (view.isCrowded ? limits.maxCrowdedWaitMs : limits.maxWaitMs) ? 'long-wait' : undefined
}

/**
 * Times from now for `count` tasks of one site, of which the last was given `lastMs` by the spill clock; ms, in order. One step of the
 * clock by `count` intervals holds their slots, so they are spread over it.
 */
export function spreadSlots(lastMs: number, count: number, intervalMs: number): number[] {
  return Array.from({ length: count }, (_, index) => Math.max(0, lastMs - (count - 1 - index) * intervalMs))
}
