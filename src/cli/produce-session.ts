import { produce, type SeedText, seedLines, type TaskTemplate } from '../control/crawls/produce.ts'
import { requireOrMakeTopics } from '../control/runtime/topics.ts'
import { unlessAborted } from '../kernel/abort.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { requestProblem } from '../message/decode-task.ts'
import { wholeCount } from './arguments.ts'
import type { CommandContext } from './context.ts'
import { inputOf, refuseUnreadable } from './input-file.ts'
import { parseMoment } from './parse-moment.ts'
import { createProgress } from './progress.ts'
import { progressOptions } from './progress-options.ts'
import { strictSeeds, tellProduced, writtenText } from './seeds-report.ts'
import { withRuntime } from './with-runtime.ts'

export interface ProduceFlags {
  readonly file?: string
  readonly lane: 'high' | 'normal' | 'low'
  readonly crawl?: string
  readonly maxDepth?: string
  readonly meta: readonly string[]
  readonly header: readonly string[]
  readonly method?: string
  readonly body?: string
  readonly bodyFile?: string
  readonly notBefore?: string
  readonly expires?: string
  readonly limit?: string
  readonly strict?: boolean
  readonly ifChanged?: boolean
}

/** `produce`: what is good is written, what is bad is told with its line, and the exit code says which it was. */
export async function produceUrls(context: CommandContext, urls: readonly string[], flags: ProduceFlags): Promise<void> {
  if (urls.length === 0 && flags.file === undefined) throw new MillraceError('USAGE', 'give URLs, or --file FILE (- for standard input)')
  const { config } = context.loadConfig(flags.maxDepth === undefined ? {} : { 'crawl.maxDepth': flags.maxDepth })
  if (flags.maxDepth !== undefined && flags.crawl === undefined)
    throw new MillraceError('USAGE', '--max-depth: links are followed within a crawl; name it with --crawl ID')
  const template = templateOf(flags, config['crawl.maxDepth'], await bodyOf(flags, context.draining))
  if (template.body !== null && (template.method === 'GET' || template.method === 'HEAD'))
    context.note(`note: a ${template.method} with a body, which many servers pass over or refuse; leave out --method for a POST`)
  const alone = ofSeedsAlone(template)
  if (alone.length > 0) context.note(`note: ${alone.join(', ')}: of the URLs given alone; the links found from them go without`)
  if (flags.file !== undefined && flags.file !== '-') await refuseUnreadable(flags.file, '--file')
  const limit = flags.limit === undefined ? {} : { limit: wholeCount(flags.limit, '--limit') }
  const given = seedsOf(urls, flags.file)
  const seeds = flags.strict === true ? await strictSeeds(context, given) : given
  if (seeds === undefined) return
  const progress = createProgress(progressOptions(context))
  const report = await withRuntime(context, config, 'millrace produce', async (runtime) => {
    await requireOrMakeTopics(runtime)
    return produce(runtime, seeds, template, {
      ...limit,
      signal: context.draining,
      onProgress: ({ produced }) => progress.update({ text: writtenText(produced), fields: { produced } }),
    })
  })
  progress.finish()
  // Before it is told: nobody may read that.
  if (report.badCount > 0) context.setExitCode(report.produced === 0 ? 1 : 3)
  await tellProduced(context, report)
}

async function* seedsOf(urls: readonly string[], file: string | undefined): AsyncGenerator<SeedText> {
  for (const text of urls) yield { text, line: undefined }
  if (file !== undefined) yield* seedLines(inputOf(file))
}

function templateOf(flags: ProduceFlags, maxDepth: number, body: Buffer | null): TaskTemplate {
  const now = systemClock.now()
  const notBefore = flags.notBefore === undefined ? null : parseMoment(flags.notBefore, '--not-before', now, 'ahead')
  const expiresAt = flags.expires === undefined ? null : parseMoment(flags.expires, '--expires', now, 'ahead')
  if (expiresAt !== null && expiresAt <= Math.max(now, notBefore ?? 0)) {
    const before = notBefore !== null && expiresAt > now ? '--not-before' : 'now'
    throw new MillraceError('USAGE', `--expires: ${JSON.stringify(flags.expires)} is not after ${before}; nothing would be fetched`)
  }
  return {
    crawlId: flags.crawl ?? null,
    lane: flags.lane,
    maxDepth,
    method: methodOf(flags.method ?? (body === null ? 'GET' : 'POST')),
    headers: headersOf(flags.header),
    body,
    meta: pairs(flags.meta, '=', '--meta', 'name=value'),
    notBefore,
    expiresAt,
    ifChanged: flags.ifChanged === true,
  }
}

/** Options of a task that its links do not take over. Shape: those given, where links are followed. Pure. */
export function ofSeedsAlone({ crawlId, maxDepth, headers, ifChanged, expiresAt }: TaskTemplate): readonly string[] {
  if (crawlId === null || maxDepth === 0) return []
  const given = { '--header': Object.keys(headers).length > 0, '--if-changed': ifChanged, '--expires': expiresAt !== null }
  return Object.entries(given).flatMap(([option, isGiven]) => (isGiven ? [option] : []))
}

/** A task is one message, and a message of a task has less room than a page. */
const MAX_BODY_BYTES = 524_288

async function bodyOf(flags: ProduceFlags, signal: AbortSignal): Promise<Buffer | null> {
  const { body, bodyFile, file } = flags
  if (body !== undefined && bodyFile !== undefined) throw new MillraceError('USAGE', 'give --body or --body-file, not both')
  if (bodyFile === undefined) return body === undefined ? null : within(Buffer.from(body), '--body')
  if (bodyFile === '-' && file === '-') throw new MillraceError('USAGE', '--file and --body-file can not both be standard input')
  if (bodyFile !== '-') await refuseUnreadable(bodyFile, '--body-file')
  return within(await unlessAborted(signal, () => beginningOf(bodyFile)), '--body-file')
}

/** Of one that is too large no more than that shows it. */
async function beginningOf(file: string): Promise<Buffer> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of inputOf(file)) {
    pieces.push(piece)
    length += piece.length
    if (length > MAX_BODY_BYTES) break
  }
  return Buffer.concat(pieces)
}

function within(body: Buffer, option: string): Buffer {
  if (body.length <= MAX_BODY_BYTES) return body
  throw new MillraceError('USAGE', `${option}: more than ${MAX_BODY_BYTES} bytes; a task carries no larger body`)
}

/** Methods are told apart by case, and none in use has small letters. */
function methodOf(text: string): string {
  const method = text.toUpperCase()
  if (requestProblem({ method, headers: {} }) === undefined) return method
  throw new MillraceError('USAGE', `--method: ${JSON.stringify(text)} is no method for a page; such as GET, HEAD or POST`)
}

function headersOf(texts: readonly string[]): Record<string, string> {
  const headers = pairs(texts, ':', '--header', "'name: value'")
  for (const [name, value] of Object.entries(headers)) {
    const problem = requestProblem({ method: 'GET', headers: { [name]: value } })
    if (problem !== undefined) throw new MillraceError('USAGE', `--header: ${JSON.stringify(name)} ${problem[1]}`)
  }
  return headers
}

function pairs(texts: readonly string[], separator: string, option: string, form: string): Record<string, string> {
  const entries = texts.map((text) => {
    const at = text.indexOf(separator)
    if (at < 1) throw new MillraceError('USAGE', `${option}: ${JSON.stringify(text)} is not ${form}`)
    return [text.slice(0, at).trim(), text.slice(at + 1).trim()] as const
  })
  return Object.fromEntries(entries)
}
