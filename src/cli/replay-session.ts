import type { Config } from '../config/options.ts'
import { envelopeText, loadConfigured } from '../control/extraction.ts'
import { parseAnyDuration, parseTime } from '../control/parse-time.ts'
import { planRange, type ReplayScope, rewindGroup, type StartRequest } from '../control/replay.ts'
import type { Runtime } from '../control/runtime.ts'
import { compareShadow, runShadow } from '../control/shadow-replay.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { nearestName } from '../kernel/nearest.ts'
import { createSchemaStore } from '../message/schema-store.ts'
import { writeComparison } from './comparison-summary.ts'
import type { CommandContext } from './context.ts'
import { createProgress } from './progress.ts'
import { renderCount, renderDuration, renderTable, toJson } from './render.ts'
import { progressOptions } from './run-session.ts'
import { withRuntime } from './with-runtime.ts'

export interface ReplayFlags {
  readonly extractor: string
  readonly toEarliest?: boolean
  readonly toDatetime?: string
  readonly byDuration?: string
  readonly toOffset?: string
  readonly shiftBy?: string
  readonly fromFile?: string
  readonly until?: string
  readonly topic?: string
  readonly domain?: string
  readonly crawl?: string
  readonly fetchedFrom?: string
  readonly fetchedUntil?: string
  readonly group?: string
}

export interface ReplayRunFlags extends ReplayFlags {
  readonly inPlace?: boolean
  readonly shadow?: boolean
  readonly out?: string
  readonly rate?: string
  readonly id?: string
  readonly drainTimeout: string
}

type Extractor = Awaited<ReturnType<typeof loadConfigured>>[number]
type Plan = Awaited<ReturnType<typeof planRange>>

/** `replay plan`: the range, and nothing is changed. */
export async function replayPlan(context: CommandContext, flags: ReplayFlags, asOffsets: boolean): Promise<void> {
  const { config } = context.loadConfig()
  const extractor = await extractorOf(config, flags.extractor)
  const scope = scopeOf(flags, config)
  await withRuntime(context, config, 'millrace replay plan', async (runtime) => {
    const plan = await planRange(runtime, runtime.groups.extract(flags.group), scope, false)
    if (asOffsets) {
      for (const { partition, from } of plan.partitions) await context.out(`${plan.topic},${partition},${from}`)
      return
    }
    if (context.globals.json)
      await context.out(toJson({ extractor: `${extractor.name}:${extractor.version}`, ...plan, filter: scope.filter }))
    else
      await writePlan(
        context,
        plan,
        extractor,
        Object.values(scope.filter).some((value) => value !== undefined),
      )
  })
}

/** `replay run`: in place on a stopped group at once; a shadow works until it is done. */
export async function replayRun(context: CommandContext, flags: ReplayRunFlags): Promise<void> {
  if ((flags.inPlace === true) === (flags.shadow === true)) {
    throw new MillraceError(
      'USAGE',
      'say --in-place (rewinds the group, which must be stopped) or --shadow (runs beside it, to a topic of its own)',
    )
  }
  const { config } = context.loadConfig()
  const extractor = await extractorOf(config, flags.extractor)
  const scope = scopeOf(flags, config)
  const drainTimeoutMs = parseAnyDuration(flags.drainTimeout, '--drain-timeout')
  const rate = flags.rate === undefined ? undefined : positive(flags.rate, '--rate')
  if (flags.inPlace === true && (flags.out !== undefined || rate !== undefined)) {
    throw new MillraceError('USAGE', '--out and --rate go with --shadow')
  }
  await withRuntime(context, config, 'millrace replay run', async (runtime) => {
    const replayId = flags.id ?? new Date(systemClock.now()).toISOString().replaceAll(/[-:.]/g, '').toLowerCase()
    if (!/^[a-zA-Z0-9._-]{1,64}$/.test(replayId))
      throw new MillraceError('USAGE', `--id: ${JSON.stringify(replayId)} may hold letters, digits, dots, dashes and underscores alone`)
    const plan = await planRange(runtime, runtime.groups.extract(flags.group), scope, flags.inPlace === true)
    if (flags.inPlace === true) await inPlace(context, runtime, { replayId, extractor, scope, plan, group: flags.group })
    else await shadow(context, runtime, { replayId, extractor, scope, plan, rate, out: flags.out, drainTimeoutMs })
  })
}

async function inPlace(
  context: CommandContext,
  runtime: Runtime,
  {
    replayId,
    extractor,
    scope,
    plan,
    group,
  }: { replayId: string; extractor: Extractor; scope: ReplayScope; plan: Plan; group: string | undefined },
): Promise<void> {
  const groupId = runtime.groups.extract(group)
  await rewindGroup(
    runtime,
    { replayId, groupId, extractor: extractor.name, extractorVersion: extractor.version, filter: scope.filter },
    plan,
  )
  if (context.globals.json) await context.out(toJson({ replayId, groupId, ...plan }))
  else {
    await context.out(
      `group ${groupId} is rewound by ${renderCount(plan.pages)} pages for ${extractor.name} version ${extractor.version} (replay ${replayId})`,
    )
    await context.out('start it again (`millrace run` or `millrace extract`) with that version: it replays, then goes on where it was')
  }
}

interface ShadowRequest {
  readonly replayId: string
  readonly extractor: Extractor
  readonly scope: ReplayScope
  readonly plan: Plan
  readonly rate: number | undefined
  readonly out: string | undefined
  readonly drainTimeoutMs: number
}

async function shadow(context: CommandContext, runtime: Runtime, request: ShadowRequest): Promise<void> {
  const progress = createProgress(progressOptions(context))
  const report = await runShadow(runtime, {
    ...request,
    filter: request.scope.filter,
    onProgress: ({ done, pages, elapsedMs }) => {
      const ratio = pages === 0n ? 1 : Number(done) / Number(pages)
      progress.update({
        text: `${renderCount(done)} of ${renderCount(pages)} pages`,
        ratio,
        ...(ratio > 0.02 ? { remainingMs: (elapsedMs / ratio) * (1 - ratio) } : {}),
        fields: { done: done.toString(), pages: pages.toString(), elapsedMs },
      })
    },
    onOutput: (text) => context.note(text),
    draining: context.draining,
    aborting: context.aborting,
  })
  progress.finish()
  if (report.interrupted) {
    context.note(`stopped; \`millrace replay run --shadow --id ${report.replayId}\` with the same flags goes on`)
    return
  }
  const comparison = await compareShadow(runtime, report.topic, request.extractor.name, {
    plan: request.plan,
    filter: request.scope.filter,
  })
  if (context.globals.json) {
    await context.out(toJson({ ...report, comparison }))
    return
  }
  await context.out(
    `${renderCount(report.pages)} pages, ${renderCount(report.records)} records, ${renderCount(report.deadLetters)} dead letters in ${renderDuration(report.elapsedMs)}; records are in ${report.topic}`,
  )
  await writeComparison(context, comparison)
}

async function writePlan(context: CommandContext, plan: Plan, extractor: Extractor, isFiltered: boolean): Promise<void> {
  const rows = plan.partitions.map(({ partition, from, until, pages, note }) => [
    String(partition),
    String(from),
    String(until),
    renderCount(pages),
    note ?? '',
  ])
  const right = 'right' as const
  await context.out(
    renderTable(
      [
        { title: 'PARTITION', align: right },
        { title: 'FROM', align: right },
        { title: 'UNTIL', align: right },
        { title: 'PAGES', align: right },
        { title: 'NOTE', flexible: true },
      ],
      rows,
    ),
  )
  await context.out(
    `${renderCount(plan.pages)} pages of ${plan.topic} for ${extractor.name} version ${extractor.version}; nothing was changed`,
  )
  if (isFiltered) await context.out('pages that the filter passes over are counted: which these are is known when they are read')
  if (plan.gone > 0n) await context.out(`${renderCount(plan.gone)} pages of the range are gone by retention`)
}

/** A file, or the name of an extractor of the configuration. */
async function extractorOf(config: Config, given: string): Promise<Extractor> {
  const envelope = envelopeText({ schemaStore: createSchemaStore() })
  if (/\.(ya?ml|json|[cm]?[jt]s)$/.test(given)) {
    const [extractor] = await loadConfigured(envelope, [given])
    if (extractor !== undefined) return extractor
  }
  const configured = await loadConfigured(envelope, config.extractors)
  const found = configured.find(({ name }) => name === given)
  if (found !== undefined) return found
  const names = configured.map(({ name }) => name)
  const near = nearestName(given, names)
  throw new MillraceError(
    'USAGE',
    `--extractor: there is no extractor ${given}${near === undefined ? '' : `; did you mean ${near}?`} (configured: ${names.join(', ') || 'none'}; a file works too)`,
  )
}

function scopeOf(flags: ReplayFlags, config: Config): ReplayScope {
  const now = systemClock.now()
  const time = (text: string | undefined, option: string): number | undefined =>
    text === undefined ? undefined : parseTime(text, option, now)
  const until = time(flags.until, '--until')
  const partitions = flags.topic === undefined ? undefined : partitionsOf(flags.topic, `${config['topics.prefix']}html`)
  return {
    start: startOf(flags, now),
    ...(until === undefined ? {} : { until }),
    ...(partitions === undefined ? {} : { partitions }),
    filter: {
      domain: flags.domain,
      crawlId: flags.crawl,
      fetchedFrom: time(flags.fetchedFrom, '--fetched-from'),
      fetchedUntil: time(flags.fetchedUntil, '--fetched-until'),
    },
  }
}

function startOf(flags: ReplayFlags, now: number): StartRequest {
  const given: StartRequest[] = []
  if (flags.toEarliest === true) given.push({ kind: 'earliest' })
  if (flags.toDatetime !== undefined) given.push({ kind: 'time', at: parseTime(flags.toDatetime, '--to-datetime', now) })
  if (flags.byDuration !== undefined) given.push({ kind: 'time', at: now - parseAnyDuration(flags.byDuration, '--by-duration') })
  if (flags.toOffset !== undefined) given.push({ kind: 'offset', offset: integer(flags.toOffset, '--to-offset') })
  if (flags.shiftBy !== undefined) given.push({ kind: 'shift', by: integer(flags.shiftBy, '--shift-by') })
  if (flags.fromFile !== undefined) given.push({ kind: 'file', path: flags.fromFile })
  if (given.length > 1)
    throw new MillraceError('USAGE', 'give one of --to-earliest, --to-datetime, --by-duration, --to-offset, --shift-by, --from-file')
  return given[0] ?? { kind: 'earliest' }
}

function partitionsOf(text: string, html: string): readonly number[] {
  const match = /^(.+):(\d+(?:,\d+)*)$/.exec(text)
  if (match === null || match[1] !== html)
    throw new MillraceError('USAGE', `--topic: expected ${html}:P,P, not ${JSON.stringify(text)}; pages lie on ${html} alone`)
  return (match[2] ?? '').split(',').map(Number)
}

function integer(text: string, option: string): bigint {
  if (/^-?\d{1,18}$/.test(text)) return BigInt(text)
  throw new MillraceError('USAGE', `${option}: ${JSON.stringify(text)} is no whole number`)
}

function positive(text: string, option: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  throw new MillraceError('USAGE', `${option}: ${JSON.stringify(text)} is not a number above 0`)
}
