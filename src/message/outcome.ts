import type { Outcome, OutcomeKind, UrlTask } from './generated/types.ts'
import { fetchId } from './ids.ts'

/** How a task, or one attempt of it, ended. */
export interface TaskEnd {
  readonly kind: OutcomeKind
  /** Bounded code. */
  readonly reason: string | null
  /** Epoch ms. */
  readonly at: number
  /** Where a request was made. */
  readonly request?: { /** Epoch ms. */ readonly startedAt: number; readonly status: number | null }
}

/** RETRY alone is not final. */
export function isFinal(kind: OutcomeKind): boolean {
  return kind !== 'RETRY'
}

/** The outcome of a completed task. Shape: queuedMs is never negative, whatever the clocks of two machines say. */
export function outcomeOf(task: UrlTask, end: TaskEnd): Outcome {
  const { request } = end
  return {
    taskId: task.taskId,
    fetchId: request === undefined ? null : fetchId(task.taskId, task.attempt),
    url: task.url,
    canonicalUrl: task.canonicalUrl,
    kind: end.kind,
    reason: end.reason,
    status: request?.status ?? null,
    attempt: task.attempt,
    at: end.at,
    queuedMs: Math.max(0, Math.round((request?.startedAt ?? end.at) - (task.enqueuedAt ?? end.at))),
    crawlId: task.crawlId,
    jobId: task.jobId,
    traceId: task.traceId,
  }
}
