import type { AssignedPartition } from '../kafka/assignment.ts'
import { DeadLetterPublisher } from '../kafka/dead-letter-publisher.ts'
import { heldBytes } from '../kafka/incoming.ts'
import type { LayoutSource } from '../kafka/layout.ts'
import type { OutgoingMessage } from '../kafka/message.ts'
import type { TrackerLimits } from '../kafka/offset-tracker.ts'
import type { MessageProducer } from '../kafka/producer.ts'
import { TaskPublisher } from '../kafka/task-publisher.ts'
import type { WindowEntry } from '../kafka/window-entry.ts'
import type { Clock } from '../kernel/clock.ts'
import { type ErrorCode, errorText, isMillraceError, MillraceError } from '../kernel/errors.ts'
import { BaseService, type Service } from '../kernel/lifecycle.ts'
import type { Observer } from '../kernel/observe.ts'
import { WorkSet } from '../kernel/work-set.ts'
import type { MessageCodec } from '../message/codec.ts'
import type { CompletedTask } from '../message/complete-task.ts'
import { deadLetterEvent } from '../message/dead-letter.ts'
import { HEADER, headerValue } from '../message/header-names.ts'
import { learnSchemas } from '../message/learn-schemas.ts'
import { readTask } from '../message/read-task.ts'
import { nextTarget } from '../message/redirect-chain.ts'
import type { TopicNames } from '../message/topics.ts'
import { delayTimes } from './delay-time.ts'
import { DelayWindow } from './delay-window.ts'
import { type LiftedFrom, LiftedSites } from './lifted-sites.ts'

/** The consumer of the delay topics; `WindowedConsumer` is one. */
export interface DelayConsumer extends Service {
  /** The entry of each partition that holds back its commit. */
  bases(): readonly WindowEntry[]
}

export interface DelayHandlers {
  readonly onEntries: (entries: readonly WindowEntry[]) => void
  readonly onLost: (assigned: AssignedPartition) => void
  /** For the consumer: how much of each topic it hands out at once. */
  readonly limits: (topic: string) => Partial<TrackerLimits>
  /** For the consumer: bytes in its windows at which it stops reading. */
  readonly maxBytes: number
}

export interface DelayWorkerOptions {
  /** Builds the consumer of all delay topics in the delay group. */
  readonly createConsumer: (handlers: DelayHandlers) => DelayConsumer
  readonly producer: MessageProducer
  readonly codec: MessageCodec
  readonly topics: TopicNames
  readonly layout: LayoutSource
  readonly clusterId: string
  /** Largest batch that the broker takes for dead-letters. */
  readonly deadLetterMaxBytes: number
  /** Tasks of the shortest topic in memory. 64 MiB where not given. */
  readonly maxWindowBytes?: number
  readonly clock: Clock
  readonly observer: Observer
}

interface Held {
  readonly entry: WindowEntry
  /** Epoch ms by the clock that put it aside. */
  readonly dueAt: number
  /** Monotonic ms: a wall clock that is set moves nothing that is held. */
  readonly dueMono: number
}

const MIB = 1_048_576
const STAGE = 'delay'
/**
 * The shortest topic is ordered by due time, so it must be seen as a whole; of the others only the head is of use. Nothing but the span,
 * for which room is made, may stop its reading: what is due next may be what comes next. So all of the span may be incomplete, and the map
 * of what is completed, which is as good as random here, may grow beyond what fits.
 */
const SHORTEST_LIMITS: Partial<TrackerLimits> = { maxIncomplete: 131_072, maxSpan: 131_072, maxMapChars: Number.POSITIVE_INFINITY }
/** Offsets behind the newest at which an entry is moved, well before the span is full. */
const FAR_BACK = 98_304n
const HEAD_LIMITS: Partial<TrackerLimits> = { maxIncomplete: 500 }
/** A task that is due within this is not written again: it would come back too late. */
const NEAR_MS = 3_000
const CONSUMER_DRAIN_MS = 1

/**
 * Brings tasks back to their lanes when they are due: never before, and within a second after it.
 *
 * One heap of times over all that is held, and one timer. A message of a longer topic is held until it has been there for the topic's
 * delay and then goes to a shorter one; the shortest holds until due. When more waits there than memory allows, those that are due
 * last are written to the end of the topic, so that the ones due sooner are seen.
 *
 * It keeps no state but its offsets. A task that has expired meanwhile, or whose URL is none, goes to its lane as well, where fetch ends
 * it: so the ledger of a task is written in one place. Only what can't be read as a task is a dead letter here.
 */
export class DelayWorker extends BaseService {
  readonly #options: DelayWorkerOptions
  readonly #publisher: TaskPublisher
  readonly #deadLetters: DeadLetterPublisher
  readonly #window: DelayWindow<Held>
  readonly #topics: ReadonlyMap<string, { readonly delayMs: number; readonly isShortest: boolean }>
  readonly #consumer: DelayConsumer
  readonly #liftedSites = new LiftedSites()
  readonly #work = new WorkSet((error) => {
    if (!this.aborted.signal.aborted && !isMillraceError(error, 'ABORTED')) this.fail(error)
  })
  #isTaking = true
  #disarm: (() => void) | undefined

  constructor(options: DelayWorkerOptions) {
    super()
    this.#options = options
    const { topics, codec, producer, layout, clock, deadLetterMaxBytes, maxWindowBytes = 64 * MIB } = options
    this.#publisher = new TaskPublisher({ topics, codec, producer, layout, clock })
    this.#deadLetters = new DeadLetterPublisher({ topics, layout, maxBytes: deadLetterMaxBytes })
    this.#window = new DelayWindow(maxWindowBytes)
    this.#topics = new Map(topics.delays.map(({ topic, delayMs }, index) => [topic, { delayMs, isShortest: index === 0 }]))
    this.#consumer = options.createConsumer({
      onEntries: (entries) => this.#onEntries(entries),
      onLost: () => this.#window.takeOut(({ entry }) => !entry.isCurrent()),
      limits: (topic) => (this.#topics.get(topic)?.isShortest === true ? SHORTEST_LIMITS : HEAD_LIMITS),
      // It reads on below half of this: well above what is kept here after room was made, the heads of the longer topics included.
      maxBytes: 4 * maxWindowBytes,
    })
  }

  /** Tasks held in memory. */
  get heldCount(): number {
    return this.#window.size
  }

  /** What was put aside for a site before one of these moments comes back at once. To be told of former ones as well, before the start. */
  siteChanged(name: string, from: LiftedFrom): void {
    this.#liftedSites.add(name, from)
    const { clock } = this.#options
    const isLifted = ({ entry }: Held): boolean => entry.isCurrent() && this.#isLifted(entry)
    const lifted = this.#window.takeOut(isLifted).map((held) => ({ ...held, dueMono: clock.mono() }))
    if (lifted.length > 0) this.#work.run(() => this.#release(lifted))
  }

  protected async onStart(signal: AbortSignal): Promise<void> {
    await this.#publisher.prepare()
    this.releases.add('work under way', () => this.#work.settled())
    this.releases.add('consumer', () => this.#consumer.stop({ mode: 'abort', timeoutMs: 0 }))
    this.releases.add('timer', () => this.#disarm?.())
    this.#consumer.closed.catch((error: unknown) => this.fail(error))
    await this.#consumer.start({ signal })
  }

  protected async onDrain(signal: AbortSignal): Promise<void> {
    this.#isTaking = false
    this.#disarm?.()
    await this.#work.settled(signal)
    await this.#consumer.stop({ mode: 'drain', timeoutMs: CONSUMER_DRAIN_MS })
  }

  #onEntries(entries: readonly WindowEntry[]): void {
    if (!this.#isTaking) return
    const { clock } = this.#options
    const [now, mono] = [clock.now(), clock.mono()]
    for (const entry of entries) {
      const topic = this.#topics.get(entry.message.topic)
      const times = topic === undefined ? undefined : delayTimes(entry.message, topic, now)
      if (topic === undefined || times === undefined) {
        this.#work.run(() => this.#deadLetter(entry, badDueTime(entry)))
        continue
      }
      const isLifted = this.#isLifted(entry)
      this.#window.add({
        wakeMono: isLifted ? mono : mono + times.wakeInMs,
        bytes: heldBytes(entry.message),
        isMovable: topic.isShortest,
        value: { entry, dueAt: times.dueAt, dueMono: isLifted ? mono : mono + times.dueInMs },
      })
    }
    for (const held of this.#inTheWay(entries)) this.#work.run(() => this.#again(held))
    this.#pump()
  }

  #isLifted(entry: WindowEntry): boolean {
    return this.#liftedSites.isLifted(entry.message, () => {
      const read = this.#read(entry)
      // It waits for the site that its chain of redirects has come to.
      return read instanceof MillraceError ? undefined : nextTarget(read.task)?.href
    })
  }

  /** What is written to the end of its topic, so that what is due sooner can be read: too many bytes, or a base that is too far back. */
  #inTheWay(entries: readonly WindowEntry[]): Held[] {
    const earliestMono = this.#options.clock.mono() + NEAR_MS
    const held = this.#window.isOver ? this.#window.takeLatest(earliestMono) : []
    const newest = entries.at(-1)?.message
    if (newest === undefined || this.#topics.get(newest.topic)?.isShortest !== true) return held
    const isFarBack = ({ message }: WindowEntry): boolean =>
      message.topic === newest.topic && message.partition === newest.partition && newest.offset - message.offset > FAR_BACK
    if (!this.#consumer.bases().some(isFarBack)) return held
    return [...held, ...this.#window.takeOut(({ entry, dueMono }) => dueMono >= earliestMono && isFarBack(entry))]
  }

  #pump(): void {
    this.#disarm?.()
    this.#disarm = undefined
    const { clock } = this.#options
    if (!this.#isTaking || this.aborted.signal.aborted) return
    const due = this.#window.popDue(clock.mono()).filter(({ entry }) => entry.isCurrent())
    if (due.length > 0) this.#work.run(() => this.#release(due))
    const nextMono = this.#window.nextMono
    if (nextMono !== undefined) this.#disarm = clock.timer(Math.ceil(nextMono - clock.mono()), () => this.#pump())
  }

  async #release(due: readonly Held[]): Promise<void> {
    const { codec, clock } = this.#options
    const values = due.map(({ entry }) => entry.message.value)
    // A registry that is away holds up everything here, and loses nothing.
    await learnSchemas(codec, values, { clock, signal: this.aborted.signal })
    for (const held of due) {
      const isDue = held.dueMono <= clock.mono()
      this.#work.run(() => (isDue ? this.#forward(held.entry) : this.#again(held)))
    }
  }

  async #forward(entry: WindowEntry): Promise<void> {
    const read = this.#read(entry)
    if (read instanceof MillraceError) return this.#deadLetter(entry, read)
    const { message } = entry
    const { task, hadId } = read
    await this.#sendSmaller(entry, [
      () => (hadId ? this.#publisher.forwardMessage(task, message) : this.#publisher.completedForwardMessage(task, message)),
      () => this.#publisher.bareForwardMessage(task, message),
    ])
  }

  #again({ entry, dueAt, dueMono }: Held): Promise<void> {
    const { message } = entry
    const times = { dueAt, leftMs: dueMono - this.#options.clock.mono() }
    return this.#sendSmaller(entry, [
      () => this.#publisher.againMessage(message, times),
      () => this.#publisher.againMessage(message, times, { withOrigin: false }),
    ])
  }

  /**
   * A copy can be a little larger than its original, and so too large for its topic: then a smaller one goes. A task that fetch has
   * taken was written by us and fits, so what does not is a stranger's message, which nobody waits for.
   */
  async #sendSmaller(entry: WindowEntry, [build, ...smaller]: readonly (() => OutgoingMessage)[]): Promise<void> {
    if (build === undefined) return
    try {
      await this.#send(entry, build())
    } catch (error) {
      if (!isMillraceError(error) || error.disposition !== 'dead-letter') throw error
      if (smaller.length > 0) await this.#sendSmaller(entry, smaller)
      else await this.#deadLetter(entry, error)
    }
  }

  async #send(entry: WindowEntry, message: OutgoingMessage): Promise<void> {
    await this.#options.producer.send([message], { signal: this.aborted.signal })
    entry.complete()
  }

  #read({ message }: WindowEntry): CompletedTask | MillraceError {
    try {
      // One with a bad URL is a task all the same, and ends as one in fetch.
      return readTask(this.#options, message)
    } catch (error) {
      const code: ErrorCode = isMillraceError(error) ? error.code : 'INTERNAL'
      return error instanceof MillraceError ? error : new MillraceError(code, errorText(error), { cause: error })
    }
  }

  async #deadLetter(entry: WindowEntry, error: MillraceError): Promise<void> {
    const { clock, observer } = this.#options
    const context = {
      stage: STAGE,
      code: error.code,
      message: error.message,
      reason: error.code === 'KAFKA_MESSAGE_TOO_LARGE' ? 'message-too-large' : 'malformed',
      failedAt: clock.now(),
    }
    await this.#send(entry, this.#deadLetters.message(entry.message, context))
    observer.emit('DeadLetterWritten', deadLetterEvent(entry.message, context))
  }
}

function badDueTime({ message }: WindowEntry): MillraceError {
  const value = JSON.stringify((headerValue(message.headers, HEADER.dueMs) ?? '').slice(0, 40))
  return new MillraceError('MESSAGE_INVALID', `the header ${HEADER.dueMs} is ${value}; expected a time as epoch ms`)
}
