import type { DeadLetterPublisher } from '../kafka/dead-letter-publisher.ts'
import type { OutgoingMessage } from '../kafka/message.ts'
import type { OutcomePublisher } from '../kafka/outcome-publisher.ts'
import type { TaskPublisher } from '../kafka/task-publisher.ts'
import type { WindowEntry } from '../kafka/window-entry.ts'
import type { PolitenessKey } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { type ErrorCode, endsStage, errorText, isAway, isMillraceError, MillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import { type DeadLetterContext, deadLetterEvent } from '../message/dead-letter.ts'
import type { Lane, OutcomeKind, UrlTask } from '../message/generated/types.ts'
import { NOT_BEFORE } from '../message/header-names.ts'
import { isFinal, type TaskEnd } from '../message/outcome.ts'
import { chainBefore } from '../message/redirect-chain.ts'
import type { StateStore } from '../state/state-store.ts'
import { MAX_URL_LENGTH } from '../url/parse-url.ts'
import type { QueuedTask } from './queued-task.ts'
import { type RetryPolicy, retryRoute } from './retry-route.ts'
import type { Settler } from './settler.ts'
import { delayReason, type SpillReason, spreadSlots } from './spill.ts'
import type { StoreGate } from './store-gate.ts'

export interface TaskEndingsOptions {
  readonly publisher: TaskPublisher
  readonly outcomes: OutcomePublisher
  readonly deadLetters: DeadLetterPublisher
  readonly settler: Settler
  readonly state: Pick<StateStore, 'accept' | 'spillSlot'>
  readonly gate: StoreGate
  readonly retry: RetryPolicy
  readonly random: () => number
  readonly clock: Clock
  readonly observer: Observer
  /** Page budgets in which the task may hold a place. */
  readonly budgetIdsOf: (task: UrlTask) => readonly string[]
  /** When something was last called back that had been put aside for the site that is asked next for it; 0: never. */
  readonly liftedAtOf: (task: UrlTask) => number
}

/** What failed, for the dead letter: the code of the catalogue and a text for people. */
export interface Failure {
  readonly code: ErrorCode
  readonly message: string
}

/** No page came of the attempt. */
export function fetchFailed(message: string): Failure {
  return { code: 'FETCH_FAILED', message }
}

/** An attempt that may be repeated. */
export interface FailedAttempt {
  /** Bounded code. */
  readonly reason: string
  readonly failure: Failure
  readonly request?: NonNullable<TaskEnd['request']>
  readonly retryAfterMs?: number | undefined
  readonly factor?: number
  /** The lane of the next attempt; as it was where not given. */
  readonly lane?: Lane
  /** What the task ends as when it is not repeated; FAILED with the same reason where not given. */
  readonly otherwise?: { readonly kind: 'REFUSED'; readonly reason: string }
  /** Ends the task with what there is, where there is no further attempt or it would come too late. */
  readonly keep?: (() => Promise<void>) | undefined
}

/** Where spilled tasks stand in the time of their site. Units: ms. */
export interface SpillSlots {
  readonly reason: SpillReason
  /** Name of the spill clock. */
  readonly clock: PolitenessKey
  /** Until what waits here has had its turn. */
  readonly localWaitMs: number
  /** Between two slots. */
  readonly intervalMs: number
}

const STAGE = 'fetch'

/**
 * Every way in which an entry of the fetch stage ends, and the messages that belong to it. What is written first and what the store
 * learns when is the settler's order, the same for all.
 */
export class TaskEndings {
  readonly #options: TaskEndingsOptions

  constructor(options: TaskEndingsOptions) {
    this.#options = options
  }

  /** The task is at its end. `first`: messages that go with the outcome, such as the page. */
  async final(
    entry: WindowEntry,
    task: UrlTask,
    end: TaskEnd,
    extra: { failure?: Failure; first?: readonly OutgoingMessage[] } = {},
  ): Promise<void> {
    const { failure, first = [] } = extra
    if (failure === undefined) return await this.#end(entry, task, end, first)
    const { deadLetters, observer } = this.#options
    const context = this.#contextOf(failure, { reason: end.reason ?? undefined, attempt: task.attempt })
    await this.#end(entry, task, end, [...first, deadLetters.message(entry.message, context)])
    observer.emit('DeadLetterWritten', { ...deadLetterEvent(entry.message, context), url: task.url })
  }

  /** The hop goes on as a task of its own: it is there and accepted before its parent is final, so that no crawl ends between the two. */
  async redirected(entry: WindowEntry, task: UrlTask, hop: UrlTask, end: TaskEnd): Promise<void> {
    const { settler, publisher, gate, state } = this.#options
    await settler.send([publisher.laneMessage(hop)])
    const { crawlId } = hop
    if (crawlId !== null) await gate.run(() => state.accept(crawlId, [hop.taskId]))
    await this.#end(entry, task, end, [])
  }

  /** Repeats the attempt after a while, or ends the task where that is of no use: EXPIRED where it would come too late. */
  async retryOrFail(entry: WindowEntry, task: UrlTask, failed: FailedAttempt): Promise<void> {
    const { retry, random, clock, publisher, liftedAtOf } = this.#options
    const now = clock.now()
    const { attempt, expiresAt } = task
    const { retryAfterMs, factor, reason, failure, request, lane } = failed
    const route = retryRoute(retry, { attempt, expiresAt, retryAfterMs, ...(factor === undefined ? {} : { factor }) }, now, random())
    const shared = { at: now, ...(request === undefined ? {} : { request }) }
    if (route.kind !== 'retry' && failed.keep !== undefined) return failed.keep()
    if (route.kind === 'too-late') return this.final(entry, task, { kind: 'EXPIRED', reason: 'expired', ...shared })
    if (route.kind === 'exhausted') {
      const kind: OutcomeKind = failed.otherwise?.kind ?? 'FAILED'
      const end: TaskEnd = { kind, reason: failed.otherwise?.reason ?? reason, ...shared }
      return this.final(entry, task, end, kind === 'FAILED' ? { failure } : {})
    }
    const again: UrlTask = { ...task, attempt: attempt + 1, redirects: chainBefore(task), lane: lane ?? task.lane }
    const copy = publisher.delayMessage(again, {
      dueAt: route.dueAt,
      reason,
      ...(lane === undefined ? {} : { askedLane: task.lane }),
      liftedAt: liftedAtOf(again),
      original: entry.message,
      failure: { ...failure, at: now },
    })
    await this.#end(entry, task, { kind: 'RETRY', reason, ...shared }, [copy])
  }

  /**
   * The proper end of the entry can't be written: a value of its task is too large for a topic, or there is a defect. The original goes to
   * dead-letters, and with it the shortest outcome that names the task; where even that can't be written, the dead letter alone.
   */
  async unwritable(entry: WindowEntry, task: UrlTask | undefined, error: unknown): Promise<void> {
    const failure: Failure = { code: isMillraceError(error) ? error.code : 'INTERNAL', message: errorText(error) }
    const reason = failure.code === 'KAFKA_MESSAGE_TOO_LARGE' ? 'message-too-large' : 'internal'
    const at = this.#options.clock.now()
    if (task !== undefined) {
      try {
        // No longer than any URL that is fetched: a bad one may be of any length, and it is the task's id that names it.
        const [url, canonicalUrl] = [task.url.slice(0, MAX_URL_LENGTH), task.canonicalUrl.slice(0, MAX_URL_LENGTH)]
        const short: UrlTask = { ...task, url, canonicalUrl, jobId: null }
        return await this.final(entry, short, { kind: 'FAILED', reason, at }, { failure })
      } catch (again) {
        if (!isOfTask(again)) throw again
      }
    }
    await this.malformed(entry, new MillraceError(failure.code, failure.message, { cause: error }))
  }

  /** No task could be read from the entry: it is kept as it is. */
  async malformed(entry: WindowEntry, error: MillraceError): Promise<void> {
    const { settler, deadLetters, observer } = this.#options
    const context = this.#contextOf({ code: error.code, message: error.message }, { reason: 'malformed' })
    await settler.settle({ entry, messages: [deadLetters.message(entry.message, context)] })
    observer.emit('DeadLetterWritten', deadLetterEvent(entry.message, context))
  }

  /** A copy of what is finished: nothing is written. */
  repeat(entry: WindowEntry): void {
    this.#options.observer.emit('RepeatSkipped')
    entry.complete()
  }

  async moved(entry: WindowEntry, task: UrlTask): Promise<void> {
    const { settler, publisher, observer } = this.#options
    await settler.settle({ entry, messages: [publisher.movedMessage(task, entry.message)] })
    observer.emit('TaskMoved')
  }

  async delayed(entry: WindowEntry, task: UrlTask, dueAt: number, reason: string = NOT_BEFORE): Promise<void> {
    const { settler, publisher } = this.#options
    const copy = { dueAt, reason, original: entry.message }
    await settler.settle({ entry, messages: [publisher.delayMessage(task, copy)] })
  }

  /**
   * Tasks of one site and crawl leave their windows for a delay topic, in order: each gets a slot of their spill clock, behind what
   * waits here. No outcome is written and the attempt stays. `onLeft` is told of each as soon as its own copy is acknowledged: the first
   * may be back before the last has left. Resolves with where the clock stands then, epoch ms.
   */
  async spilled(
    tasks: readonly QueuedTask[],
    { reason, clock: name, localWaitMs, intervalMs }: SpillSlots,
    onLeft: (queued: QueuedTask) => void,
  ): Promise<number> {
    const { settler, publisher, gate, state, clock, observer, liftedAtOf } = this.#options
    // One step of the clock for all of them.
    const lastMs = await gate.run(() => state.spillSlot(name, localWaitMs, intervalMs * tasks.length))
    const now = clock.now()
    const slots = spreadSlots(lastMs, tasks.length, intervalMs)
    await Promise.all(
      tasks.map(async (queued, index) => {
        const { entry, task } = queued
        const dueAt = now + (slots[index] ?? lastMs)
        const copy = { dueAt, reason: delayReason(reason), liftedAt: liftedAtOf(task), original: entry.message }
        try {
          await settler.settle({ entry, messages: [publisher.delayMessage(task, copy)] })
          observer.emit('TaskSpilled', { reason })
        } catch (error) {
          if (!isOfTask(error)) throw error
          await this.unwritable(entry, task, error)
        }
        onLeft(queued)
      }),
    )
    return now + lastMs
  }

  async #end(entry: WindowEntry, task: UrlTask, end: TaskEnd, messages: readonly OutgoingMessage[]): Promise<void> {
    const { outcomes, settler, observer, budgetIdsOf } = this.#options
    const final = isFinal(end.kind)
    // A place in a page budget is for a page: whoever ends without one gives it back.
    const places = { budgetIds: final ? budgetIdsOf(task) : [], areKept: end.kind === 'FETCHED' || end.kind === 'UNCHANGED' }
    await settler.settle({ entry, messages: [...messages, outcomes.message(task, end)], finished: { task, final }, places })
    observer.emit('OutcomeWritten', { kind: end.kind, reason: end.reason ?? '' })
  }

  #contextOf(failure: Failure, { reason, attempt }: { reason?: string | undefined; attempt?: number }): DeadLetterContext {
    return {
      stage: STAGE,
      ...failure,
      failedAt: this.#options.clock.now(),
      ...(reason === undefined ? {} : { reason }),
      ...(attempt === undefined ? {} : { attempt }),
    }
  }
}

/**
 * True for what failed by the task itself or by a defect; false for what all of them stand on. Whoever asks that waits for it while it is
 * away (the producer, the gate of the store, the claim check): what comes from it all the same is the end of no task.
 */
export function isOfTask(error: unknown): boolean {
  return !endsStage(error) && !isAway(error)
}
