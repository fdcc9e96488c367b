import {
  type DeadLetterFilter,
  deadLetterStats,
  listDeadLetters,
  type NamedDeadLetter,
  showDeadLetter,
} from '../control/dead-letters/dead-letters.ts'
import { type ResolveReport, resolveDeadLetters } from '../control/dead-letters/requeue.ts'
import { existingDomain } from '../control/sites/site-domain.ts'
import { STAGES } from '../control/stages/stage-names.ts'
import { systemClock } from '../kernel/clock.ts'
import { ERRORS, MillraceError } from '../kernel/errors.ts'
import { nearestName } from '../kernel/nearest.ts'
import type { DeadLetterAction } from '../message/dead-letter-marks.ts'
import { placeInTopic } from '../message/put-back.ts'
import { parsePlace, wholeCount } from './arguments.ts'
import type { CommandContext } from './context.ts'
import { deadLetterTable, keyText, timeText } from './dead-letter-table.ts'
import { parseMoment } from './parse-moment.ts'
import { counted, renderCount, renderTable, toJson } from './render.ts'
import { singleLine } from './terminal-text.ts'
import { withRuntime } from './with-runtime.ts'

export interface DeadLetterFlags {
  readonly stage?: string
  readonly code?: string
  readonly domain?: string
  readonly since?: string
  readonly limit?: string
  readonly all?: boolean
  readonly execute?: boolean
}

/** A table of more rows than this is printed in pieces, so that memory stays bounded. */
const ROWS_AT_ONCE = 500
const AS_LISTED = { hint: ', as `dead-letters list` shows them' }

export async function list(context: CommandContext, flags: DeadLetterFlags): Promise<void> {
  const { config } = context.loadConfig()
  const filter = filterOf(flags)
  await withRuntime(context, config, 'millrace dead-letters list', async (runtime) => {
    let rows: NamedDeadLetter[] = []
    let count = 0
    const flush = async (): Promise<void> => {
      // The URL whole, as wide as it is: what tells two pages apart is its end.
      if (rows.length > 0) await context.out(deadLetterTable(rows))
      rows = []
    }
    for await (const letter of listDeadLetters(runtime, filter, context.draining)) {
      count += 1
      if (context.globals.json) await context.out(toJson(letter))
      else rows.push(letter)
      if (rows.length >= ROWS_AT_ONCE) await flush()
    }
    await flush()
    if (!context.globals.json)
      context.note(count === 0 ? 'no dead letters' : `${counted(count, 'dead letter')}; \`millrace dead-letters show P:N\` shows one`)
  })
}

export async function show(context: CommandContext, place: string, raw: boolean): Promise<void> {
  const { partition, offset } = parsePlace(place, AS_LISTED)
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace dead-letters show', async (runtime) => {
    const letter = await showDeadLetter(runtime, partition, offset)
    if (letter === undefined) throw new MillraceError('USAGE', `there is no dead letter at ${place}`)
    if (raw) {
      await new Promise<void>((resolve) => process.stdout.write(letter.value ?? Buffer.alloc(0), () => resolve()))
      return
    }
    if (context.globals.json) {
      await context.out(toJson({ ...letter, value: letter.value?.toString('base64') ?? null }))
      return
    }
    const { info, resolved } = letter
    const line = (text: string): Promise<void> => context.out(singleLine(text))
    await line(`${info.code ?? ''} at ${info.stage ?? ''}, ${new Date(letter.timestamp).toISOString()}`)
    await line(`${info.message ?? ''}`)
    if (resolved !== undefined) await line(`${resolved.action} ${new Date(resolved.at).toISOString()}`)
    if (info.extractor !== undefined) await line(`extractor ${info.extractor}`)
    if (info.replay !== undefined) await line(`written by replay ${info.replay}`)
    if (info.original !== undefined)
      await line(`came from ${info.original.topic}, partition ${info.original.partition}, offset ${info.original.offset}`)
    if (info.copy !== undefined) await line(`what failed was put back at ${info.copy.partition}:${info.copy.offset}`)
    if (letter.url !== null && letter.url !== letter.key) await line(`URL ${letter.url}`)
    await line(
      `key ${letter.key ?? '(none)'}, ${counted(letter.bytes, 'byte')}${info.truncated === undefined ? '' : `, cut: ${info.truncated.parts.join(', ')}`}`,
    )
    // Avro is nothing to look at; the message that it was is still where it came from, as long as that is kept.
    if (isAvro(letter.value, info.code) && info.original !== undefined) {
      const { topic, partition, offset } = { ...info.original, ...info.copy }
      await line(`what it holds: millrace consume ${topic} --offset ${partition}:${offset} --max 1`)
    } else await line(preview(letter.value))
  })
}

export async function stats(context: CommandContext, flags: DeadLetterFlags): Promise<void> {
  const { config } = context.loadConfig()
  const filter = filterOf(flags)
  await withRuntime(context, config, 'millrace dead-letters stats', async (runtime) => {
    const report = await deadLetterStats(runtime, filter, context.draining)
    if (context.globals.json) {
      await context.out(toJson(report))
      return
    }
    const { open, requeued, dropped, oldestAt, newestAt } = report
    await context.out(`${renderCount(open)} open, ${renderCount(requeued)} requeued, ${renderCount(dropped)} dropped`)
    if (oldestAt !== null && newestAt !== null) await context.out(`the open ones from ${timeText(oldestAt)} to ${timeText(newestAt)}`)
    const others = report.otherDomains === 0 ? {} : { '(others)': report.otherDomains }
    for (const [title, counts] of [
      ['STAGE', report.byStage],
      ['CODE', report.byCode],
      ['REASON', report.byReason],
      ['DOMAIN', { ...report.byDomain, ...others }],
    ] as const) {
      if (Object.keys(counts).length === 0) continue
      await context.out('')
      await context.out(
        renderTable(
          [
            { title, flexible: true },
            { title: 'OPEN', align: 'right' },
          ],
          Object.entries(counts).map(([name, count]) => [name, renderCount(count)]),
        ),
      )
    }
  })
}

/** `requeue` and `drop`. Exit code 3 where some had to be left. */
export async function resolve(
  context: CommandContext,
  action: DeadLetterAction,
  places: readonly string[],
  flags: DeadLetterFlags,
): Promise<void> {
  const { config } = context.loadConfig()
  const filter = filterOf(flags, places)
  const execute = flags.execute === true
  const owner = `millrace dead-letters ${action === 'requeued' ? 'requeue' : 'drop'}`
  await withRuntime(context, config, owner, async (runtime) => {
    const report = await resolveDeadLetters(runtime, { action, filter, execute, signal: context.draining })
    if (context.globals.json) await context.out(toJson(report))
    else await writeResolved(context, report)
    if (Object.keys(report.left).length > 0) context.setExitCode(3)
  })
}

async function writeResolved(context: CommandContext, report: ResolveReport): Promise<void> {
  const { executed, interrupted, tasks, pages, ownPages, samePage, dropped, left, already, examples } = report
  if (interrupted) context.note('stopped; the same command again goes on with the rest')
  for (const { place, action } of already) context.note(`${place} was ${action} before`)
  const leftCount = Object.values(left).reduce((sum, count) => sum + (count ?? 0), 0)
  const count = tasks + pages + samePage + dropped + leftCount
  if (count === 0) {
    if (!interrupted) context.note(already.length > 0 ? 'nothing to do' : 'no dead letters')
    return
  }
  await context.out(
    renderTable(
      [{ title: 'P:N' }, { title: 'CODE' }, { title: executed ? 'BECAME' : 'WOULD BE' }, { title: 'URL', flexible: true }],
      examples.map(({ place, code, becomes, reason, key, url }) => [
        place,
        code ?? '',
        becomes === 'left' ? `left: ${reason ?? ''}` : BECOMES[becomes],
        url ?? keyText(key),
      ]),
    ),
  )
  if (count > examples.length) await context.out(`and ${renderCount(count - examples.length)} more`)
  const parts = [
    ...(tasks > 0 ? [`${counted(tasks, 'new task')}`] : []),
    ...(pages > 0 ? [`${counted(pages, 'page')} for extract`] : []),
    ...(samePage > 0 ? [`${renderCount(samePage)} more of the same pages`] : []),
    ...(dropped > 0 ? [`${renderCount(dropped)} dropped`] : []),
    ...Object.entries(left).map(([reason, count]) => `${renderCount(count ?? 0)} left as they are: ${reason}`),
  ]
  await context.out(`\n${executed ? '' : 'would be '}${parts.join(', ')}`)
  if (ownPages > 0)
    context.note(
      `${renderCount(ownPages)} of the pages are pages of their own: html was made anew since, and where they lay is another message, or none`,
    )
  if (!executed) context.note('nothing was written: add --execute')
}

const BECOMES = { task: 'new task', page: 'page', 'own-page': 'page of its own', 'same-page': 'same page', dropped: 'dropped' } as const

function filterOf(flags: DeadLetterFlags, places: readonly string[] = []): DeadLetterFilter {
  const named = new Set(places.map((place) => placeInTopic(parsePlace(place, AS_LISTED))))
  checkName('--stage', flags.stage, STAGES)
  checkName('--code', flags.code, Object.keys(ERRORS))
  return {
    ...(flags.stage === undefined ? {} : { stage: flags.stage }),
    ...(flags.code === undefined ? {} : { code: flags.code }),
    ...(flags.domain === undefined ? {} : { domain: URL.canParse(`http://${flags.domain}`) ? existingDomain(flags.domain) : flags.domain }),
    ...(flags.since === undefined ? {} : { since: parseMoment(flags.since, '--since', systemClock.now()) }),
    ...(flags.limit === undefined ? {} : { limit: wholeCount(flags.limit, '--limit') }),
    ...(flags.all === true ? { withResolved: true } : {}),
    ...(named.size === 0 ? {} : { places: named }),
  }
}

/** A name that no dead letter can have would find none, and look like all being well. Errors: USAGE. */
function checkName(flag: string, given: string | undefined, known: readonly string[]): void {
  if (given === undefined || known.includes(given)) return
  const near = nearestName(given, known)
  const hint =
    near !== undefined
      ? `; did you mean ${near}?`
      : known.length > 10
        ? '; `millrace dead-letters stats` shows those that there are'
        : `; expected one of ${known.join(', ')}`
  throw new MillraceError('USAGE', `${flag}: dead letters have no ${JSON.stringify(given)}${hint}`)
}

/** In single-object encoding or a registry's framing; where it could not be decoded the bytes are what there is to see. */
function isAvro(value: Buffer | null, code: string | undefined): boolean {
  if (value === null || code?.startsWith('MESSAGE_') === true) return false
  return value[0] === 0 || (value[0] === 0xc3 && value[1] === 0x01)
}

/** Text as text, anything else as hex; the first bytes of it. */
function preview(value: Buffer | null): string {
  if (value === null) return '(no value)'
  const head = value.subarray(0, 512)
  const text = head.toString('utf8')
  const isText = !text.includes('\ufffd') && [...head].every((byte) => byte >= 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d)
  return `${isText ? text : head.toString('hex')}${value.length > head.length ? ' …' : ''}`
}
