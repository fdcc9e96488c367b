import { partitionsOfKey } from '../../kafka/layout.ts'
import { readMessages, readOne } from '../../kafka/log-reader.ts'
import { searchPieces } from '../../kafka/log-search.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import { type PartitionId, partitionId, type TopicPartition } from '../../kernel/brand.ts'
import type { OutcomeKind } from '../../message/generated/types.ts'
import { HEADER } from '../../message/header-names.ts'
import { isFinal } from '../../message/outcome.ts'
import { readTask } from '../../message/read-task.ts'
import { readable } from '../../message/readable.ts'
import { delayTopics, laneTopics, taskTopics } from '../../message/topics.ts'
import { murmur2 } from '../../url/partition.ts'
import { extractGroupsOf } from '../groups/extract-groups.ts'
import { type GroupTotals, groupTotals } from '../groups/extract-totals.ts'
import { type WaitingBounds, waitingBounds } from '../groups/waiting-bounds.ts'
import { type Runtime, requireTopics } from '../runtime/runtime.ts'
import { addCounts, type LedgerCounts, largestCrawls, NO_COUNTS, TaskLedger } from './task-ledger.ts'
import { crawlTexts } from './url-search.ts'

export interface AuditReport extends LedgerCounts {
  /** Messages of the lanes that are no tasks; each is a dead letter. Null for one crawl: they name none. */
  readonly malformed: number | null
  /** One entry for each extract group, on the pages of all crawls: its totals do not tell them apart. */
  readonly extract: readonly GroupTotals[]
}

export interface AuditProgress {
  readonly read: number
  readonly of: number
}

export interface AuditOptions {
  readonly crawlId?: string
  readonly signal?: AbortSignal
  /** Is told how far it is, messages looked at of about so many, where it takes longer than a moment. */
  readonly onProgress?: (progress: AuditProgress) => void
  /** Tasks held in memory at a time; more are counted in several passes over the logs. 400,000 where not given. */
  readonly tasksPerPass?: number
}

const TASKS_PER_PASS = 400_000
/** Nobody has to be told of what takes no longer. */
const MOMENT_MS = 500

const NOTHING = { counts: NO_COUNTS, malformed: 0 }

interface Pass {
  readonly isOurs: (taskId: string) => boolean
  readonly crawlId: string | undefined
  readonly bounds: Bounds
  readonly signal: AbortSignal | undefined
  readonly looked: (messages: number) => void
  /** It is given up where it meets more. */
  readonly mostTasks: number
}

/** What all passes look at, so that they count one moment though the stages go on. */
interface Bounds {
  readonly waiting: WaitingBounds
  /** Topic to partition to end, taken once. */
  readonly ends: ReadonlyMap<string, ReadonlyMap<number, bigint>>
  readonly outcomesSince: (canonicalUrl: string) => number
  /** Messages that a pass looks at. */
  readonly size: number
  readonly takenMono: number
}

/**
 * The ledger: every task that was produced against its first final outcome. Reads the logs; changes nothing.
 * Errors: the signal's reason; those of the broker.
 */
export async function audit(runtime: Runtime, options: AuditOptions = {}): Promise<AuditReport> {
  const { topics, admin } = runtime
  const lanes = laneTopics(topics)
  await requireTopics(runtime, [...lanes, topics.outcomes])
  const tasksPerPass = options.tasksPerPass ?? TASKS_PER_PASS
  const size = await messageCount(runtime, [...lanes, topics.outcomes])
  const passes = Math.max(1, Math.ceil(size / tasksPerPass))
  const bounds = await takeBounds(runtime)
  // The messages are those of all crawls: the tasks of one may well be few.
  const inOne = options.crawlId !== undefined && passes > 1 ? await countIn(runtime, options, bounds, 1, tasksPerPass) : undefined
  const { counts, malformed } = inOne ?? (await countIn(runtime, options, bounds, passes, Number.POSITIVE_INFINITY)) ?? NOTHING
  const extract: GroupTotals[] = []
  for (const group of extractGroupsOf(runtime)) {
    extract.push(groupTotals(group, await admin.lag(group, [topics.html])))
  }
  return { ...counts, crawls: largestCrawls(counts.crawls), malformed: options.crawlId === undefined ? malformed : null, extract }
}

/** Shape: undefined where one of the passes meets more than so many tasks. */
async function countIn(
  runtime: Runtime,
  { crawlId, signal, onProgress }: AuditOptions,
  bounds: Bounds,
  passes: number,
  mostTasks: number,
): Promise<{ readonly counts: LedgerCounts; readonly malformed: number } | undefined> {
  let { counts, malformed } = NOTHING
  let read = 0
  const of = Math.max(1, bounds.size * passes)
  const looked = (messages: number): void => {
    read += messages
    if (runtime.clock.mono() - bounds.takenMono >= MOMENT_MS) onProgress?.({ read: Math.min(read, of), of })
  }
  for (let index = 0; index < passes; index += 1) {
    const isOurs = (taskId: string): boolean => passes === 1 || (murmur2(Buffer.from(taskId)) >>> 0) % passes === index
    const pass: Pass = { isOurs, crawlId, bounds, signal, looked, mostTasks }
    const ledger = new TaskLedger()
    // Every pass meets all of them.
    malformed = await readTasks(runtime, pass, ledger)
    if (ledger.taskCount <= mostTasks) await readOutcomes(runtime, pass, ledger)
    if (ledger.taskCount > mostTasks) return undefined
    counts = addCounts(counts, ledger.counts())
  }
  return { counts, malformed }
}

/**
 * The order is what makes the sum come out while the stages work: first what is waiting, then the end of outcomes, then the ends of the
 * tasks. What was finished at the first moment has an outcome before the second, and what has one before the second has a task before
 * the third.
 */
async function takeBounds(runtime: Runtime): Promise<Bounds> {
  const { topics, admin } = runtime
  const waiting = await waitingBounds(runtime)
  const existing = new Set(await admin.listTopics())
  const ends = new Map<string, ReadonlyMap<number, bigint>>()
  const tasks = taskTopics(topics)
  for (const topic of [topics.outcomes, ...tasks].filter((name) => existing.has(name)))
    ends.set(topic, await admin.endOffsets(topic, 'read_committed'))
  return {
    waiting,
    ends,
    outcomesSince: await outcomesSince(runtime),
    size: await messageCount(runtime, [...ends.keys()]),
    takenMono: runtime.clock.mono(),
  }
}

/** All tasks of the lanes, and of the delay topics those that still wait there. Shape: messages of the lanes that are no tasks. */
async function readTasks(runtime: Runtime, pass: Pass, ledger: TaskLedger): Promise<number> {
  const { topics } = runtime
  let malformed = 0
  const delays = delayTopics(topics)
  for await (const message of messagesOf(runtime, taskTopics(topics), pass)) {
    const { topic, partition, offset, headers } = message
    const task = readable(() => readTask(runtime, message))?.task
    const isDelayed = delays.includes(topic)
    if (task === undefined) {
      if (!isDelayed) malformed += 1
      continue
    }
    const { taskId, crawlId, url, canonicalUrl } = task
    if (!pass.isOurs(taskId) || (pass.crawlId !== undefined && crawlId !== pass.crawlId)) continue
    const isCopy = isDelayed || headers[HEADER.origTopic] !== undefined || headers[HEADER.moved] !== undefined
    const isWaiting = pass.bounds.waiting.isWaiting(message)
    const isBeforeHorizon = message.timestamp <= pass.bounds.outcomesSince(canonicalUrl)
    if (ledger.taskCount > pass.mostTasks) break
    ledger.addTask({ taskId, crawlId, url, topic, partition, offset, isCopy, isWaiting, isBeforeHorizon })
  }
  return malformed
}

async function readOutcomes(runtime: Runtime, pass: Pass, ledger: TaskLedger): Promise<void> {
  for await (const message of messagesOf(runtime, [runtime.topics.outcomes], pass)) {
    const outcome = readable(() => runtime.codec.decode('Outcome', message.value))
    if (outcome === undefined || !pass.isOurs(outcome.taskId)) continue
    if (pass.crawlId === undefined || outcome.crawlId === pass.crawlId) ledger.addOutcome(outcome)
    if (ledger.taskCount > pass.mostTasks) return
  }
}

/** The final outcomes from these offsets on, as they are written: no copy is left out. Errors: the signal's reason. */
export async function endedFrom(
  runtime: Runtime,
  from: ReadonlyMap<number, bigint>,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Pick<LedgerCounts, 'outcomes' | 'reasons'>> {
  const outcomes: Partial<Record<OutcomeKind, number>> = {}
  const reasons: Partial<Record<string, number>> = {}
  const { codec, topics } = runtime
  for await (const messages of readMessages(runtime, { from: new Map([[topics.outcomes, from]]), signal })) {
    await codec.ensureSchemas(messages.map(({ value }) => value))
    for (const { value } of messages) {
      const outcome = readable(() => codec.decode('Outcome', value))
      if (outcome === undefined || !isFinal(outcome.kind)) continue
      const { kind, reason } = outcome
      outcomes[kind] = (outcomes[kind] ?? 0) + 1
      if (kind !== 'FETCHED' && reason !== null) reasons[reason] = (reasons[reason] ?? 0) + 1
    }
  }
  return { outcomes, reasons }
}

/**
 * Time of the oldest outcome that is left, by the partitions that the outcomes of a canonical URL may lie in: what was produced before may
 * have had an outcome that retention has deleted. Minus infinity where nothing was deleted.
 */
async function outcomesSince(runtime: Runtime): Promise<(canonicalUrl: string) => number> {
  const { topics, admin, clock } = runtime
  const topic = topics.outcomes
  const [low, end] = await Promise.all([admin.earliestOffsets(topic), admin.endOffsets(topic, 'read_committed')])
  const since = new Map<number, number>()
  for (const [partition, first] of low) {
    if (first === 0n) continue
    const message = first < (end.get(partition) ?? 0n) ? await readOne(admin.session, { topic, partition }, first) : undefined
    since.set(partition, message?.timestamp ?? clock.now())
  }
  if (since.size === 0) return () => Number.NEGATIVE_INFINITY
  const layout = await runtime.layout()
  return (canonicalUrl) =>
    Math.max(...partitionsOfKey(layout(), topic, canonicalUrl).map((partition) => since.get(partition) ?? Number.NEGATIVE_INFINITY))
}

/** All messages of the topics, or those that name the crawl. */
async function* messagesOf(runtime: Runtime, topics: readonly string[], pass: Pass): AsyncGenerator<KafkaMessage> {
  const { bounds, signal, looked, crawlId } = pass
  if (crawlId === undefined) return yield* everyMessage(runtime, topics, pass)
  const lanes = laneTopics(runtime.topics)
  for (const topic of topics) {
    const texts = crawlTexts(crawlId, lanes.includes(topic) ? 'anyone' : 'us')
    const lows = await runtime.admin.earliestOffsets(topic)
    for (const [partition, until] of bounds.ends.get(topic) ?? [])
      yield* namingMessages(runtime, { topic, partition, from: lows.get(partition) ?? 0n, until, texts, signal, looked })
  }
}

/** Messages that may be of a crawl, found without decoding the others. */
async function* namingMessages(
  { admin, codec }: Runtime,
  search: TopicPartition & {
    readonly from: bigint
    readonly until: bigint
    readonly texts: readonly Buffer[]
    readonly signal: AbortSignal | undefined
    readonly looked: (messages: number) => void
  },
): AsyncGenerator<KafkaMessage> {
  const { signal, looked, ...range } = search
  const pieces = searchPieces(admin.session, { ...range, signal })
  let { from } = range
  for await (const { messages, searchedTo } of pieces) {
    looked(Number(searchedTo - from))
    from = searchedTo
    await codec.ensureSchemas(messages.map(({ value }) => value))
    yield* messages
  }
}

async function* everyMessage(runtime: Runtime, topics: readonly string[], { bounds, signal, looked }: Pass): AsyncGenerator<KafkaMessage> {
  if (topics.length === 0) return
  const from = new Map<string, ReadonlyMap<number, 'earliest'>>()
  const until = new Map<PartitionId, bigint>()
  for (const topic of topics) {
    const ends = bounds.ends.get(topic) ?? new Map<number, bigint>()
    if (ends.size > 0) from.set(topic, new Map([...ends.keys()].map((partition) => [partition, 'earliest'])))
    for (const [partition, end] of ends) until.set(partitionId(topic, partition), end)
  }
  for await (const messages of readMessages(runtime, { from, until, signal })) {
    looked(messages.length)
    await runtime.codec.ensureSchemas(messages.map(({ value }) => value))
    yield* messages
  }
}

async function messageCount({ admin }: Runtime, topics: readonly string[]): Promise<number> {
  const counts = await Promise.all(
    topics.map(async (topic) => {
      const [low, end] = await Promise.all([admin.earliestOffsets(topic), admin.endOffsets(topic, 'read_uncommitted')])
      return [...end].reduce((count, [partition, offset]) => count + offset - (low.get(partition) ?? 0n), 0n)
    }),
  )
  return Number(counts.reduce((sum, count) => sum + count, 0n))
}
