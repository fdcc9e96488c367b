import { type DeadLetterFilter, type ListedDeadLetter, listDeadLetters, showDeadLetter } from '../control/dead-letters.ts'
import { parseTime } from '../control/parse-time.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { CommandContext } from './context.ts'
import { renderTable, toJson } from './render.ts'
import { withRuntime } from './with-runtime.ts'

export interface DeadLetterFlags {
  readonly stage?: string
  readonly code?: string
  readonly domain?: string
  readonly since?: string
  readonly max?: string
}

/** A table of more rows than this is printed in pieces, so that memory stays bounded. */
const ROWS_AT_ONCE = 500

export async function list(context: CommandContext, flags: DeadLetterFlags): Promise<void> {
  const { config } = context.loadConfig()
  const filter: DeadLetterFilter = {
    ...(flags.stage === undefined ? {} : { stage: flags.stage }),
    ...(flags.code === undefined ? {} : { code: flags.code }),
    ...(flags.domain === undefined ? {} : { domain: flags.domain }),
    ...(flags.since === undefined ? {} : { since: parseTime(flags.since, '--since', systemClock.now()) }),
    ...(flags.max === undefined ? {} : { max: maxOf(flags.max) }),
  }
  await withRuntime(context, config, 'millrace dead-letters list', async (runtime) => {
    let rows: string[][] = []
    let count = 0
    const flush = async (): Promise<void> => {
      if (rows.length > 0)
        await context.out(
          renderTable([{ title: 'P:N' }, { title: 'TIME' }, { title: 'STAGE' }, { title: 'CODE' }, { title: 'KEY', flexible: true }], rows),
        )
      rows = []
    }
    for await (const letter of listDeadLetters(runtime, filter, context.draining)) {
      count += 1
      if (context.globals.json) await context.out(toJson(letter))
      else rows.push(rowOf(letter))
      if (rows.length >= ROWS_AT_ONCE) await flush()
    }
    await flush()
    if (!context.globals.json)
      context.note(count === 0 ? 'no dead letters' : `${count} dead letters; \`millrace dead-letters show P:N\` shows one`)
  })
}

function rowOf({ partition, offset, timestamp, key, info }: ListedDeadLetter): string[] {
  return [`${partition}:${offset}`, new Date(timestamp).toISOString().slice(0, 19), info.stage ?? '', info.code ?? '', key ?? '']
}

export async function show(context: CommandContext, place: string, raw: boolean): Promise<void> {
  const match = /^(\d+):(\d+)$/.exec(place)
  if (match === null)
    throw new MillraceError('USAGE', `${JSON.stringify(place)} is not PARTITION:OFFSET, as \`dead-letters list\` shows them`)
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace dead-letters show', async (runtime) => {
    const letter = await showDeadLetter(runtime, Number(match[1]), BigInt(match[2] ?? 0))
    if (letter === undefined) throw new MillraceError('USAGE', `there is no dead letter at ${place}`)
    if (raw) {
      await new Promise<void>((resolve) => process.stdout.write(letter.value ?? Buffer.alloc(0), () => resolve()))
      return
    }
    if (context.globals.json) {
      await context.out(toJson({ ...letter, value: letter.value?.toString('base64') ?? null }))
      return
    }
    const { info } = letter
    await context.out(`${info.code ?? ''} at ${info.stage ?? ''}, ${new Date(letter.timestamp).toISOString()}`)
    await context.out(`${info.message ?? ''}`)
    if (info.extractor !== undefined) await context.out(`extractor ${info.extractor}`)
    if (info.original !== undefined)
      await context.out(`came from ${info.original.topic}, partition ${info.original.partition}, offset ${info.original.offset}`)
    await context.out(
      `key ${letter.key ?? '(none)'}, ${letter.bytes} bytes${info.truncated === undefined ? '' : `, cut: ${info.truncated.parts.join(', ')}`}`,
    )
    await context.out(preview(letter.value))
  })
}

/** Text as text, anything else as hex; the first bytes of it. */
function preview(value: Buffer | null): string {
  if (value === null) return '(no value)'
  const head = value.subarray(0, 512)
  const text = head.toString('utf8')
  const isText = !text.includes('\ufffd') && [...head].every((byte) => byte >= 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d)
  return `${isText ? text : head.toString('hex')}${value.length > head.length ? ' …' : ''}`
}

function maxOf(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new MillraceError('USAGE', `--max: ${JSON.stringify(text)} is not a whole number above 0`)
}
