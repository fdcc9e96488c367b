import { nextToRead } from '../../kafka/admin.ts'
import { delayTopics, laneTopics } from '../../message/topics.ts'
import { extractGroupsOf } from '../groups/extract-groups.ts'
import { isReplaying, liveLag } from '../groups/live-lag.ts'
import { holdingUp, openTransactionPlace } from '../groups/open-transactions.ts'
import { lookUnlessAway } from '../runtime/look-unless-away.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { CrawlBacklog, type DelayedTask } from './crawl-backlog.ts'
import { dropOpenTasks } from './open-tasks.ts'

/** Why a crawl whose tasks are all final has not ended: pages on html, of other crawls too, that have still to be read. */
export interface UnreadPages {
  /** Of the extract group that is furthest behind. */
  readonly extract: number
  /** Whose links are not followed yet. */
  readonly frontier: number
  /** A replay in place of an extract group has work left. */
  readonly isReplaying: boolean
  /** Where open transactions hold up the readers; left out where there are none. */
  readonly openTransactions?: readonly string[]
}

export type CrawlState =
  /** `away`: why it can't be looked at whether it has ended; the counts are the last that were seen. */
  | { readonly kind: 'running'; readonly accepted: number; readonly final: number; readonly unread?: UnreadPages; readonly away?: string }
  | { readonly kind: 'ended' }
  /**
   * What is left is due later than somebody wants to wait, or waits for a proxy to work: so many tasks, or messages where it is all that is
   * queued, and some of them.
   */
  | { readonly kind: 'waiting'; readonly count: number; readonly tasks: readonly DelayedTask[] }

/**
 * Knows when a crawl has ended: every accepted task has a final outcome, then frontier and extract have committed past what was then
 * the end of html, and then no task was accepted meanwhile. The end of html is its high watermark: the last stable offset would hide
 * pages behind an open transaction.
 *
 * The store counts a task when it is produced by `run` or read by fetch: of what `produce` has written to the topics it knows nothing yet.
 * So a crawl that may be queued has not ended while a task of it lies on a topic. Nor has one whose store has lost its data, which is seen
 * by the count: it never falls else, but where tasks are dropped that were counted and lie on no topic.
 */
export class CrawlEnd {
  readonly #runtime: Runtime
  /** Undefined: all that is queued, whatever crawl it belongs to. */
  readonly #crawlId: string | undefined
  readonly #backlog: CrawlBacklog
  readonly #maxWaitMs: number
  readonly #extractGroups: readonly string[]
  #htmlEnd: Map<number, bigint> | undefined
  #unchangedSinceMono = 0
  #seen = ''
  #last = { accepted: 0, final: 0 }
  #mostAccepted = 0
  #dropped = 0
  #mayBeQueued: boolean

  /** @param options.mayBeQueued - tasks of the crawl may lie on the topics that the store has not counted */
  constructor(
    runtime: Runtime,
    options: { crawlId?: string; maxWaitMs: number; extractGroups?: readonly string[]; mayBeQueued?: boolean },
  ) {
    this.#runtime = runtime
    this.#crawlId = options.crawlId
    this.#backlog = new CrawlBacklog(runtime, options.crawlId)
    this.#maxWaitMs = options.maxWaitMs
    this.#mayBeQueued = options.mayBeQueued ?? false
    // Without a word all groups that are configured have to come to the end.
    this.#extractGroups = options.extractGroups ?? extractGroupsOf(runtime)
  }

  /**
   * Tasks that the store had counted, the most that it knew of, and how many of them were dropped since they were open and lay on no topic.
   */
  get counted(): { readonly accepted: number; readonly dropped: number } {
    return { accepted: this.#mostAccepted, dropped: this.#dropped }
  }

  /**
   * What can't be looked at now, since the broker, the store, the registry or the leader of a partition is away, goes on, and says why.
   * Stages that wait for the same say when they give up; where a partition has no leader they go on with the others, and so it goes on too.
   */
  async check(): Promise<CrawlState> {
    let away = ''
    const state = await lookUnlessAway(
      this.#runtime,
      () => this.#look(),
      ({ message }) => {
        away = message
      },
    )
    if (state !== undefined) return state
    this.#htmlEnd = undefined
    return { kind: 'running', ...this.#last, away }
  }

  async #look(): Promise<CrawlState> {
    const { accepted, final } = await this.#counts()
    this.#last = { accepted, final }
    if (this.#crawlId !== undefined && accepted < this.#mostAccepted) this.#mayBeQueued = true
    this.#mostAccepted = Math.max(this.#mostAccepted, accepted)
    const running = { kind: 'running', accepted, final } as const
    if (accepted > final) {
      this.#htmlEnd = undefined
      if (!(await this.#isOnlyLater(accepted, final))) return running
      return { kind: 'waiting', count: accepted - final, tasks: this.#backlog.told }
    }
    if (this.#mayBeQueued && (await this.#backlog.look(Number.POSITIVE_INFINITY)) === 'due') {
      this.#htmlEnd = undefined
      return running
    }
    this.#htmlEnd ??= await this.#runtime.admin.endOffsets(this.#runtime.topics.html, 'read_uncommitted')
    const unread = await this.#unreadPages(this.#htmlEnd)
    if (unread !== undefined) return { ...running, unread }
    const after = await this.#counts()
    if (after.accepted === after.final && after.accepted === accepted) return { kind: 'ended' }
    this.#htmlEnd = undefined
    return running
  }

  /** Tasks of the crawl, or messages of the lanes and delay topics, that are taken and finished. */
  async #counts(): Promise<{ accepted: number; final: number }> {
    if (this.#crawlId !== undefined) return (await this.#runtime.state()).crawlCounts(this.#crawlId)
    return this.#topicCounts()
  }

  async #topicCounts(): Promise<{ accepted: number; final: number }> {
    const { topics, groups, admin } = this.#runtime
    const lanes = laneTopics(topics)
    const lags = [...(await admin.lag(groups.fetch, lanes)), ...(await admin.lag(groups.delay, delayTopics(topics)))]
    const accepted = lags.reduce((sum, { low, end }) => sum + end - low, 0n)
    const open = lags.reduce((sum, { lag }) => sum + lag, 0n)
    return { accepted: Number(accepted), final: Number(accepted - open) }
  }

  /** Shape: undefined where all readers are past `end`. */
  async #unreadPages(end: ReadonlyMap<number, bigint>): Promise<UnreadPages | undefined> {
    const { topics, groups, admin } = this.#runtime
    const unread = { extract: 0, frontier: 0, isReplaying: false }
    const open = new Set<string>()
    for (const group of [groups.frontier, ...this.#extractGroups]) {
      const lags = await admin.lag(group, [topics.html])
      // Its offset may stand at the end while live pages have their turn.
      unread.isReplaying ||= lags.some(isReplaying)
      for (const each of await holdingUp(this.#runtime, liveLag(lags))) open.add(openTransactionPlace(each))
      let pages = 0n
      for (const lag of liveLag(lags)) {
        const target = end.get(lag.partition) ?? 0n
        const at = nextToRead(lag)
        // A partition without messages needs no commit.
        if (target > at) pages += target - at
      }
      const stage = group === groups.frontier ? 'frontier' : 'extract'
      unread[stage] = Math.max(unread[stage], Number(pages))
    }
    const isUnread = unread.extract > 0 || unread.frontier > 0 || unread.isReplaying
    if (!isUnread) return undefined
    return open.size === 0 ? unread : { ...unread, openTransactions: [...open] }
  }

  /** Looked at only when nothing has moved for a while: it searches the lanes and delay topics. */
  async #isOnlyLater(accepted: number, final: number): Promise<boolean> {
    const { clock } = this.#runtime
    const now = clock.mono()
    const seen = `${accepted} ${final}`
    if (seen !== this.#seen) {
      this.#seen = seen
      this.#unchangedSinceMono = now
      return false
    }
    if (now - this.#unchangedSinceMono < QUIET_MS) return false
    this.#unchangedSinceMono = now
    const queued = await this.#backlog.look(clock.now() + this.#maxWaitMs)
    if (queued === 'nothing' && this.#crawlId !== undefined)
      this.#dropped += await dropOpenTasks(this.#runtime, this.#crawlId, { accepted, final })
    return queued === 'later'
  }
}

const QUIET_MS = 3_000
