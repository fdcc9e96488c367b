import { type ErrorCode, MillraceError } from '../kernel/errors.ts'
import type { MessageCodec } from '../message/codec.ts'
import { headersOfCopy } from '../message/due-time.ts'
import type { Lane, UrlTask } from '../message/generated/types.ts'
import { HEADER, type Headers, headerValue, MAX_TIME, type OriginalMessage, originHeaders } from '../message/header-names.ts'
import { type TopicNames, taskTopics } from '../message/topics.ts'
import { makeTraceParent } from '../message/trace.ts'
import { partitionFor } from '../url/partition.ts'
import { domainOfUrl } from '../url/registrable-domain.ts'
import { chooseDelay } from './delay-choice.ts'
import type { LayoutSource } from './layout.ts'
import type { OutgoingMessage } from './message.ts'
import type { MessageProducer } from './producer.ts'

/** What a copy of a task in a delay topic says about itself. */
export interface DelayedCopy {
  /** Epoch ms before which the task doesn't come back to its lane. */
  readonly dueAt: number
  /** Bounded code: spill, not-before, what the site is closed for, or the reason of the outcome that asked for a retry. */
  readonly reason: string
  /** Where the copy goes into another lane: the one that was asked for. The first that is said counts. */
  readonly askedLane?: Lane | null
  /** Epoch ms at which something of its site was last called back; 0: never. */
  readonly liftedAt?: number
  /** The message that the copy replaces. */
  readonly original: OriginalMessage
  /** Where the copy was made since something failed. */
  readonly failure?: { readonly code: ErrorCode; readonly message: string /** Epoch ms. */; readonly at: number }
}

export interface TaskPublisherOptions {
  readonly topics: TopicNames
  readonly codec: MessageCodec
  readonly producer: MessageProducer
  readonly layout: LayoutSource
  readonly clock: { readonly now: () => number }
}

const ERROR_CHARACTERS = 500

/**
 * The one writer of tasks: every UrlTask that Millrace writes is encoded, keyed by its registrable domain and given its partition
 * here, so that all tasks of a site lie in one partition number, whoever wrote them.
 *
 * It builds messages, and sends them only in `publish`: a stage that must have a task and something else acknowledged together sends
 * both in one call of its producer.
 */
export class TaskPublisher {
  readonly #options: TaskPublisherOptions

  constructor(options: TaskPublisherOptions) {
    this.#options = options
  }

  /** To be awaited before the first message, so that its readers can know the schema. Errors: as of `MessageCodec.prepare`. */
  async prepare(): Promise<void> {
    const { topics, codec } = this.#options
    const all = taskTopics(topics)
    await Promise.all(all.map((topic) => codec.prepare(topic, 'UrlTask')))
  }

  /**
   * Resolves when all tasks are acknowledged in their lanes. A task with `notBefore` goes to its lane as well: fetch sends it on, and
   * so the ledger finds every task where tasks are produced.
   * Errors: those of the producer; MESSAGE_INVALID, TASK_URL_INVALID before anything was sent.
   */
  async publish(tasks: readonly UrlTask[], options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.#options.producer.send(
      tasks.map((task) => this.laneMessage(task)),
      options,
    )
  }

  /** Number of the partition in which the task belongs, in any lane. Errors: TASK_URL_INVALID. */
  partitionOf(task: Pick<UrlTask, 'url'>): number {
    return partitionFor(domainOfTask(task), this.#options.layout().partitionsOf(this.#options.topics.urls.normal))
  }

  /** The task in its lane. `headers` are added to those that every message has. */
  laneMessage(task: UrlTask, headers: Readonly<Record<string, string>> = {}): OutgoingMessage {
    return this.#message(this.#laneTopic(task), task, { headers })
  }

  /** A message of a lane sent on to the partition it belongs to; at most once per version of the layout. */
  movedMessage(task: UrlTask, original: OriginalMessage): OutgoingMessage {
    const headers = { ...carried(original), [HEADER.moved]: String(this.#options.layout().version) }
    return this.#message(this.#laneTopic(task), task, { headers, original })
  }

  /**
   * The task back in its lane when its time in the delay topics is over: the bytes as they were read, since a newer release may have
   * written them with fields that are not known here. Its URL may be none: fetch ends such a task, and so its outcome is written where all
   * are.
   */
  forwardMessage(task: UrlTask, original: OriginalMessage): OutgoingMessage {
    return { ...this.bareForwardMessage(task, original), headers: { ...kept(original.headers, ENCODING), ...carried(original) } }
  }

  /** The same of a task that a stranger has put there without an id: with what was filled in here, so that every copy of it is one task. */
  completedForwardMessage(task: UrlTask, original: OriginalMessage): OutgoingMessage {
    return this.#message(this.#laneTopic(task), task, {
      headers: carried(original),
      key: keyOf(task, original),
      original,
    })
  }

  /** The same where that would be too large: the bytes as they were read and no header, so that it is no larger than the original. */
  bareForwardMessage(task: UrlTask, original: OriginalMessage): OutgoingMessage {
    const topic = this.#laneTopic(task)
    const key = keyOf(task, original)
    return { topic, partition: partitionFor(key, this.#options.layout().partitionsOf(topic)), key, value: original.value }
  }

  /** The task in the delay topic for the time that is left. */
  delayMessage(task: UrlTask, copy: DelayedCopy): OutgoingMessage {
    const { topics, clock } = this.#options
    // One that expires before comes back to be ended then, and not when it would have been due.
    const dueAt = Math.min(copy.dueAt, task.expiresAt ?? MAX_TIME, MAX_TIME)
    const now = clock.now()
    const { topic } = chooseDelay(topics.delays, dueAt - now)
    const firstMs = headerValue(copy.original.headers, HEADER.firstMs) ?? (copy.failure === undefined ? undefined : String(copy.failure.at))
    const headers = {
      ...originHeaders(copy.original),
      [HEADER.attempt]: String(task.attempt),
      [HEADER.dueMs]: String(Math.ceil(dueAt)),
      [HEADER.putMs]: String(now),
      [HEADER.reason]: copy.reason,
      ...((copy.askedLane ?? null) === null ? {} : { [HEADER.askedLane]: String(copy.askedLane) }),
      ...kept(copy.original.headers, [HEADER.askedLane]),
      ...((copy.liftedAt ?? 0) === 0 ? {} : { [HEADER.slotsMs]: String(copy.liftedAt) }),
      ...(firstMs === undefined ? {} : { [HEADER.firstMs]: firstMs }),
      ...(copy.failure === undefined
        ? {}
        : { [HEADER.errorCode]: copy.failure.code, [HEADER.errorMessage]: copy.failure.message.slice(0, ERROR_CHARACTERS) }),
    }
    return this.#message(topic, task, { headers, original: copy.original })
  }

  /**
   * A message of a delay topic in the next one, its bytes as they are; with what is left of its wait and where it was first read, unless
   * that is too much. Units: `dueAt` as in its header, epoch ms.
   */
  againMessage(
    original: OriginalMessage,
    { dueAt, leftMs }: { readonly dueAt: number; readonly leftMs: number },
    options: { withOrigin: boolean } = { withOrigin: true },
  ): OutgoingMessage {
    const { topics, layout } = this.#options
    const { topic } = chooseDelay(topics.delays, leftMs)
    const count = layout().partitionsOf(topic)
    return {
      topic,
      partition: original.key === null ? original.partition % count : partitionFor(original.key, count),
      key: original.key,
      value: original.value,
      headers: options.withOrigin ? { ...headersOfCopy(original.headers, dueAt, leftMs), ...originHeaders(original) } : original.headers,
    }
  }

  #laneTopic({ lane }: Pick<UrlTask, 'lane'>): string {
    return this.#options.topics.urls[lane ?? 'normal']
  }

  /** `original`: the message that this one takes the place of, whose fields it keeps that are not known here. */
  #message(
    topic: string,
    task: UrlTask,
    {
      headers,
      original,
      key = domainOfTask(task),
    }: {
      readonly headers: Readonly<Record<string, string>>
      readonly original?: OriginalMessage
      readonly key?: string | Buffer
    },
  ): OutgoingMessage {
    const { codec, layout } = this.#options
    const { bytes, schema } = codec.encodeCopy('UrlTask', task, topic, original?.value ?? null)
    return {
      topic,
      partition: partitionFor(key, layout().partitionsOf(topic)),
      key,
      value: bytes,
      headers: { ...codec.headers(schema, task.traceId === null ? undefined : makeTraceParent(task.traceId)), ...headers },
    }
  }
}

/** Key of a task; one without a URL that has a domain stays with the key that it came with. */
function keyOf(task: UrlTask, original: OriginalMessage): string | Buffer {
  return domainOfUrl(task.url) ?? original.key ?? ''
}

/** Errors: TASK_URL_INVALID. */
function domainOfTask({ url }: Pick<UrlTask, 'url'>): string {
  const domain = domainOfUrl(url)
  if (domain !== undefined) return domain
  throw new MillraceError('TASK_URL_INVALID', `${JSON.stringify(url.slice(0, 200))} has no domain; expected an absolute http or https URL`)
}

const CARRIED = [HEADER.askedLane, HEADER.attempt, HEADER.firstMs, HEADER.reason, HEADER.errorCode, HEADER.errorMessage] as const
/** What is said of the bytes. */
const ENCODING = [HEADER.contentType, HEADER.schema, HEADER.traceparent] as const

/** What a copy keeps of its original: where the task was first read, and what has happened to it. */
function carried(original: OriginalMessage): Record<string, string> {
  return { ...originHeaders(original), ...kept(original.headers, CARRIED) }
}

function kept(headers: Headers, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headerValue(headers, name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}
