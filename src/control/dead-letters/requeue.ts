import { loadBlob } from '../../blobs/load-body.ts'
import type { OutgoingMessage } from '../../kafka/message.ts'
import type { Isolation } from '../../kafka/offsets.ts'
import { createPartitionTransactions, type PartitionTransactions } from '../../kafka/transactional.ts'
import { retried } from '../../kernel/backoff.ts'
import { isMillraceError, isStopOf, MillraceError } from '../../kernel/errors.ts'
import { grouped } from '../../kernel/grouped.ts'
import { RecentSet } from '../../kernel/recent-set.ts'
import { newCommand, subject } from '../../message/command.ts'
import { type DeadLetterAction, type DeadLetterMark, offsetRanges } from '../../message/dead-letter-marks.ts'
import type { UrlTask } from '../../message/generated/types.ts'
import { uuidV7 } from '../../message/ids.ts'
import { messageUrl } from '../../message/message-url.ts'
import { placeInTopic } from '../../message/put-back.ts'
import { commandAuthor } from '../runtime/announce.ts'
import { type Runtime, requireTopics } from '../runtime/runtime.ts'
import {
  type DeadLetterFilter,
  deadLetterPartitions,
  type FoundDeadLetter,
  findDeadLetters,
  type ListedDeadLetter,
  lookUpDeadLetters,
  showDeadLetter,
} from './dead-letters.ts'
import { type NotRequeued, type Requeue, type RequeueParts, requeueOf } from './requeue-message.ts'
import { requeueParts } from './requeue-parts.ts'

export interface ResolveOptions {
  readonly action: DeadLetterAction
  readonly filter: DeadLetterFilter
  /** Without it nothing is written: the report says what would be. */
  readonly execute: boolean
  readonly signal?: AbortSignal
}

export interface ResolveReport {
  readonly executed: boolean
  /** A signal came first: the same again goes on with the rest. Where nothing is written it is thrown, since half a forecast is none. */
  readonly interrupted: boolean
  /** Written to their lanes, as new tasks. */
  readonly tasks: number
  /** Written to html, for the extractor that failed. */
  readonly pages: number
  /** Of these, pages of their own: html was made anew since, and where they lay is another message, or none yet. */
  readonly ownPages: number
  /** Other dead letters of a page and an extractor for which it is written already. */
  readonly samePage: number
  readonly dropped: number
  /** Left as they are, by reason. */
  readonly left: Readonly<Partial<Record<NotRequeued, number>>>
  /** Those that were named and had been dealt with before: nothing is done about them. */
  readonly already: readonly { readonly place: string; readonly action: DeadLetterAction }[]
  /** The first of all these. */
  readonly examples: readonly ResolvedExample[]
}

export interface ResolvedExample {
  readonly place: string
  readonly key: string | null
  /** Null: none can be read. */
  readonly url: string | null
  readonly code: string | null
  readonly becomes: 'task' | 'page' | 'own-page' | 'same-page' | 'dropped' | 'left'
  /** Id of the new task. */
  readonly taskId?: string
  readonly reason?: NotRequeued
  readonly detail?: string
}

const EXAMPLES = 20
/** Dead letters of a page lie no further apart than so many copies that are written between them; about 20 MB at most. */
const COPIES_AMONG = 100_000
/** What goes into one transaction. */
const CHUNK_LETTERS = 200
const CHUNK_BYTES = 4_194_304
/** A command that was killed holds up readers of the urls topics no longer than this. */
const TRANSACTION_TIMEOUT_MS = 10_000
/** A broker that ends the transaction of a killed command looks for it every ten seconds. */
const MARKS_LIMIT_MS = 3 * TRANSACTION_TIMEOUT_MS
const MARKS_WAIT_MS = 50
const RETRY = { firstMs: 100, maxMs: 5_000 } as const
const TRIES = 6

/**
 * Puts dead letters back, or marks them as dropped. What is written for a dead letter and the mark that it is dealt with commit in one
 * transaction, so a command that is killed anywhere has done each of them whole or not at all, and the same command again goes on
 * where it stopped. Of two at once over the same partition, the later one shuts the other out, and reads what that had done; it waits for a
 * transaction that is open for another partition, behind which marks may lie.
 * Errors: the signal's reason where nothing is written; USAGE where a place is named that holds none, and nothing is done; KAFKA_FENCED
 * where another such command took over; KAFKA_TRANSACTION_FAILED after several tries; TIMEOUT where such a transaction does not end.
 */
export async function resolveDeadLetters(runtime: Runtime, options: ResolveOptions): Promise<ResolveReport> {
  const { topics } = runtime
  await requireTopics(runtime, [topics.deadLetters, topics.html, ...Object.values(topics.urls)])
  const already = await alreadyResolved(runtime, options.filter.places ?? new Set())
  const parts = await requeueParts(runtime, options)
  const tally = new Tally(options)
  let interrupted = false
  try {
    for (const partition of await deadLetterPartitions(runtime, options.filter)) {
      if (tally.isFull) break
      options.signal?.throwIfAborted()
      await new PartitionResolving(runtime, options, parts, tally, partition).run()
    }
  } catch (error) {
    if (!options.execute || options.signal === undefined || !isStopOf(options.signal, error)) throw error
    interrupted = true
  }
  return { ...tally.report(), already, interrupted }
}

/** Of these places. Errors: USAGE, naming those that hold no dead letter. */
async function alreadyResolved(runtime: Runtime, places: ReadonlySet<string>): Promise<ResolveReport['already']> {
  const already: { place: string; action: DeadLetterAction }[] = []
  const missing: string[] = []
  for (const { place, letter } of await lookUpDeadLetters(runtime, places)) {
    if (letter === undefined) missing.push(place)
    else if (letter.resolved !== undefined) already.push({ place, action: letter.resolved.action })
  }
  if (missing.length === 0) return already
  throw new MillraceError('USAGE', `there is no dead letter at ${missing.join(', ')}; \`millrace dead-letters list\` shows where they are`)
}

/** One thing done about one dead letter. */
interface Step {
  readonly letter: ListedDeadLetter
  readonly example: ResolvedExample
  readonly message?: OutgoingMessage
  readonly task?: UrlTask
  /** As `Requeue` has it. */
  readonly copy?: string
}

/** All dead letters of one partition, a transaction at a time. */
class PartitionResolving {
  readonly #runtime: Runtime
  readonly #options: ResolveOptions
  readonly #parts: RequeueParts
  readonly #tally: Tally
  readonly #partition: number
  /**
   * Copies of pages that were written. One page has several dead letters where it lies on html several times, or several groups read it.
   */
  readonly #copies = new RecentSet(COPIES_AMONG)
  /** What lies before it is counted, also what is left as it is. */
  #countedTo = 0n
  /** A transaction that failed may have committed. */
  #unsure: readonly Step[] = []

  constructor(runtime: Runtime, options: ResolveOptions, parts: RequeueParts, tally: Tally, partition: number) {
    this.#runtime = runtime
    this.#options = options
    this.#parts = parts
    this.#tally = tally
    this.#partition = partition
  }

  async run(): Promise<void> {
    if (!this.#options.execute) return this.#work(undefined)
    const { client, groups, topics, clock, observer, maxBatchBytes, admin } = this.#runtime
    const transactions = createPartitionTransactions({
      client,
      groupId: groups.deadLetters,
      topic: topics.deadLetters,
      partition: this.#partition,
      transactionTimeoutMs: TRANSACTION_TIMEOUT_MS,
      // What is done stands in the marks, and no offset says it.
      pendingLimitMs: 0,
      clock,
      observer,
      maxBatchBytes,
      session: admin.session,
    })
    try {
      const step = async (): Promise<void> => {
        await transactions.fence()
        await this.#untilMarksAreSeen()
        await this.#countUnsure()
        await this.#work(transactions)
      }
      // What is done is read from the marks, and the rest is tried again.
      const again = (error: unknown, tries: number): boolean => isMillraceError(error, 'KAFKA_TRANSACTION_FAILED') && tries < TRIES
      await retried(step, { policy: RETRY, again, clock, signal: this.#options.signal })
    } catch (error) {
      throw isMillraceError(error, 'KAFKA_FENCED') ? this.#shutOut(error) : error
    } finally {
      await transactions.close()
    }
  }

  /** Of what was done before nothing may be done again, and marks behind a transaction that is open for another partition are not seen. */
  async #untilMarksAreSeen(): Promise<void> {
    const { admin, clock, topics } = this.#runtime
    const endOf = async (isolation: Isolation): Promise<bigint> => (await admin.endOffsets(topics.control, isolation)).get(0) ?? 0n
    const end = await endOf('read_uncommitted')
    const deadlineMono = clock.mono() + MARKS_LIMIT_MS
    while ((await endOf('read_committed')) < end) {
      if (clock.mono() > deadlineMono)
        throw new MillraceError(
          'TIMEOUT',
          `a transaction is open on ${topics.control}: what was done about dead letters can not be seen behind it`,
        )
      await clock.sleep(MARKS_WAIT_MS, this.#options.signal)
    }
  }

  #shutOut(cause: MillraceError): MillraceError {
    const at = `partition ${this.#partition} of ${this.#runtime.topics.deadLetters}`
    const text = `another command deals with the dead letters of ${at}: what this one has done stands, the rest is left to that one`
    return new MillraceError('KAFKA_FENCED', text, { cause, context: cause.context })
  }

  async #work(transactions: PartitionTransactions | undefined): Promise<void> {
    const { filter, signal } = this.#options
    if (this.#tally.isFull) return
    // What is left as it is would be found again, and use up the limit again.
    const { limit: _limit, ...all } = filter
    let chunk: Step[] = []
    let bytes = 0
    const flush = async (): Promise<void> => {
      if (chunk.length === 0) return
      this.#unsure = chunk
      if (transactions !== undefined) await this.#commit(transactions, chunk)
      this.#count(chunk)
      chunk = []
      bytes = 0
    }
    for await (const found of findDeadLetters(this.#runtime, [this.#partition], all, signal)) {
      if (found.listed.offset < this.#countedTo) continue
      const step = await this.#step(found, chunk)
      chunk.push(step)
      bytes += step.message?.value?.length ?? 0
      if (chunk.length >= CHUNK_LETTERS || bytes >= CHUNK_BYTES) await flush()
      if (chunk.length >= (this.#tally.left ?? Number.POSITIVE_INFINITY)) break
    }
    await flush()
  }

  #count(chunk: readonly Step[]): void {
    for (const { letter, example, copy } of chunk) {
      this.#tally.add(example)
      if (copy !== undefined) this.#copies.add(copy)
      this.#countedTo = letter.offset + 1n
    }
    this.#unsure = []
  }

  /** Once nobody else can commit it: the mark of its last one tells whether it did. */
  async #countUnsure(): Promise<void> {
    const chunk = this.#unsure
    const last = chunk.findLast(({ example }) => example.becomes !== 'left')
    if (last === undefined) return
    const found = await showDeadLetter(this.#runtime, this.#partition, last.letter.offset)
    if (found?.resolved === undefined) return
    await this.#accept(chunk.flatMap(({ task }) => task ?? []))
    this.#count(chunk)
  }

  async #step(found: FoundDeadLetter, before: readonly Step[]): Promise<Step> {
    const { listed: letter } = found
    const { key } = letter
    // Of those alone that are shown: a registry may have to be asked.
    const url = this.#tally.takesExamples ? await messageUrl(this.#parts.codec, { key, value: found.message.value }) : null
    const about = { place: placeInTopic(letter), key, url, code: letter.info.code ?? null }
    if (this.#options.action === 'dropped') return { letter, example: { ...about, becomes: 'dropped' } }
    const requeue: Requeue = await requeueOf(found, this.#parts)
    if (requeue.kind === 'not') return { letter, example: { ...about, becomes: 'left', reason: requeue.reason, detail: requeue.detail } }
    const { message } = requeue
    if (requeue.kind === 'task') {
      const { task } = requeue
      return { letter, message, task, example: { ...about, becomes: 'task', taskId: task.taskId } }
    }
    const { copy } = requeue
    const isWritten = copy !== undefined && (this.#copies.has(copy) || before.some((step) => step.copy === copy))
    if (isWritten) return { letter, example: { ...about, becomes: 'same-page' } }
    const missing = requeue.bodyRef === null ? undefined : await this.#touch(requeue.bodyRef)
    if (missing !== undefined) return { letter, example: { ...about, becomes: 'left', reason: 'body-missing', detail: missing } }
    const becomes = requeue.isOwn ? 'own-page' : 'page'
    return { letter, message, ...(copy === undefined ? {} : { copy }), example: { ...about, becomes } }
  }

  /**
   * A page names its body anew, so the blob is written anew before: else collection, which goes by age, may take it from under the page.
   * Shape: why the page is of no use without it; undefined: it is there. Errors: as of the store.
   */
  async #touch(bodyRef: string): Promise<string | undefined> {
    const store = await this.#runtime.blobs()
    const loaded = await loadBlob(bodyRef, store)
    if (!loaded.ok) return loaded.detail
    if (this.#options.execute) await store?.put(bodyRef, loaded.body)
    return undefined
  }

  async #commit(transactions: PartitionTransactions, chunk: readonly Step[]): Promise<void> {
    const done = chunk.filter(({ example }) => example.becomes !== 'left')
    const last = done.at(-1)
    if (last === undefined) return
    const messages = done.flatMap(({ message }) => message ?? [])
    await transactions.commit([...messages, this.#mark(done.map(({ letter }) => letter))], last.letter.offset + 1n, '')
    await this.#accept(done.flatMap(({ task }) => task ?? []))
  }

  #mark(letters: readonly ListedDeadLetter[]): OutgoingMessage {
    const { codec, topics, clock, owner } = this.#runtime
    const payload: DeadLetterMark = {
      action: this.#options.action,
      partition: this.#partition,
      offsets: offsetRanges(letters.map(({ offset }) => offset)),
      newestMs: letters.reduce((newest, { timestamp }) => Math.max(newest, timestamp), 0),
    }
    const command = newCommand({ clock, kind: 'set', subject: subject.deadLetters(uuidV7(clock)), payload, by: commandAuthor(owner) })
    return {
      topic: topics.control,
      partition: 0,
      key: command.subject,
      value: codec.encode('Command', command, topics.control),
      headers: codec.headers('Command'),
    }
  }

  /** A run of the crawl that goes on waits for them from now on; fetch does the same when it reads them. */
  async #accept(tasks: readonly UrlTask[]): Promise<void> {
    for (const [crawlId, own] of grouped(tasks, (task) => task.crawlId)) {
      if (crawlId === null) continue
      const taskIds = own.map(({ taskId }) => taskId)
      await (await this.#runtime.state()).accept(crawlId, taskIds)
    }
  }
}

class Tally {
  readonly #options: ResolveOptions
  readonly #counts = { task: 0, page: 0, 'own-page': 0, 'same-page': 0, dropped: 0, left: 0 }
  readonly #left: Partial<Record<NotRequeued, number>> = {}
  readonly #examples: ResolvedExample[] = []

  constructor(options: ResolveOptions) {
    this.#options = options
  }

  /** How many more the limit allows; undefined where there is none. */
  get left(): number | undefined {
    const { limit } = this.#options.filter
    return limit === undefined ? undefined : Math.max(0, limit - Object.values(this.#counts).reduce((sum, count) => sum + count, 0))
  }

  get takesExamples(): boolean {
    return this.#examples.length < EXAMPLES
  }

  get isFull(): boolean {
    return this.left === 0
  }

  add(example: ResolvedExample): void {
    this.#counts[example.becomes] += 1
    if (example.reason !== undefined) this.#left[example.reason] = (this.#left[example.reason] ?? 0) + 1
    if (this.takesExamples) this.#examples.push(example)
  }

  report(): Omit<ResolveReport, 'already' | 'interrupted'> {
    const { task, page, dropped, 'own-page': ownPages, 'same-page': samePage } = this.#counts
    const written = { tasks: task, pages: page + ownPages, ownPages, samePage }
    return { executed: this.#options.execute, ...written, dropped, left: this.#left, examples: this.#examples }
  }
}
