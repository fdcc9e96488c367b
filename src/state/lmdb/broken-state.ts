import { MillraceError } from '../../kernel/errors.ts'

export function brokenState(path: string, found: string, cause?: unknown): MillraceError {
  return new MillraceError(
    'STATE_BROKEN',
    `the state in ${path} can not be used: ${found}. Stop all processes that use it, move the folder away and start again: ` +
      'what is queued goes on, but the URLs that were seen are forgotten, and page limits, back-offs and paces count anew',
    { cause, context: { path } },
  )
}
