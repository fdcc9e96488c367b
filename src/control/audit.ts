import { readLog } from '../kafka/log-reader.ts'
import type { KafkaMessage } from '../kafka/message.ts'
import { type PartitionId, partitionId } from '../kernel/brand.ts'
import { isMillraceError } from '../kernel/errors.ts'
import { completeTask } from '../message/complete-task.ts'
import { decodeTask } from '../message/decode-task.ts'
import type { OutcomeKind, UrlTask } from '../message/generated/types.ts'
import { HEADER } from '../message/header-names.ts'
import { isFinal } from '../message/outcome.ts'
import { LANES } from '../message/topics.ts'
import { murmur2 } from '../url/partition.ts'
import { extractGroupsOf, type GroupTotals, groupTotals } from './extract-totals.ts'
import { type Runtime, requireTopics } from './runtime.ts'
import { type WaitingBounds, waitingBounds } from './waiting-bounds.ts'

export interface AuditReport {
  /** Distinct tasks in the logs of the lanes. */
  readonly produced: number
  /** First final outcome of each task. */
  readonly outcomes: Readonly<Partial<Record<OutcomeKind, number>>>
  /** Reasons of the outcomes that are not FETCHED. */
  readonly reasons: Readonly<Partial<Record<string, number>>>
  /** Final outcomes after the first one of their task. */
  readonly repeats: number
  /** Tasks without a final outcome that wait in a lane or in a delay topic. */
  readonly inFlight: number
  /** Outcomes of tasks whose message retention has deleted. */
  readonly beforeHorizon: number
  /** Messages of the lanes that are no tasks; each is a dead letter. */
  readonly malformed: number
  /** produced - outcomes - inFlight: tasks that nobody can account for. */
  readonly difference: number
  /** Some of these, by taskId and URL. */
  readonly missing: readonly { readonly taskId: string; readonly url: string }[]
  /** One entry for each extract group. */
  readonly extract: readonly GroupTotals[]
}

export interface AuditOptions {
  readonly crawlId?: string
  readonly signal?: AbortSignal
  /** Tasks held in memory at a time; more are counted in several passes over the logs. 400,000 where not given. */
  readonly tasksPerPass?: number
}

const TASKS_PER_PASS = 400_000
const MISSING_SHOWN = 20

interface Pass {
  readonly isOurs: (taskId: string) => boolean
  readonly crawlId: string | undefined
  readonly bounds: Bounds
  readonly signal: AbortSignal | undefined
}

/** What all passes look at, so that they count one moment though the stages go on. */
interface Bounds {
  readonly waiting: WaitingBounds
  /** Topic to partition to end, taken once. */
  readonly ends: ReadonlyMap<string, ReadonlyMap<number, bigint>>
}

/** The ledger: every task that was produced against its first final outcome. Reads the logs; changes nothing. */
export async function audit(runtime: Runtime, options: AuditOptions = {}): Promise<AuditReport> {
  const { topics, admin } = runtime
  const lanes = LANES.map((lane) => topics.urls[lane])
  await requireTopics(runtime, [...lanes, topics.outcomes])
  const size = await messageCount(runtime, [...lanes, topics.outcomes])
  const passes = Math.max(1, Math.ceil(size / (options.tasksPerPass ?? TASKS_PER_PASS)))
  const bounds = await takeBounds(runtime)
  let report: AuditReport = EMPTY
  for (let index = 0; index < passes; index += 1) {
    const pass: Pass = {
      isOurs: (taskId) => passes === 1 || (murmur2(Buffer.from(taskId)) >>> 0) % passes === index,
      crawlId: options.crawlId,
      bounds,
      signal: options.signal,
    }
    report = add(report, await auditPass(runtime, pass))
  }
  const extract: GroupTotals[] = []
  for (const group of extractGroupsOf(runtime)) {
    const committed = await admin.committedOffsets(group, [topics.html])
    extract.push(
      groupTotals(
        group,
        [...committed.values()].map(({ metadata }) => metadata),
      ),
    )
  }
  return { ...report, extract }
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
  const tasks = [...LANES.map((lane) => topics.urls[lane]), ...topics.delays.map(({ topic }) => topic)]
  for (const topic of [topics.outcomes, ...tasks].filter((name) => existing.has(name)))
    ends.set(topic, await admin.endOffsets(topic, 'read_committed'))
  return { waiting, ends }
}

const EMPTY: AuditReport = {
  produced: 0,
  outcomes: {},
  reasons: {},
  repeats: 0,
  inFlight: 0,
  beforeHorizon: 0,
  malformed: 0,
  difference: 0,
  missing: [],
  extract: [],
}

function add(a: AuditReport, b: AuditReport): AuditReport {
  return {
    produced: a.produced + b.produced,
    outcomes: addCounts(a.outcomes, b.outcomes),
    reasons: addCounts(a.reasons, b.reasons),
    repeats: a.repeats + b.repeats,
    inFlight: a.inFlight + b.inFlight,
    beforeHorizon: a.beforeHorizon + b.beforeHorizon,
    // Every pass meets all of them.
    malformed: Math.max(a.malformed, b.malformed),
    difference: a.difference + b.difference,
    missing: [...a.missing, ...b.missing].slice(0, MISSING_SHOWN),
    extract: [],
  }
}

function addCounts<K extends string>(
  a: Readonly<Partial<Record<K, number>>>,
  b: Readonly<Partial<Record<K, number>>>,
): Partial<Record<K, number>> {
  const sum: Partial<Record<K, number>> = { ...a }
  for (const [key, count] of Object.entries(b) as [K, number][]) sum[key] = (sum[key] ?? 0) + count
  return sum
}

interface TaskEntry {
  readonly url: string
  produced: boolean
  waiting: boolean
  ended: OutcomeKind | undefined
}

async function auditPass(runtime: Runtime, pass: Pass): Promise<AuditReport> {
  const { topics } = runtime
  const tasks = new Map<string, TaskEntry>()
  const seen = await readTasks(runtime, pass, tasks)
  const outcomes: Partial<Record<OutcomeKind, number>> = {}
  const reasons: Record<string, number> = {}
  let repeats = 0
  let beforeHorizon = 0
  for await (const message of messagesOf(runtime, [topics.outcomes], pass)) {
    const outcome = tryDecode(() => runtime.codec.decode('Outcome', message.value))
    if (outcome === undefined || !isFinal(outcome.kind) || !pass.isOurs(outcome.taskId)) continue
    if (pass.crawlId !== undefined && outcome.crawlId !== pass.crawlId) continue
    const entry = tasks.get(outcome.taskId)
    if (entry?.ended !== undefined) {
      repeats += 1
      continue
    }
    if (entry === undefined || !entry.produced) {
      beforeHorizon += 1
      tasks.set(outcome.taskId, { url: outcome.url, produced: false, waiting: false, ended: outcome.kind })
      continue
    }
    entry.ended = outcome.kind
    outcomes[outcome.kind] = (outcomes[outcome.kind] ?? 0) + 1
    if (outcome.kind !== 'FETCHED' && outcome.reason !== null) reasons[outcome.reason] = (reasons[outcome.reason] ?? 0) + 1
  }
  const open = [...tasks].filter(([, entry]) => entry.produced && entry.ended === undefined)
  const missing = open.filter(([, entry]) => !entry.waiting).map(([taskId, { url }]) => ({ taskId, url }))
  return {
    ...EMPTY,
    produced: [...tasks.values()].filter((entry) => entry.produced).length,
    outcomes,
    reasons,
    repeats,
    beforeHorizon,
    malformed: seen.malformed,
    inFlight: open.length - missing.length,
    difference: missing.length,
    missing: missing.slice(0, MISSING_SHOWN),
  }
}

/** All tasks of the lanes, and of the delay topics those that still wait there. */
async function readTasks(runtime: Runtime, pass: Pass, tasks: Map<string, TaskEntry>): Promise<{ malformed: number }> {
  const { topics } = runtime
  let malformed = 0
  const delays = topics.delays.map(({ topic }) => topic)
  for await (const message of messagesOf(runtime, [...LANES.map((lane) => topics.urls[lane]), ...delays], pass)) {
    const task = completed(runtime, message)
    const isDelayed = delays.includes(message.topic)
    if (task === undefined) {
      if (!isDelayed) malformed += 1
      continue
    }
    if (!pass.isOurs(task.taskId) || (pass.crawlId !== undefined && task.crawlId !== pass.crawlId)) continue
    const isCopy = isDelayed || message.headers[HEADER.origTopic] !== undefined || message.headers[HEADER.moved] !== undefined
    const entry = tasks.get(task.taskId) ?? { url: task.url, produced: false, waiting: false, ended: undefined }
    entry.produced ||= !isCopy
    entry.waiting ||= pass.bounds.waiting.isWaiting(message)
    tasks.set(task.taskId, entry)
  }
  return { malformed }
}

function completed(runtime: Runtime, message: KafkaMessage): UrlTask | undefined {
  const lane = LANES.find((name) => runtime.topics.urls[name] === message.topic)
  const task = tryDecode(() => decodeTask(runtime.codec, message.value))
  if (task === undefined) return undefined
  const { topic, partition, offset, timestamp } = message
  return completeTask(task, { clusterId: runtime.clusterId, topic, partition, offset, timestamp, ...(lane === undefined ? {} : { lane }) })
    .task
}

/** What can't be decoded is counted by whoever asks; it is a dead letter already. */
function tryDecode<T>(decode: () => T): T | undefined {
  try {
    return decode()
  } catch (error) {
    if (isMillraceError(error) && error.disposition === 'dead-letter') return undefined
    throw error
  }
}

async function* messagesOf(runtime: Runtime, topics: readonly string[], { bounds, signal }: Pass): AsyncGenerator<KafkaMessage> {
  const from = new Map<string, ReadonlyMap<number, 'earliest'>>()
  const until = new Map<PartitionId, bigint>()
  for (const topic of topics) {
    const ends = bounds.ends.get(topic) ?? new Map<number, bigint>()
    if (ends.size > 0) from.set(topic, new Map([...ends.keys()].map((partition) => [partition, 'earliest'])))
    for (const [partition, end] of ends) until.set(partitionId(topic, partition), end)
  }
  const log = readLog({
    client: runtime.client,
    clock: runtime.clock,
    observer: runtime.observer,
    from,
    until,
    ...(signal === undefined ? {} : { signal }),
  })
  for await (const event of log) {
    if (event.kind !== 'batch') continue
    await runtime.codec.ensureSchemas(event.messages.map(({ value }) => value))
    yield* event.messages
  }
  signal?.throwIfAborted()
}

async function messageCount(runtime: Runtime, topics: readonly string[]): Promise<number> {
  let count = 0n
  for (const topic of topics) {
    const [low, end] = await Promise.all([runtime.admin.earliestOffsets(topic), runtime.admin.endOffsets(topic, 'read_uncommitted')])
    for (const [partition, offset] of end) count += offset - (low.get(partition) ?? 0n)
  }
  return Number(count)
}
