import { MillraceError } from '../kernel/errors.ts'
import { isHeaderName, isHeaderValue } from '../kernel/header-field.ts'
import type { MessageCodec } from './codec.ts'
import type { UrlTask } from './generated/types.ts'
import { looksLikeJson, readUrlTaskJson } from './url-task-json.ts'

/**
 * A task from the bytes of a message on `urls*`: Avro in either framing with any known UrlTask schema, or JSON.
 * Errors: as MessageCodec.decode, and TASK_FIELD_INVALID naming a field that no request could be made of. Whether the URL can be
 * fetched is not asked here: a task with a bad URL is a task, and ends as one.
 */
export function decodeTask(codec: MessageCodec, value: Buffer | null): UrlTask {
  const isJson = value !== null && looksLikeJson(value)
  const task = isJson ? readUrlTaskJson(codec.schemas.current('UrlTask'), value) : codec.decode('UrlTask', value)
  const problem = fieldProblem(task)
  if (problem !== undefined) {
    const [field, what] = problem
    throw new MillraceError('TASK_FIELD_INVALID', `the task's field ${field} ${what}`, { context: { field } })
  }
  return task
}

/** Methods that are no request for a page of an origin. */
const REFUSED_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK'])
/**
 * Headers that belong to the connection or to the pace: a task that set them would break the one or get around the other. The codings are
 * those that we undo, whatever the task would say.
 */
const REFUSED_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
const MAX_ATTEMPT = 10_000

/** What no request could be made of. Shape: the field, and what is wrong with it. */
export function requestProblem({ method, headers }: Pick<UrlTask, 'method' | 'headers'>): readonly [string, string] | undefined {
  if (!/^[A-Z][A-Z-]{0,31}$/.test(method) || REFUSED_METHODS.has(method))
    return ['method', `is ${shown(method)}; expected an HTTP method in capitals, such as GET`]
  for (const [name, value] of Object.entries(headers)) {
    if (!isHeaderName(name)) return [`headers.${name.slice(0, 64)}`, 'is no name of a header']
    if (REFUSED_HEADERS.has(name.toLowerCase())) return [`headers.${name}`, "is a header that is not the task's to set"]
    if (!isHeaderValue(value)) return [`headers.${name}`, 'has characters that no header may hold']
  }
  return undefined
}

function fieldProblem(task: UrlTask): readonly [string, string] | undefined {
  const problem = requestProblem(task)
  if (problem !== undefined) return problem
  if (task.attempt < 1 || task.attempt > MAX_ATTEMPT) return ['attempt', `is ${task.attempt}; expected 1 or more`]
  for (const name of ['depth', 'maxDepth', 'round', 'sitemapLevel'] as const) {
    if (task[name] < 0) return [name, `is ${task[name]}; expected 0 or more`]
  }
  return undefined
}

function shown(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
}
