import type { Lane, UrlTask } from '../message/generated/types.ts'
import { uuidV7 } from '../message/ids.ts'
import { newTraceId } from '../message/trace.ts'
import { newUrlTask } from '../message/url-task.ts'
import { canonicalUrl } from '../url/canonical-url.ts'
import { parseFetchUrl } from '../url/parse-url.ts'
import type { Runtime } from './runtime.ts'

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
  readonly headers: Readonly<Record<string, string>>
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
}

export interface ProduceOptions {
  readonly signal?: AbortSignal
  /** Adds the tasks to the accepted set of their crawl, so that its end can be known. */
  readonly accept?: (taskIds: readonly string[]) => Promise<void>
  readonly onProgress?: (produced: number) => void
}

const BATCH = 500
const BAD_SHOWN = 100

/** Writes tasks as they come in, a batch at a time. A bad line is reported and passed over; blank lines and comments are nothing. */
export async function produce(
  runtime: Runtime,
  seeds: AsyncIterable<SeedText> | Iterable<SeedText>,
  template: TaskTemplate,
  options: ProduceOptions = {},
): Promise<ProduceReport> {
  const publisher = await runtime.publisher()
  const bad: BadSeed[] = []
  let badCount = 0
  let produced = 0
  let batch: UrlTask[] = []
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return
    const tasks = batch
    batch = []
    await publisher.publish(tasks, options.signal === undefined ? {} : { signal: options.signal })
    await options.accept?.(tasks.map(({ taskId }) => taskId))
    produced += tasks.length
    options.onProgress?.(produced)
  }
  for await (const seed of seeds) {
    options.signal?.throwIfAborted()
    const text = seed.text.trim()
    if (text === '' || text.startsWith('#')) continue
    const parsed = parseFetchUrl(text)
    if (!parsed.ok) {
      badCount += 1
      if (bad.length < BAD_SHOWN) bad.push({ line: seed.line, text, reason: parsed.detail })
      continue
    }
    batch.push(taskOf(runtime, parsed.url, template))
    if (batch.length >= BATCH) await flush()
  }
  await flush()
  return { produced, badCount, bad }
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

/** Lines of a stream of text, numbered; a line is bounded, so that a file without line ends can't fill the memory. */
export async function* seedLines(chunks: AsyncIterable<string | Buffer>): AsyncGenerator<SeedText> {
  const decoder = new TextDecoder()
  let rest = ''
  let line = 0
  for await (const chunk of chunks) {
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    const lines = rest.split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ''
    for (const text of lines) {
      line += 1
      yield { text, line }
    }
    if (rest.length > MAX_LINE) {
      yield { text: rest.slice(0, MAX_LINE), line: line + 1 }
      rest = ''
    }
  }
  rest += decoder.decode()
  if (rest !== '') yield { text: rest.replace(/\r$/, ''), line: line + 1 }
}

const MAX_LINE = 1_048_576
