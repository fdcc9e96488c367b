import { ERRORS, type ErrorCode, errorText, isMillraceError } from '../kernel/errors.ts'
import { wellFormedJson } from '../kernel/well-formed-json.ts'

export interface ErrorReport {
  readonly exitCode: number
  /** For stderr, without a trailing line end. */
  readonly text: string
}

/** What a failed command says and returns. A stack only with --verbose; the causes always, since they tell what really happened. */
export function reportError(error: unknown, options: { verbose: boolean; json: boolean }): ErrorReport {
  const chain = allCauses(error)
  const causes = chain.map(errorText)
  // A frame around an error of the catalogue ("fetch could not go on") says where, not what.
  const known = [error, ...chain].find((each) => isMillraceError(each))
  const code = isMillraceError(known) ? known.code : codeOf(error)
  const { exitCode, hint } = ERRORS[code]
  if (options.json) {
    const context = isMillraceError(error) ? error.context : {}
    const text = JSON.stringify({ error: { code, message: errorText(error), hint, causes, context } }, (_, value: unknown) =>
      typeof value === 'bigint' ? value.toString() : value,
    )
    return { exitCode, text: wellFormedJson(text) }
  }
  const lines = [`error: ${errorText(error)}`, ...causes.map((cause) => `  because: ${cause}`), `  ${hint} (${code})`]
  if (options.verbose && error instanceof Error && error.stack !== undefined) lines.push(error.stack)
  return { exitCode, text: lines.join('\n') }
}

/**
 * The code of what nobody has put into the catalogue, by what the system or a library calls it. A connection that failed has none: it is
 * not known here whose it was, and whoever made it should have said.
 */
function codeOf(error: unknown): ErrorCode {
  if (!(error instanceof Error)) return 'INTERNAL'
  const { name, code } = error as Error & { readonly code?: unknown }
  if (name === 'AbortError' || code === 'ABORT_ERR') return 'ABORTED'
  if (name === 'TimeoutError' || code === 'ETIMEDOUT') return 'TIMEOUT'
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'DISK_FULL'
  return name.startsWith('KafkaJS') ? 'KAFKA_REQUEST_FAILED' : 'INTERNAL'
}

/** Every cause, none with a text that came before; an AggregateError gives one per error. */
function allCauses(error: unknown): unknown[] {
  const causes = new Map<string, unknown>()
  const seen = new Set<unknown>([error])
  const queue: unknown[] = error instanceof Error ? next(error) : []
  for (let cause = queue.shift(); cause !== undefined; cause = queue.shift()) {
    if (seen.has(cause) || causes.size >= 8) continue
    seen.add(cause)
    const text = errorText(cause)
    if (!causes.has(text)) causes.set(text, cause)
    if (cause instanceof Error) queue.push(...next(cause))
  }
  return [...causes.values()]
}

function next(error: Error): unknown[] {
  const inner = error instanceof AggregateError ? [...error.errors] : []
  return error.cause === undefined ? inner : [...inner, error.cause]
}
