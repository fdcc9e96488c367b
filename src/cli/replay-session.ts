import { parseAnyDuration } from '../control/parse-time.ts'
import { planRange, type ReplayScope, rewindGroup } from '../control/replay.ts'
import { estimateRange, type RangeEstimate } from '../control/replay-estimate.ts'
import { expectedPlan, previewReplay } from '../control/replay-preview.ts'
import type { Runtime } from '../control/runtime.ts'
import { compareShadow, runShadow } from '../control/shadow-replay.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { writeComparison, writePreview } from './comparison-summary.ts'
import type { CommandContext } from './context.ts'
import { createProgress } from './progress.ts'
import { counted, renderBytes, renderCount, renderDuration, renderTable, toJson } from './render.ts'
import { type Extractor, extractorOf, positive, type ReplayFlags, scopeOf } from './replay-scope.ts'
import { progressOptions } from './run-session.ts'
import { withRuntime } from './with-runtime.ts'

export interface ReplayRunFlags extends ReplayFlags {
  readonly inPlace?: boolean
  readonly shadow?: boolean
  readonly out?: string
  readonly rate?: string
  readonly id?: string
  /** Hash of a preview. */
  readonly expect?: string
  readonly drainTimeout: string
}

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
    const estimate = await estimateRange(runtime, plan, { extractor, filter: scope.filter, signal: context.draining })
    if (context.globals.json)
      await context.out(toJson({ extractor: `${extractor.name}:${extractor.version}`, ...plan, filter: scope.filter, estimate }))
    else await writePlan(context, plan, extractor, estimate)
  })
}

export interface PreviewFlags extends ReplayFlags {
  readonly sample?: string
  readonly all?: boolean
  readonly against?: string
}

const SAMPLE_PAGES = 200

/** `replay preview`: what would change; no message is written. */
export async function replayPreview(context: CommandContext, flags: PreviewFlags): Promise<void> {
  if (flags.all === true && flags.sample !== undefined) throw new MillraceError('USAGE', 'give --sample or --all, not both')
  const { config } = context.loadConfig()
  const extractor = await extractorOf(config, flags.extractor)
  const against = flags.against === undefined ? undefined : await extractorOf(config, flags.against, '--against')
  const scope = scopeOf(flags, config)
  const sample = flags.all === true ? 'all' : flags.sample === undefined ? SAMPLE_PAGES : Math.ceil(positive(flags.sample, '--sample'))
  await withRuntime(context, config, 'millrace replay preview', async (runtime) => {
    const plan = await planRange(runtime, runtime.groups.extract(flags.group), scope, false)
    const progress = createProgress(progressOptions(context))
    const report = await previewReplay(runtime, {
      extractor,
      against,
      plan,
      filter: scope.filter,
      sample,
      onProgress: ({ done, pages, elapsedMs }) =>
        progress.update({
          text: `${renderCount(done)} pages`,
          ...(sample === 'all' ? { ratio: pages === 0 ? 1 : done / pages } : {}),
          fields: { done, pages, elapsedMs },
        }),
      onOutput: (text) => context.note(text),
      signal: context.draining,
    })
    progress.finish()
    if (context.globals.json) await context.out(toJson(report))
    else await writePreview(context, report)
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
    const plan =
      flags.expect === undefined
        ? await planRange(runtime, runtime.groups.extract(flags.group), scope, flags.inPlace === true)
        : (await expectedPlan(runtime, flags.expect, extractor, scope.filter)).plan
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
  const comparison = await compareShadow(runtime, report.topic, request.extractor, {
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

async function writePlan(context: CommandContext, plan: Plan, extractor: Extractor, estimate: RangeEstimate): Promise<void> {
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
  const about = estimate.isExact ? '' : 'about '
  await context.out(
    `${counted(plan.pages, 'page')} of ${plan.topic}, ${about}${renderBytes(estimate.bytes)}; ${about}${renderCount(estimate.matched)} for ${extractor.name} version ${extractor.version}`,
  )
  if (estimate.seconds !== null && estimate.pagesPerSecond !== null) {
    const from = {
      'last replay': 'the pace of its last replay',
      sample: `measured on ${counted(Math.min(estimate.looked, estimate.matched), 'page')}`,
      cap: 'the cap',
    }
    await context.out(
      `about ${renderDuration(estimate.seconds * 1000)} in one process, at ${renderCount(Math.round(estimate.pagesPerSecond))} pages/s (${from[estimate.rateFrom ?? 'sample']})`,
    )
  }
  if (plan.gone > 0n)
    await context.out(`${counted(plan.gone, 'page')} of the range are gone by retention; ${renderCount(plan.pages)} are left`)
  await context.out('nothing was changed')
}
