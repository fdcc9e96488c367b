import type { MessagePlace } from '../kernel/brand.ts'
import { canonicalUrl } from '../url/canonical-url.ts'
import { type BadUrlReason, MAX_URL_LENGTH, parseFetchUrl, withoutCredentials } from '../url/parse-url.ts'
import type { Lane, UrlTask } from './generated/types.ts'
import { foreignTaskId, h } from './ids.ts'
import { isTraceId, parseTraceParent } from './trace.ts'

/** Where a task was read. */
export interface TaskPlace extends MessagePlace {
  readonly clusterId: string
  /** Epoch ms, as the message has it. */
  readonly timestamp: number
  /** Of the topic; undefined on a delay topic, where a task without one counts as normal. */
  readonly lane?: Lane | undefined
  /** Header of the message. */
  readonly traceparent?: string | undefined
}

export type CompletedTask = {
  readonly task: UrlTask
  /** False where its producer left it empty. */
  readonly hadId: boolean
} & (
  | { readonly ok: true; readonly url: URL }
  /** The task ends as FAILED; its ids are filled all the same, so that the outcome names it. */
  | { readonly ok: false; readonly reason: 'bad-url'; readonly urlReason: BadUrlReason; readonly detail: string }
)

/**
 * Fills what the producer left empty: taskId, canonicalUrl, enqueuedAt, lane, traceId, and dedup `none` without a crawl. Whoever first
 * decodes a task does this before any copy is written.
 * Shape: a function of task and place alone, so that every redelivery of the message completes to the same task; a complete task is
 * given back as it is.
 */
export function completeTask(task: UrlTask, place: TaskPlace): CompletedTask {
  const parsed = parseFetchUrl(task.url)
  const hadId = task.taskId !== ''
  const taskId = hadId ? task.taskId : foreignTaskId(place)
  const crawlId = task.crawlId === '' ? null : task.crawlId
  const filled: UrlTask = {
    ...task,
    taskId,
    crawlId,
    url: parsed.ok ? parsed.url.href : parsed.text,
    // Key and value of its outcome: whoever gave it may have left a password in it.
    canonicalUrl: task.canonicalUrl === '' ? identity(parsed) : withoutCredentials(task.canonicalUrl),
    lane: task.lane ?? place.lane ?? 'normal',
    dedup: crawlId === null ? 'none' : task.dedup,
    traceId: traceIdOf(task.traceId, place.traceparent, taskId),
    enqueuedAt: task.enqueuedAt ?? Math.max(0, place.timestamp),
  }
  // Given by somebody else it may be of any length, and it is key and value of all that is written of the page.
  const isTooLong = task.canonicalUrl.length > MAX_URL_LENGTH && task.canonicalUrl !== identity(parsed)
  if (parsed.ok && !isTooLong) return { ok: true, task: filled, hadId, url: parsed.url }
  const cut = isTooLong ? { ...filled, canonicalUrl: filled.canonicalUrl.slice(0, MAX_URL_LENGTH) } : filled
  if (!parsed.ok) return { ok: false, task: cut, hadId, reason: 'bad-url', urlReason: parsed.reason, detail: parsed.detail }
  const detail = `the task's canonicalUrl has ${task.canonicalUrl.length} characters; expected at most ${MAX_URL_LENGTH}, or none`
  return { ok: false, task: cut, hadId, reason: 'bad-url', urlReason: 'too-long', detail }
}

/** A bad URL is its own identity, cut since it becomes a key. */
function identity(parsed: ReturnType<typeof parseFetchUrl>): string {
  return parsed.ok ? canonicalUrl(parsed.url) : parsed.text.slice(0, MAX_URL_LENGTH)
}

/** Without one, the trace id follows from the task, so that a redelivery goes on in the same trace. */
function traceIdOf(given: string | null, traceparent: string | undefined, taskId: string): string {
  if (given !== null && isTraceId(given)) return given
  return parseTraceParent(traceparent)?.traceId ?? h('trace', taskId)
}
