import type { LayoutSource } from '../kafka/layout.ts'
import type { TaskPublisher } from '../kafka/task-publisher.ts'
import type { WindowEntry } from '../kafka/window-entry.ts'
import { isMillraceError, type MillraceError } from '../kernel/errors.ts'
import { grouped } from '../kernel/grouped.ts'
import type { OutcomeKind, UrlTask } from '../message/generated/types.ts'
import { HEADER, headerValue, NOT_BEFORE } from '../message/header-names.ts'
import { linkTaskId } from '../message/ids.ts'
import { readTask, type TaskSource } from '../message/read-task.ts'
import type { Claim, StateStore } from '../state/state-store.ts'
import type { StoreGate } from './store-gate.ts'

/** What becomes of an entry before anything is asked of a site. */
export type IntakeVerdict =
  | { readonly kind: 'ready'; readonly entry: WindowEntry; readonly task: UrlTask; readonly url: URL }
  /** No task can be read from it. */
  | { readonly kind: 'malformed'; readonly entry: WindowEntry; readonly error: MillraceError }
  /** It ends without a request. `detail`: for people, where it is a failure. */
  | {
      readonly kind: 'ended'
      readonly entry: WindowEntry
      readonly task: UrlTask
      readonly end: EndWithoutRequest
      readonly detail?: string
    }
  /** A copy of what is under way: whoever holds it gives it back. */
  | { readonly kind: 'held-back'; readonly entry: WindowEntry }
  /** A copy of what is finished: no request, no outcome. */
  | { readonly kind: 'repeat'; readonly entry: WindowEntry }
  /** It lies in a wrong partition. */
  | { readonly kind: 'moved'; readonly entry: WindowEntry; readonly task: UrlTask }
  /** It may not start before this (epoch ms). */
  | { readonly kind: 'delayed'; readonly entry: WindowEntry; readonly task: UrlTask; readonly dueAt: number }

export interface EndWithoutRequest {
  readonly kind: OutcomeKind
  readonly reason: string
}

export interface TaskIntakeOptions extends TaskSource {
  readonly publisher: Pick<TaskPublisher, 'partitionOf'>
  readonly layout: LayoutSource
  readonly state: Pick<StateStore, 'claim' | 'accept' | 'isFinished'>
  readonly gate: StoreGate
  readonly clock: { readonly now: () => number }
  /** The crawl was stopped on `control`. */
  readonly isCrawlStopped: (crawlId: string) => boolean
  /** Another entry of the attempt is under way. Asked before the store is, since the store learns its end before the other one is gone. */
  readonly isHeldBack: (entry: WindowEntry, task: UrlTask) => boolean
  /** How long a claim with dedup `ttl` lives. */
  readonly claimTtlMs: number
}

type Decoded = Extract<IntakeVerdict, { readonly kind: 'ready' | 'ended' }>

interface Candidate {
  readonly index: number
  readonly entry: WindowEntry
  readonly task: UrlTask
  /** As far as the message alone tells. */
  readonly read: Decoded
}

interface Judged {
  readonly index: number
  readonly verdict: IntakeVerdict
}

/** Tasks that the clock of another machine put a moment ahead are due. */
const NOT_BEFORE_SLACK_MS = 50

/**
 * The first look at what was read: decodes, fills in, and asks the store what it knows. One call of each kind for a whole batch, and
 * the verdicts in the order of the entries, so that the order of a site survives.
 */
export class TaskIntake {
  readonly #options: TaskIntakeOptions

  constructor(options: TaskIntakeOptions) {
    this.#options = options
  }

  /** Shape: one verdict per entry, in order. Errors: those of learning schemas; of the store other than STATE_UNAVAILABLE. */
  async sort(entries: readonly WindowEntry[]): Promise<readonly IntakeVerdict[]> {
    await this.#options.codec.ensureSchemas(entries.map(({ message }) => message.value))
    const verdicts: (IntakeVerdict | undefined)[] = []
    const candidates: Candidate[] = []
    for (const [index, entry] of entries.entries()) {
      const read = this.#read(entry)
      if (read.kind === 'malformed') verdicts[index] = read
      else if (this.#options.isHeldBack(entry, read.task)) verdicts[index] = { kind: 'held-back', entry }
      else candidates.push({ index, entry, task: read.task, read })
    }
    for (const verdict of await this.#judge(candidates)) verdicts[verdict.index] = verdict.verdict
    return verdicts.filter((verdict) => verdict !== undefined)
  }

  #read(entry: WindowEntry): Decoded | Extract<IntakeVerdict, { readonly kind: 'malformed' }> {
    try {
      const completed = readTask(this.#options, entry.message)
      if (completed.ok) return { kind: 'ready', entry, task: completed.task, url: completed.url }
      return {
        kind: 'ended',
        entry,
        task: completed.task,
        end: { kind: 'FAILED', reason: completed.reason },
        detail: completed.detail,
      }
    } catch (error) {
      if (isMillraceError(error)) return { kind: 'malformed', entry, error }
      throw error
    }
  }

  async #judge(candidates: readonly Candidate[]): Promise<readonly Judged[]> {
    if (candidates.length === 0) return []
    const { state, gate } = this.#options
    const finished = await gate.run(() => state.isFinished(candidates.map(({ task }) => ({ taskId: task.taskId, attempt: task.attempt }))))
    const verdicts: Judged[] = []
    const open: Candidate[] = []
    for (const [position, candidate] of candidates.entries()) {
      const { index, entry } = candidate
      if (finished[position] === true) verdicts.push({ index, verdict: { kind: 'repeat', entry } })
      else if (this.#isMisplaced(candidate)) verdicts.push({ index, verdict: { kind: 'moved', entry, task: candidate.task } })
      else open.push(candidate)
    }
    const finalTasks = await this.#accept(open)
    const live: Candidate[] = []
    for (const candidate of open) {
      const { index, entry, task, read } = candidate
      if (finalTasks.has(candidate)) {
        verdicts.push({ index, verdict: { kind: 'repeat', entry } })
        continue
      }
      const end = read.kind === 'ended' ? undefined : this.#endOf(task, entry)
      if (read.kind === 'ended') verdicts.push({ index, verdict: read })
      else if (end === undefined) live.push(candidate)
      else verdicts.push({ index, verdict: { kind: 'ended', entry, task, end } })
    }
    return [...verdicts, ...(await this.#claim(live))]
  }

  #isMisplaced({ entry, task, read }: Candidate): boolean {
    if (read.kind === 'ended') return false
    const { publisher, layout } = this.#options
    if (publisher.partitionOf(task) === entry.message.partition) return false
    return headerValue(entry.message.headers, HEADER.moved) !== String(layout().version)
  }

  /**
   * Shape: those that are final already. A crawl knows that as long as it is kept: what was put aside twice, since a worker was killed in
   * between, may come back days apart, when the note of its end is gone. But for tasks with dedup `ttl`: a link whose claim has lapsed is
   * fetched anew under its id. Sitemaps are read once.
   */
  async #accept(open: readonly Candidate[]): Promise<ReadonlySet<Candidate>> {
    const { state, gate } = this.#options
    const finalTasks = new Set<Candidate>()
    for (const [crawlId, own] of grouped(open, ({ task }) => task.crawlId)) {
      if (crawlId === null) continue
      const taskIds = own.map(({ task }) => task.taskId)
      const answers = await gate.run(() => state.accept(crawlId, taskIds))
      for (const [position, candidate] of own.entries())
        if (answers[position] === true && (candidate.task.dedup !== 'ttl' || candidate.task.sitemapLevel > 0)) finalTasks.add(candidate)
    }
    return finalTasks
  }

  #endOf(task: UrlTask, entry: WindowEntry): EndWithoutRequest | undefined {
    const { clock, isCrawlStopped } = this.#options
    if (task.expiresAt !== null && (task.expiresAt <= clock.now() || hasExpired(entry, task))) return { kind: 'EXPIRED', reason: 'expired' }
    if (task.crawlId !== null && isCrawlStopped(task.crawlId)) return { kind: 'REFUSED', reason: 'crawl-stopped' }
    return undefined
  }

  async #claim(live: readonly Candidate[]): Promise<readonly Judged[]> {
    const { state, gate, clock, claimTtlMs } = this.#options
    const claims = live.map(({ task }) => claimOf(task, claimTtlMs))
    const wanted = claims.filter((claim) => claim !== undefined)
    const answers = wanted.length === 0 ? [] : await gate.run(() => state.claim(wanted))
    let asked = 0
    return live.map(({ index, entry, task, read }, position) => {
      const answer = claims[position] === undefined ? 'own' : answers[asked++]
      if (answer === 'known') return { index, verdict: { kind: 'ended', entry, task, end: { kind: 'DUPLICATE', reason: 'known-url' } } }
      if (task.notBefore !== null && task.notBefore > clock.now() + NOT_BEFORE_SLACK_MS && !hasWaited(entry))
        return { index, verdict: { kind: 'delayed', entry, task, dueAt: task.notBefore } }
      return { index, verdict: read }
    })
  }
}

/**
 * True for a copy that comes back from the delay topics: its time had come there. Asked of two clocks it would go round between the two
 * stages for as long as they differ.
 */
function hasWaited({ message }: WindowEntry): boolean {
  return headerValue(message.headers, HEADER.reason) !== undefined
}

/** True for one that waited for its `notBefore` and expires before: it comes back for its end. */
function hasExpired({ message }: WindowEntry, { notBefore, expiresAt }: UrlTask): boolean {
  return headerValue(message.headers, HEADER.reason) === NOT_BEFORE && (expiresAt ?? Number.POSITIVE_INFINITY) < (notBefore ?? 0)
}

/**
 * A task of the frontier holds its claim already, by the page that found it; whether a chain of redirects goes on was decided by the hop
 * that leads here.
 */
function claimOf(task: UrlTask, ttlMs: number): Claim | undefined {
  const { crawlId, canonicalUrl, round, taskId, dedup, redirects, sitemapLevel } = task
  if (
    crawlId === null ||
    dedup === 'none' ||
    sitemapLevel > 0 ||
    redirects.length > 0 ||
    taskId === linkTaskId(crawlId, canonicalUrl, round)
  )
    return undefined
  return { crawlId, canonicalUrl, round, claimant: taskId, ...(dedup === 'ttl' ? { ttlMs } : {}) }
}
