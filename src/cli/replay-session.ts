import { SAMPLE_PAGES } from '../control/defaults.ts'
import type { LoadedExtractor } from '../control/extractors/configured-extractors.ts'
import { rangeGroup } from '../control/groups/extract-groups.ts'
import { offsetLines, planRange, type ReplayPlan } from '../control/trials/plan-range.ts'
import { estimateRange, type RangeEstimate } from '../control/trials/replay-estimate.ts'
import { previewReplay } from '../control/trials/replay-preview.ts'
import { durationText } from '../kernel/duration-text.ts'
import { MillraceError } from '../kernel/errors.ts'
import { wholeCount } from './arguments.ts'
import { writePreview } from './comparison-summary.ts'
import type { CommandContext } from './context.ts'
import { createProgress } from './progress.ts'
import { progressOptions } from './progress-options.ts'
import { counted, renderBytes, renderCount, renderTable, toJson } from './render.ts'
import { extractorOf, type ReplayFlags, scopeOf } from './replay-scope.ts'
import { rangeGoneText } from './replay-status.ts'
import { withRuntime } from './with-runtime.ts'

/** `replay plan`: the range, and nothing is changed. */
export async function replayPlan(context: CommandContext, flags: ReplayFlags, asOffsets: boolean): Promise<void> {
  const { config } = context.loadConfig()
  const extractor = await extractorOf(context, config, flags.extractor)
  const scope = scopeOf(flags, config)
  await withRuntime(context, config, 'millrace replay plan', async (runtime) => {
    const plan = await planRange(runtime, rangeGroup(runtime, extractor.name, flags.group), scope, false)
    if (plan.nothing !== undefined) context.note(`note: ${plan.nothing}`)
    if (asOffsets) {
      for (const line of offsetLines(plan)) await context.out(line)
      return
    }
    const estimate = await estimateRange(runtime, plan, { extractor, filter: scope.filter, signal: context.draining })
    if (estimate.matched === 0 && estimate.isExact && plan.nothing === undefined) context.note(NOTHING_FITS)
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

/** `replay preview`: what would change; no message is written. */
export async function replayPreview(context: CommandContext, flags: PreviewFlags): Promise<void> {
  if (flags.all === true && flags.sample !== undefined) throw new MillraceError('USAGE', 'give --sample or --all, not both')
  const { config } = context.loadConfig()
  const extractor = await extractorOf(context, config, flags.extractor)
  const against = flags.against === undefined ? undefined : await extractorOf(context, config, flags.against, '--against')
  const scope = scopeOf(flags, config)
  const sample = flags.all === true ? 'all' : flags.sample === undefined ? SAMPLE_PAGES : wholeCount(flags.sample, '--sample')
  await withRuntime(context, config, 'millrace replay preview', async (runtime) => {
    const plan = await planRange(runtime, rangeGroup(runtime, extractor.name, flags.group), scope, false)
    const progress = createProgress(progressOptions(context))
    const report = await previewReplay(runtime, {
      extractor,
      against,
      plan,
      filter: scope.filter,
      sample,
      onProgress: ({ done, total, elapsedMs }) =>
        progress.update({
          text: counted(done, 'page'),
          ...(sample === 'all' ? { ratio: total === 0 ? 1 : done / total } : {}),
          fields: { done, total, elapsedMs },
        }),
      onOutput: (text) => context.note(text),
      signal: context.draining,
    })
    progress.finish()
    if (plan.nothing !== undefined) context.note(`note: ${plan.nothing}`)
    else if (report.pages.compared === 0) context.note(NOTHING_FITS)
    if (context.globals.json) await context.out(toJson(report))
    else await writePreview(context, report)
  }).catch((error: unknown) => {
    if (context.draining.aborted) context.note('stopped; nothing was written, and there is no hash')
    throw error
  })
}

/** Most of the time a word of the filter is spelt otherwise on the log. */
const NOTHING_FITS =
  "note: no page of the range fits: look at --domain, --crawl and the times of the filter, and at the extractor's `match`"

async function writePlan(context: CommandContext, plan: ReplayPlan, extractor: LoadedExtractor, estimate: RangeEstimate): Promise<void> {
  const rows = plan.partitions.map(({ partition, from, until, offsets, note }) => [
    String(partition),
    String(from),
    String(until),
    renderCount(offsets),
    note ?? '',
  ])
  await context.out(
    renderTable(
      [
        { title: 'PARTITION', align: 'right' },
        { title: 'FROM', align: 'right' },
        { title: 'UNTIL', align: 'right' },
        { title: 'OFFSETS', align: 'right' },
        { title: 'NOTE', wraps: true },
      ],
      rows,
    ),
  )
  const about = estimate.isExact ? '' : 'about '
  await context.out(
    `${counted(plan.offsets, 'offset')} of ${plan.topic}, ${about}${renderBytes(estimate.bytes)}; ${about}${counted(estimate.matched, 'page')} for ${extractor.name} version ${extractor.version}`,
  )
  if (estimate.seconds !== null && estimate.pagesPerSecond !== null) {
    const from = {
      'last replay': 'the pace of its last replay',
      sample: `measured on ${counted(Math.min(estimate.looked, estimate.matched), 'page')}`,
      cap: 'the cap',
    }
    await context.out(
      `about ${durationText(estimate.seconds * 1000)} in one process, at ${renderCount(Math.round(estimate.pagesPerSecond))} pages/s (${from[estimate.rateFrom ?? 'sample']})`,
    )
  }
  if (plan.gone > 0n) await context.out(rangeGoneText(plan))
  await context.out('nothing was changed')
}
