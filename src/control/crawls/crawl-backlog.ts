import type { KafkaMessage } from '../../kafka/message.ts'
import type { MessagePlace } from '../../kernel/brand.ts'
import type { UrlTask } from '../../message/generated/types.ts'
import { HEADER, headerValue, NO_PLACE, NO_PROXY } from '../../message/header-names.ts'
import { type WaitingBounds, waitingBounds } from '../groups/waiting-bounds.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { BacklogSearch, type Queued, taskOfQueued } from './backlog-search.ts'

/** A task in a delay topic. */
export interface DelayedTask {
  readonly taskId: string
  readonly crawlId: string | null
  readonly url: string
  /** Epoch ms. */
  readonly dueAt: number
  readonly reason: string
}

/** Of what waits for long, those that are told one by one. */
const MOST_TOLD = 100

/**
 * What of one crawl, or of all, lies on lanes and delay topics and is not finished. Whoever waits for the end asks several times a second,
 * and of its own tasks or beside them millions may wait: each message is looked at once, however often one asks, and the first one that is
 * due settles the question. What is passed over is not kept, but for when the first of it is due.
 */
export class CrawlBacklog {
  readonly #runtime: Runtime
  readonly #crawlId: string | undefined
  readonly #search: BacklogSearch
  /** What the last look stopped at: as long as it waits there is nothing to look for. */
  #found: Omit<Queued, 'message'> | undefined
  /** Epoch ms at which the first of those is due that were passed over as due later; undefined where none was. */
  #laterFrom: number | undefined
  /** Of those that wait for others the one that is due first: it counts where nothing else waits. */
  #forOthers: { readonly at: MessagePlace; readonly task: DelayedTask } | undefined
  /** The first of those that are due later, by task; the newest copy. */
  readonly #told = new Map<string, { readonly at: MessagePlace; readonly task: DelayedTask }>()

  constructor(runtime: Runtime, crawlId: string | undefined) {
    this.#runtime = runtime
    this.#crawlId = crawlId
    this.#search = new BacklogSearch(runtime, crawlId === undefined ? undefined : [crawlId])
  }

  /** Of what the last look found to be due later, the first in the order of the logs. */
  get told(): readonly DelayedTask[] {
    const told = [...this.#told.values()].map(({ task }) => task)
    return told.length === 0 && this.#forOthers !== undefined ? [this.#forOthers.task] : told
  }

  /**
   * `due`: something waits that is due by this time, or lies behind an open transaction, where nobody can see. `later`: all that waits is
   * due later, or waits for what is, or for a proxy to work. What is known to be finished does not wait, though a slow site of another
   * crawl holds committed offsets back. Units: epoch ms.
   */
  async look(by: number): Promise<'due' | 'later' | 'nothing'> {
    // Before the ends of the logs: what is finished by now has its copy, if it has one, before them.
    const bounds = await waitingBounds(this.#runtime)
    const found = this.#found !== undefined && bounds.isWaiting(this.#found.at) ? this.#found : undefined
    const isRewound = this.#search.isRewound(bounds)
    if (!isRewound && found !== undefined && found.dueAt <= by) return 'due'
    const isLaterDue = this.#laterFrom !== undefined && this.#laterFrom <= by
    const isOtherGone = this.#laterFrom === undefined && this.#forOthers !== undefined && !bounds.isWaiting(this.#forOthers.at)
    if (isRewound || found !== undefined || isLaterDue || isOtherGone) this.#lookAnew()
    this.#found = undefined
    const hadTold = this.#told.size > 0
    for (const [taskId, { at }] of this.#told) if (!bounds.isWaiting(at)) this.#told.delete(taskId)
    // All of them have ended before they were due, and maybe the rest with them.
    if (hadTold && this.#told.size === 0) this.#lookAnew()
    for await (const queued of this.#search.next(bounds)) {
      if (queued === 'hidden' || (await this.#meets(queued, bounds, by)) === 'due') return 'due'
    }
    if (this.#laterFrom !== undefined) return 'later'
    if (this.#forOthers === undefined) return 'nothing'
    return this.#forOthers.task.dueAt <= by ? 'due' : 'later'
  }

  async #meets({ at, message, dueAt }: Queued, bounds: WaitingBounds, by: number): Promise<'due' | 'later' | 'nothing'> {
    if (!bounds.isWaiting(at)) return 'nothing'
    // What others do is what it waits for: when it is due it only asks again.
    if (dueAt > 0 && reasonOf(message) === NO_PLACE) return this.#meetsOneForOthers({ at, message, dueAt })
    // When it is due a proxy is tried again, which says nothing of when one works: where all are dead there is always a next try.
    const startsAt = dueAt > 0 && reasonOf(message) === NO_PROXY ? Number.POSITIVE_INFINITY : dueAt
    const isLater = startsAt > by
    // Of what is due later only what is told is decoded.
    if (!isLater || this.#told.size < MOST_TOLD) {
      const task = await taskOfQueued(this.#runtime, message)
      if (this.#crawlId !== undefined && task?.crawlId !== this.#crawlId) return 'nothing'
      if (isLater && task !== undefined) this.#told.set(task.taskId, { at, task: delayedTask(task, message, dueAt) })
    }
    if (isLater) this.#laterFrom = Math.min(this.#laterFrom ?? startsAt, startsAt)
    else this.#found = { at, dueAt: startsAt }
    return isLater ? 'later' : 'due'
  }

  async #meetsOneForOthers({ at, message, dueAt }: Queued): Promise<'nothing'> {
    if (this.#forOthers !== undefined && this.#forOthers.task.dueAt <= dueAt) return 'nothing'
    const task = await taskOfQueued(this.#runtime, message)
    if (task !== undefined && (this.#crawlId === undefined || task.crawlId === this.#crawlId))
      this.#forOthers = { at, task: delayedTask(task, message, dueAt) }
    return 'nothing'
  }

  #lookAnew(): void {
    this.#search.restart()
    this.#laterFrom = undefined
    this.#forOthers = undefined
    this.#told.clear()
  }
}

function reasonOf({ headers }: KafkaMessage): string {
  return headerValue(headers, HEADER.reason) ?? ''
}

function delayedTask({ taskId, crawlId, url }: UrlTask, message: KafkaMessage, dueAt: number): DelayedTask {
  return { taskId, crawlId, url, dueAt, reason: reasonOf(message) }
}
