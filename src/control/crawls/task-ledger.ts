import type { MessagePlace } from '../../kernel/brand.ts'
import type { OutcomeKind } from '../../message/generated/types.ts'
import { isFinal } from '../../message/outcome.ts'

/** A message of a task, on a lane or in a delay topic. */
export interface TaskEntry extends MessagePlace {
  readonly taskId: string
  readonly crawlId: string | null
  readonly url: string
  /** It was written by a stage for another message of the same task: retried, spilled, delayed, moved. */
  readonly isCopy: boolean
  /** Its stage has not finished it. */
  readonly isWaiting: boolean
  /** It is so old that retention may have deleted its outcome. */
  readonly isBeforeHorizon: boolean
}

export interface OutcomeEntry {
  readonly taskId: string
  readonly crawlId: string | null
  readonly url: string
  readonly kind: OutcomeKind
  readonly reason: string | null
}

/** A task that nobody can account for, and where its producer wrote it. */
export interface MissingTask {
  readonly taskId: string
  readonly crawlId: string | null
  readonly url: string
  readonly topic: string
  readonly partition: number
  readonly offset: string
}

export interface CrawlLedger {
  /** Null: tasks without a crawl. */
  readonly crawlId: string | null
  readonly produced: number
  readonly ended: number
  readonly inFlight: number
  readonly difference: number
}

export interface LedgerCounts {
  /** Distinct tasks in the logs of the lanes. */
  readonly produced: number
  /** First final outcome of each task. */
  readonly outcomes: Readonly<Partial<Record<OutcomeKind, number>>>
  /** Reasons of the outcomes that are not FETCHED. */
  readonly reasons: Readonly<Partial<Record<string, number>>>
  /** Attempts that were tried again. */
  readonly retries: number
  /** Final outcomes after the first one of their task. */
  readonly repeats: number
  /** Tasks without a final outcome that wait in a lane or in a delay topic. */
  readonly inFlight: number
  /** Outcomes of tasks whose message retention has deleted, and tasks whose outcome it may have deleted. */
  readonly beforeHorizon: number
  /** produced - outcomes - inFlight: tasks that nobody can account for. */
  readonly difference: number
  /** Some of these. */
  readonly missing: readonly MissingTask[]
  /** The largest crawls, those with a difference first. */
  readonly crawls: readonly CrawlLedger[]
}

export const NO_COUNTS: LedgerCounts = {
  produced: 0,
  outcomes: {},
  reasons: {},
  retries: 0,
  repeats: 0,
  inFlight: 0,
  beforeHorizon: 0,
  difference: 0,
  missing: [],
  crawls: [],
}

const MISSING_SHOWN = 20
export const CRAWLS_SHOWN = 50

interface Known {
  readonly crawlId: string | null
  readonly url: string
  /** Where its producer wrote it; undefined while only copies or outcomes were seen. */
  place: Pick<TaskEntry, 'topic' | 'partition' | 'offset'> | undefined
  isWaiting: boolean
  isBeforeHorizon: boolean
  ended: OutcomeKind | undefined
}

/**
 * Tasks against their outcomes. All tasks are entered first, then all outcomes, in the order of the log. Pure; holds an entry for each
 * task.
 */
export class TaskLedger {
  readonly #tasks = new Map<string, Known>()
  readonly #outcomes: Partial<Record<OutcomeKind, number>> = {}
  readonly #reasons: Record<string, number> = {}
  #retries = 0
  #repeats = 0
  #withoutTask = 0

  /** Tasks in memory. */
  get taskCount(): number {
    return this.#tasks.size
  }

  addTask(entry: TaskEntry): void {
    const { taskId, crawlId, url, topic, partition, offset, isCopy, isWaiting, isBeforeHorizon } = entry
    const known = this.#tasks.get(taskId) ?? { crawlId, url, place: undefined, isWaiting: false, isBeforeHorizon: false, ended: undefined }
    if (!isCopy && known.place === undefined) {
      known.place = { topic, partition, offset }
      known.isBeforeHorizon = isBeforeHorizon
    }
    known.isWaiting ||= isWaiting
    this.#tasks.set(taskId, known)
  }

  addOutcome({ taskId, crawlId, url, kind, reason }: OutcomeEntry): void {
    if (!isFinal(kind)) {
      this.#retries += 1
      return
    }
    const known = this.#tasks.get(taskId)
    if (known?.ended !== undefined) {
      this.#repeats += 1
      return
    }
    if (known?.place === undefined) {
      this.#withoutTask += 1
      this.#tasks.set(taskId, { crawlId, url, place: undefined, isWaiting: false, isBeforeHorizon: false, ended: kind })
      return
    }
    known.ended = kind
    this.#outcomes[kind] = (this.#outcomes[kind] ?? 0) + 1
    if (kind !== 'FETCHED' && reason !== null) this.#reasons[reason] = (this.#reasons[reason] ?? 0) + 1
  }

  counts(): LedgerCounts {
    const crawls = new Map<string | null, { produced: number; ended: number; inFlight: number; difference: number }>()
    const missing: MissingTask[] = []
    let produced = 0
    let inFlight = 0
    let beforeHorizon = this.#withoutTask
    let difference = 0
    for (const [taskId, { crawlId, url, place, isWaiting, isBeforeHorizon, ended }] of this.#tasks) {
      if (place === undefined) continue
      if (ended === undefined && !isWaiting && isBeforeHorizon) {
        beforeHorizon += 1
        continue
      }
      const crawl = crawls.get(crawlId) ?? { produced: 0, ended: 0, inFlight: 0, difference: 0 }
      crawls.set(crawlId, crawl)
      produced += 1
      crawl.produced += 1
      if (ended !== undefined) crawl.ended += 1
      else if (isWaiting) {
        inFlight += 1
        crawl.inFlight += 1
      } else {
        difference += 1
        crawl.difference += 1
        if (missing.length < MISSING_SHOWN) missing.push({ taskId, crawlId, url, ...place, offset: String(place.offset) })
      }
    }
    return {
      produced,
      outcomes: this.#outcomes,
      reasons: this.#reasons,
      retries: this.#retries,
      repeats: this.#repeats,
      inFlight,
      beforeHorizon,
      difference,
      missing,
      crawls: [...crawls].map(([crawlId, counts]) => ({ crawlId, ...counts })),
    }
  }
}

/** Of two parts of all tasks. */
export function addCounts(a: LedgerCounts, b: LedgerCounts): LedgerCounts {
  return {
    produced: a.produced + b.produced,
    outcomes: sum(a.outcomes, b.outcomes),
    reasons: sum(a.reasons, b.reasons),
    retries: a.retries + b.retries,
    repeats: a.repeats + b.repeats,
    inFlight: a.inFlight + b.inFlight,
    beforeHorizon: a.beforeHorizon + b.beforeHorizon,
    difference: a.difference + b.difference,
    missing: [...a.missing, ...b.missing].slice(0, MISSING_SHOWN),
    crawls: addCrawls(a.crawls, b.crawls),
  }
}

/** Those with a difference first, then the largest. */
export function largestCrawls(crawls: readonly CrawlLedger[]): readonly CrawlLedger[] {
  return [...crawls].sort((a, b) => b.difference - a.difference || b.produced - a.produced).slice(0, CRAWLS_SHOWN)
}

function addCrawls(a: readonly CrawlLedger[], b: readonly CrawlLedger[]): readonly CrawlLedger[] {
  const crawls = new Map(a.map((crawl) => [crawl.crawlId, crawl]))
  for (const crawl of b) {
    const known = crawls.get(crawl.crawlId)
    crawls.set(
      crawl.crawlId,
      known === undefined
        ? crawl
        : {
            crawlId: crawl.crawlId,
            produced: known.produced + crawl.produced,
            ended: known.ended + crawl.ended,
            inFlight: known.inFlight + crawl.inFlight,
            difference: known.difference + crawl.difference,
          },
    )
  }
  return [...crawls.values()]
}

function sum<K extends string>(
  a: Readonly<Partial<Record<K, number>>>,
  b: Readonly<Partial<Record<K, number>>>,
): Partial<Record<K, number>> {
  const total: Partial<Record<K, number>> = { ...a }
  for (const [key, count] of Object.entries(b) as [K, number][]) total[key] = (total[key] ?? 0) + count
  return total
}
