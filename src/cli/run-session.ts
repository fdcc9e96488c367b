import type { Config } from '../config/options.ts'
import type { SeedText } from '../control/crawls/produce.ts'
import { extractorWarnings, loadConfigured } from '../control/extractors/configured-extractors.ts'
import { narrowedTo, requireGrouped } from '../control/groups/extract-groups.ts'
import { cutOff } from '../control/run/cut-off.ts'
import { run } from '../control/run/run.ts'
import { Runtime } from '../control/runtime/runtime.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { shellWord } from '../kernel/shell-word.ts'
import type { CommandContext } from './context.ts'
import { refuseUnreadable } from './input-file.ts'
import { openOut } from './out-file.ts'
import { parseAnyDuration } from './parse-moment.ts'
import { createProgress } from './progress.ts'
import { progressOptions } from './progress-options.ts'
import { toJson } from './render.ts'
import { runExitCode } from './run-exit-code.ts'
import { runProgress, writeSummary, writeUncounted } from './run-summary.ts'
import { strictSeeds } from './seeds-report.ts'
import { serveMetricsOf } from './serve-metrics.ts'

export interface RunSession {
  readonly seeds: AsyncIterable<SeedText> | undefined
  readonly seedFile: string | undefined
  /** A bad seed ends it before anything is started. */
  readonly strict: boolean
  /** A depth is given by its flag. */
  readonly hasDepth: boolean
  /** Named by its flags, in place of those of the configuration. */
  readonly ownExtractors: boolean
  readonly out: string | undefined
  readonly crawlId: string | undefined
  readonly maxWait: string
  readonly drainTimeout: string
  readonly keepRunning: boolean
  readonly version: string
}

/** Beyond the time of the run, for what it has written to reach the file. */
const LAST_RECORDS_MS = 2_000

/** What stands between the flags of `run` and the verb: files, progress, summary, exit code. */
export async function openRun(context: CommandContext, loaded: Config, session: RunSession): Promise<void> {
  if (session.strict && session.seeds === undefined)
    throw new MillraceError('USAGE', '--strict goes with URLs, as arguments or with --seeds; what is queued has been looked at already')
  if (session.hasDepth && session.seeds === undefined)
    throw new MillraceError('USAGE', '--depth goes with URLs, as arguments or with --seeds; what is queued keeps the depth it was given')
  const maxWaitMs = parseAnyDuration(session.maxWait, '--max-wait')
  const drainTimeoutMs = parseAnyDuration(session.drainTimeout, '--drain-timeout')
  if (session.seedFile !== undefined && session.seedFile !== '-') await refuseUnreadable(session.seedFile, '--seeds')
  // Before anything is started: a typo in an extractor must not cost a Kafka.
  const extractors = await loadConfigured(loaded.extractors, context.draining)
  const config = session.ownExtractors ? narrowedTo(loaded, extractors) : loaded
  requireGrouped(config, extractors)
  for (const warning of extractorWarnings(extractors)) context.note(warning)
  const seeds = session.strict && session.seeds !== undefined ? await strictSeeds(context, session.seeds) : session.seeds
  if (session.seeds !== undefined && seeds === undefined) return
  const startedAt = systemClock.now()
  let crawl: string | undefined
  const appends = goesOnWithRest(session)
  const out =
    session.out === undefined
      ? undefined
      : await openOut(context, session.out, { appends, missing: (to) => missingIn(to, crawl, startedAt) })
  const progress = createProgress(progressOptions(context))
  // Where stdout has the records, what is said of them goes beside it.
  const hasRecords = session.out === '-'
  const lines = hasRecords ? async (line: string) => context.note(line) : context.out
  const data = hasRecords ? async (line: string) => context.err(line) : context.out
  const tell = (report: unknown, write: () => Promise<void>): Promise<void> => (context.globals.json ? data(toJson(report)) : write())
  const unread = context.drainWhenUnread()
  const unwritten = (): string | undefined => (unread.aborted ? missingIn('FILE', crawl, startedAt) : undefined)
  let isTold = false
  const runtime = await Runtime.open({
    config,
    owner: 'millrace run',
    clock: systemClock,
    observer: context.observer,
    signal: context.draining,
  })
  const { draining, aborting } = context
  const outLate = cutOff(runtime, { draining, aborting, drainTimeoutMs: drainTimeoutMs + LAST_RECORDS_MS })
  try {
    await serveMetricsOf(context, config, runtime)
    const report = await run(runtime, {
      seeds,
      extractors,
      ...(session.crawlId === undefined ? {} : { crawlId: session.crawlId }),
      ...(out === undefined ? {} : { openOutput: () => out.begin() }),
      maxWaitMs,
      keepRunning: session.keepRunning,
      drainTimeoutMs,
      version: session.version,
      onCrawl: (crawlId) => {
        crawl = crawlId
      },
      onProgress: (state) => progress.update(runProgress(state)),
      onUncounted: async (report) => {
        progress.finish()
        await out?.end(outLate)
        await tell(report, () => writeUncounted(context, report, lines, unwritten()))
        isTold = true
      },
      onOutput: (text) => context.note(text),
      draining,
      aborting,
    })
    progress.finish()
    await out?.end(outLate)
    await tell(report, () => writeSummary(context, report, lines, unwritten()))
    context.setExitCode(runExitCode(report))
  } catch (error) {
    progress.finish()
    if (crawl !== undefined && !isTold) context.note(`the crawl is ${crawl}; \`millrace run --crawl ${shellWord(crawl)}\` goes on with it`)
    throw await runtime.reasonOf(error)
  } finally {
    progress.finish()
    await runtime.close()
  }
}

/** What is queued is worked off: the records that were written before it stopped stay. */
function goesOnWithRest({ seeds, crawlId }: RunSession): boolean {
  return seeds === undefined && crawlId === undefined
}

/**
 * What the file of a run that failed, or a reader that left, may lack, and how it is had: the pages go on being extracted until the stages
 * have stopped.
 */
function missingIn(target: string, crawl: string | undefined, startedAt: number): string {
  const since = new Date(startedAt).toISOString()
  return crawl === undefined
    ? `it may lack what was extracted since ${since}; \`millrace consume records --from ${since}\` shows that`
    : `it lacks records of the crawl, which are on their topics: \`millrace run --crawl ${shellWord(crawl)} --out ${shellWord(target)}\`, with the same --extractor, writes all of them anew`
}
