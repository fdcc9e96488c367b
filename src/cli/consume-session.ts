import { type ConsumeOptions, type ConsumeStart, consume } from '../control/consume.ts'
import { existingDomain } from '../control/sites/site-domain.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { parsePlace, wholeCount } from './arguments.ts'
import type { CommandContext } from './context.ts'
import { parseMoment, refuseEmptySpan } from './parse-moment.ts'
import { toJson } from './render.ts'
import { singleLine } from './terminal-text.ts'
import { withRuntime } from './with-runtime.ts'

export interface ConsumeFlags {
  readonly fromBeginning?: boolean
  readonly offset?: string
  readonly from?: string
  readonly to?: string
  readonly max?: string
  readonly follow?: boolean
  readonly crawl?: string
  readonly domain?: string
  readonly body?: boolean
}

export async function consumeMessages(context: CommandContext, what: string, flags: ConsumeFlags): Promise<void> {
  const { config } = context.loadConfig()
  const now = systemClock.now()
  const start = startOf(flags, now)
  const until = flags.to === undefined ? undefined : parseMoment(flags.to, '--to', now)
  refuseEmptySpan(['--from', start.kind === 'time' ? start.at : undefined], ['--to', until])
  const options: ConsumeOptions = {
    what,
    start,
    ...(until === undefined ? {} : { until }),
    ...(flags.max === undefined ? {} : { max: wholeCount(flags.max, '--max') }),
    follow: flags.follow === true,
    ...(flags.crawl === undefined ? {} : { crawlId: flags.crawl }),
    ...(flags.domain === undefined ? {} : { domain: existingDomain(flags.domain) }),
    body: flags.body === true,
    signal: context.draining,
  }
  await withRuntime(context, config, 'millrace consume', async (runtime) => {
    for await (const { offset, ...message } of consume(runtime, options)) {
      const { topic, partition, ...rest } = message
      if (message.bodyProblem !== undefined) {
        context.err(singleLine(`${topic} ${partition}:${offset}: ${message.bodyProblem}`))
        context.setExitCode(3)
      }
      await context.out(toJson({ topic, partition, offset: offset <= MAX_SAFE ? Number(offset) : offset, ...rest }))
    }
  })
}

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER)

function startOf(flags: ConsumeFlags, now: number): ConsumeStart {
  const given: ConsumeStart[] = []
  if (flags.fromBeginning === true) given.push({ kind: 'beginning' })
  if (flags.from !== undefined) given.push({ kind: 'time', at: parseMoment(flags.from, '--from', now) })
  if (flags.offset !== undefined) given.push({ kind: 'offset', ...parsePlace(flags.offset, { option: '--offset' }) })
  if (given.length > 1) throw new MillraceError('USAGE', 'give one of --from-beginning, --offset, --from')
  return given[0] ?? (flags.follow === true ? { kind: 'end' } : { kind: 'beginning' })
}
