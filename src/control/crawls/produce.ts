import type { Clock } from '../../kernel/clock.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { requestProblem } from '../../message/decode-task.ts'
import type { Lane, UrlTask } from '../../message/generated/types.ts'
import { uuidV7 } from '../../message/ids.ts'
import { newTraceId } from '../../message/trace.ts'
import { newUrlTask } from '../../message/url-task.ts'
import { canonicalUrl } from '../../url/canonical-url.ts'
import { parseFetchUrl } from '../../url/parse-url.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { batches } from './batches.ts'
import { refuseStopped } from './stopped-crawls.ts'

/** One line of input, or one argument. */
export interface SeedText {
  readonly text: string
  /** Line of the input, from 1; undefined for an argument. */
  readonly line: number | undefined
}

/** What all tasks of one call share. */
export interface TaskTemplate {
  readonly crawlId: string | null
  readonly lane: Lane
  readonly maxDepth: number
  /** GET where not given. */
  readonly method?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | null
  readonly meta: Readonly<Record<string, string>>
  /** Epoch ms. */
  readonly notBefore: number | null
  readonly expiresAt: number | null
  readonly ifChanged: boolean
}

export interface BadSeed {
  readonly line: number | undefined
  readonly text: string
  readonly reason: string
}

export interface ProduceReport {
  readonly produced: number
  readonly badCount: number
  /** The first of the bad lines. */
  readonly bad: readonly BadSeed[]
  /** A signal ended it before the input did. */
  readonly interrupted: boolean
  /** The last line that was worked then. */
  readonly lastLine?: number
}

interface WritingOptions {
  /** Ends the reading; what was read is still written. */
  readonly signal?: AbortSignal
  /** Adds the tasks to the accepted set of their crawl, so that its end can be known. */
  readonly accept?: (taskIds: readonly string[]) => Promise<unknown>
  /** What is written so far. */
  readonly onProgress?: (report: Omit<ProduceReport, 'interrupted' | 'lastLine'>) => void
  /** Most URLs that are written; bad, blank and comment lines do not count, and what stands behind the last one is not read. */
  readonly limit?: number
}

const BATCH = 500
/** A slow input is written as it comes, not when a batch is full. */
const LINGER_MS = 100
/** For the last batch after a signal; without it a broker that is away would hold the process for ever. */
const LAST_BATCH_MS = 5000
const BAD_SHOWN = 100
/** Of a bad line that is shown: a file without line ends is one long line. */
const BAD_TEXT_SHOWN = 200

/**
 * Writes tasks as they come in, a batch at a time. A bad line is reported and passed over; blank lines and comments are nothing.
 * Errors: TASK_FIELD_INVALID where no request could be made of the template, USAGE where its crawl is stopped.
 */
export async function produce(
  runtime: Runtime,
  seeds: AsyncIterable<SeedText> | Iterable<SeedText>,
  template: TaskTemplate,
  options: WritingOptions = {},
): Promise<ProduceReport> {
  const problem = requestProblem({ method: template.method ?? 'GET', headers: template.headers })
  if (problem !== undefined) throw new MillraceError('TASK_FIELD_INVALID', `the task's field ${problem.join(' ')}`)
  if (template.crawlId !== null) await refuseStopped(runtime, template.crawlId)
  const publisher = await runtime.publisher()
  const { signal, limit = Number.POSITIVE_INFINITY } = options
  const { clock } = runtime
  const late = lateSignal(clock, signal)
  const bad = new BadSeeds()
  let produced = 0
  let lastLine: number | undefined
  const tasksOf = (batch: readonly SeedText[]): UrlTask[] => {
    const tasks: UrlTask[] = []
    for (const seed of batch) {
      if (produced + tasks.length >= limit) break
      const read = readSeed(seed)
      if (read.kind === 'bad') bad.add(read.bad)
      else if (read.kind === 'url') tasks.push(taskOf(runtime, read.url, template))
    }
    return tasks
  }
  try {
    for await (const batch of batches(seeds, { size: BATCH, lingerMs: LINGER_MS, clock, ...(signal === undefined ? {} : { signal }) })) {
      const tasks = tasksOf(batch)
      if (tasks.length > 0) await publisher.publish(tasks, { signal: late.signal })
      lastLine = batch.at(-1)?.line
      if (tasks.length === 0) continue
      produced += tasks.length
      options.onProgress?.({ produced, badCount: bad.count, bad: bad.first })
      await options.accept?.(tasks.map(({ taskId }) => taskId))
      if (produced >= limit) break
    }
  } finally {
    late.release()
  }
  const interrupted = signal?.aborted === true
  return { produced, badCount: bad.count, bad: bad.first, interrupted, ...(interrupted && lastLine !== undefined ? { lastLine } : {}) }
}

export type ReadSeed =
  | { readonly kind: 'url'; readonly url: URL }
  /** A blank line or a comment. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'bad'; readonly bad: BadSeed }

/** What a line says. Shape: a `#` begins a comment at the start of a line alone; behind a URL it begins its fragment. */
export function readSeed({ text: raw, line }: SeedText): ReadSeed {
  const text = raw.trim()
  // What is no line was given as a URL: an argument of which an unset variable has left nothing.
  const isBlankLine = text === '' && line !== undefined
  if (isBlankLine || text.startsWith('#')) return { kind: 'nothing' }
  const parsed = parseFetchUrl(text)
  // A URL parser takes two URLs with a space between them for one, and drops a tab. The fragment may be anything: nobody is asked for it.
  if (parsed.ok && line !== undefined && /^[^#]*[\s\p{Cc}]/u.test(text)) {
    const shown = shortened(text)
    const reason = `${JSON.stringify(shown)} has white space or a control character within it: one URL a line, and a space of a URL as %20`
    return { kind: 'bad', bad: { line, text: shown, reason } }
  }
  return parsed.ok ? { kind: 'url', url: parsed.url } : { kind: 'bad', bad: { line, text: shortened(parsed.text), reason: parsed.detail } }
}

/** Bad seeds: all are counted, the first ones kept. */
export class BadSeeds {
  readonly #first: BadSeed[] = []
  #count = 0

  get first(): readonly BadSeed[] {
    return this.#first
  }

  get count(): number {
    return this.#count
  }

  add(bad: BadSeed): void {
    this.#count += 1
    if (this.#first.length < BAD_SHOWN) this.#first.push(bad)
  }
}

/** Aborted some time after the given one, with its reason. */
function lateSignal(clock: Clock, signal: AbortSignal | undefined): { signal: AbortSignal; release: () => void } {
  const late = new AbortController()
  let disarm = (): void => undefined
  const onAbort = (): void => {
    disarm = clock.timer(LAST_BATCH_MS, () => late.abort(signal?.reason))
  }
  if (signal?.aborted === true) onAbort()
  else signal?.addEventListener('abort', onAbort, { once: true })
  return {
    signal: late.signal,
    release: () => {
      disarm()
      signal?.removeEventListener('abort', onAbort)
    },
  }
}

function shortened(text: string): string {
  return text.length <= BAD_TEXT_SHOWN ? text : `${text.slice(0, BAD_TEXT_SHOWN)}…`
}

function taskOf(runtime: Runtime, url: URL, template: TaskTemplate): UrlTask {
  return newUrlTask({
    ...template,
    url: url.href,
    canonicalUrl: canonicalUrl(url),
    taskId: uuidV7(runtime.clock),
    seedUrl: url.href,
    dedup: template.crawlId === null ? 'none' : 'crawl',
    traceId: newTraceId(),
    enqueuedAt: runtime.clock.now(),
  })
}

/** Characters of a line; no URL is near it. */
const MAX_LINE = 1_048_576

/**
 * Lines of a stream of text, numbered from 1. Shape: LF, CRLF and CR end a line. Of a line beyond a million characters the beginning is
 * given and the rest passed over, so that a file without line ends can't fill the memory. Errors: USAGE for gzip and UTF-16.
 */
export async function* seedLines(chunks: AsyncIterable<string | Buffer>): AsyncGenerator<SeedText> {
  const decoder = new TextDecoder()
  let rest = ''
  let line = 0
  let isCut = false
  let head = Buffer.alloc(0)
  for await (const chunk of chunks) {
    if (typeof chunk !== 'string' && head.length < 2) {
      head = Buffer.concat([head, chunk.subarray(0, 2)])
      refuseUnreadableText(head)
    }
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    // A CR at the end may be half of a CRLF.
    const lines = rest.split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ''
    for (const text of lines) {
      line += 1
      if (!isCut) yield { text, line }
      isCut = false
    }
    if (rest.length > MAX_LINE) {
      if (!isCut) yield { text: rest.slice(0, MAX_LINE), line: line + 1 }
      isCut = true
      rest = rest.endsWith('\r') ? '\r' : ''
    }
  }
  rest += decoder.decode()
  if (rest !== '' && !isCut) yield { text: rest.replace(/\r$/, ''), line: line + 1 }
}

/** Each of its lines would be a bad one. */
function refuseUnreadableText(head: Buffer): void {
  const mark = head.toString('hex', 0, 2)
  if (mark === '1f8b')
    throw new MillraceError('USAGE', 'the list of URLs is packed with gzip; unpack it: `zcat FILE | millrace produce --file -`')
  if (mark === 'fffe' || mark === 'feff')
    throw new MillraceError(
      'USAGE',
      'the list of URLs is UTF-16; write it anew: `iconv -f UTF-16 -t UTF-8 FILE | millrace produce --file -`',
    )
}
