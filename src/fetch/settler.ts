import type { OutgoingMessage } from '../kafka/message.ts'
import { BATCH_OVERHEAD_BYTES, messageBytes } from '../kafka/outgoing.ts'
import type { MessageProducer } from '../kafka/producer.ts'
import { DEFAULT_MAX_BATCH_BYTES } from '../kafka/topic-definitions.ts'
import type { WindowEntry } from '../kafka/window-entry.ts'
import type { Clock } from '../kernel/clock.ts'
import { isMillraceError } from '../kernel/errors.ts'
import { grouped } from '../kernel/grouped.ts'
import type { UrlTask } from '../message/generated/types.ts'
import type { StateStore } from '../state/state-store.ts'
import type { StoreGate } from './store-gate.ts'

/** The end of one entry: what is written for it, and what the store then learns. */
export interface Settlement {
  readonly entry: WindowEntry
  readonly messages: readonly OutgoingMessage[]
  /** The attempt, and with `final` the task, is finished. None: a copy goes on elsewhere (spilled, moved, delayed), or there is no task. */
  readonly finished?: { readonly task: Pick<UrlTask, 'taskId' | 'attempt' | 'crawlId'>; readonly final: boolean }
  /** Page budgets in which it may have a place, and whether that is taken for good by its page or given back. */
  readonly places?: { readonly budgetIds: readonly string[]; readonly areKept: boolean }
}

export interface SettlerOptions {
  readonly producer: MessageProducer
  readonly state: Pick<StateStore, 'finalise' | 'markFinished' | 'keepPlaces' | 'unreserve'>
  readonly gate: StoreGate
  /** How long a finished attempt is remembered. */
  readonly finishedTtlMs: number
  readonly signal: AbortSignal
  readonly clock: Clock
}

interface Pending {
  readonly finished: NonNullable<Settlement['finished']>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * The one order in which an entry ends: its messages are acknowledged by all in-sync replicas (those that the broker may refuse for their
 * size before all others), then the store learns that the task is final and that the attempt is finished, then the offset may be
 * committed. A crash between two steps repeats work and never loses any; the store's knowledge makes most repeats free of a request.
 *
 * What many tasks have to tell the store goes in one call.
 */
export class Settler {
  readonly #options: SettlerOptions
  /** Whose messages are not acknowledged, and since when they are sent; the oldest first. */
  readonly #unwritten = new Map<WindowEntry, number>()
  #pending: Pending[] = []
  #isFlushing = false

  constructor(options: SettlerOptions) {
    this.#options = options
  }

  /** Errors: KAFKA_MESSAGE_TOO_LARGE, and what no resend can mend; the entry is not complete then. ABORTED at the end of the worker. */
  async settle(settlement: Settlement): Promise<void> {
    const { entry, messages, finished, places } = settlement
    await this.#write(entry, messages)
    if (finished !== undefined) {
      if (places !== undefined && places.budgetIds.length > 0) await this.#settlePlaces(finished.task, places)
      await this.#finish(finished)
    }
    entry.complete()
  }

  /** How long Kafka has not taken what an entry ended with, or the oldest of all; undefined: nothing waits for it. Units: ms. */
  unwrittenMs(entry?: WindowEntry): number | undefined {
    const sinceMono = entry === undefined ? this.#unwritten.values().next().value : this.#unwritten.get(entry)
    return sinceMono === undefined ? undefined : this.#options.clock.mono() - sinceMono
  }

  async #write(entry: WindowEntry, messages: readonly OutgoingMessage[]): Promise<void> {
    this.#unwritten.set(entry, this.#options.clock.mono())
    try {
      await this.send(messages.filter(needsRaisedLimit))
      await this.send(messages.filter((message) => !needsRaisedLimit(message)))
    } finally {
      this.#unwritten.delete(entry)
    }
  }

  /** Resolves when the messages are acknowledged. Errors: as `settle`. */
  async send(messages: readonly OutgoingMessage[]): Promise<void> {
    if (messages.length > 0) await this.#options.producer.send(messages, { signal: this.#options.signal })
  }

  #settlePlaces({ taskId }: Pick<UrlTask, 'taskId'>, { budgetIds, areKept }: NonNullable<Settlement['places']>): Promise<void> {
    const { state, gate } = this.#options
    return gate.run(() => (areKept ? state.keepPlaces(taskId, budgetIds) : state.unreserve(taskId, budgetIds)))
  }

  #finish(finished: NonNullable<Settlement['finished']>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ finished, resolve, reject })
      if (!this.#isFlushing) void this.#flush()
    })
  }

  /** Total: a failure goes to those who wait. */
  async #flush(): Promise<void> {
    this.#isFlushing = true
    while (this.#pending.length > 0) {
      const batch = this.#pending
      this.#pending = []
      try {
        await this.#tell(batch.map(({ finished }) => finished))
        for (const { resolve } of batch) resolve()
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    this.#isFlushing = false
  }

  async #tell(finished: readonly NonNullable<Settlement['finished']>[]): Promise<void> {
    const { state, gate, finishedTtlMs } = this.#options
    const tasks = finished.filter(({ final }) => final).map(({ task }) => task)
    for (const [crawlId, own] of grouped(tasks, (task) => task.crawlId)) {
      const taskIds = own.map(({ taskId }) => taskId)
      if (crawlId !== null) await gate.run(() => state.finalise(crawlId, taskIds))
    }
    const attempts = finished.map(({ task, final }) => ({ taskId: task.taskId, attempt: task.attempt, final }))
    await gate.run(() => state.markFinished(attempts, finishedTtlMs))
  }
}

/**
 * True where a topic takes the message by a limit above that of the broker alone. As long as `topics apply` has not set it, our own check
 * lets through what the broker refuses, and an outcome in the same call would be stored all the same.
 */
function needsRaisedLimit(message: OutgoingMessage): boolean {
  return messageBytes(message) + BATCH_OVERHEAD_BYTES > DEFAULT_MAX_BATCH_BYTES
}

/** True where a settlement failed since the worker ends: the entry comes again after a restart. */
export function isEnding(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted || isMillraceError(error, 'ABORTED')
}
