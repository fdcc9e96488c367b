import type { TaskEndings } from './task-endings.ts'
import type { IntakeVerdict } from './task-intake.ts'

/** The end of an entry that asks nothing of a site. */
export async function endWithoutQueue(
  endings: TaskEndings,
  verdict: Exclude<IntakeVerdict, { readonly kind: 'ready' | 'held-back' }>,
  now: number,
): Promise<void> {
  switch (verdict.kind) {
    case 'malformed':
      return endings.malformed(verdict.entry, verdict.error)
    case 'repeat':
      return endings.repeat(verdict.entry)
    case 'moved':
      return endings.moved(verdict.entry, verdict.task)
    case 'delayed':
      return endings.delayed(verdict.entry, verdict.task, verdict.dueAt)
    case 'ended': {
      const { entry, task, end, detail } = verdict
      const failure = { code: 'TASK_URL_INVALID', message: detail ?? end.reason } as const
      return endings.final(entry, task, { ...end, at: now }, end.kind === 'FAILED' ? { failure } : {})
    }
  }
}
