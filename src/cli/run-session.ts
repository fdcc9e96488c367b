import { createWriteStream, fstat, ftruncate, type WriteStream } from 'node:fs'
import { promisify } from 'node:util'
import type { Config } from '../config/options.ts'
import { envelopeText, extractorWarnings, loadConfigured, narrowedTo, requireGrouped } from '../control/extraction.ts'
import { parseAnyDuration } from '../control/parse-time.ts'
import type { SeedText } from '../control/produce.ts'
import type { WriteRecord } from '../control/record-output.ts'
import { run } from '../control/run.ts'
import { runExitCode } from '../control/run-exit-code.ts'
import { Runtime } from '../control/runtime.ts'
import { systemClock } from '../kernel/clock.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { createSchemaStore } from '../message/schema-store.ts'
import type { CommandContext } from './context.ts'
import { createProgress } from './progress.ts'
import { progressOptions } from './progress-options.ts'
import { refuseUnreadable } from './refuse-unreadable.ts'
import { renderBytes, toJson } from './render.ts'
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
  const extractors = await loadConfigured(envelopeText({ schemaStore: createSchemaStore() }), loaded.extractors, context.draining)
  const config = session.ownExtractors ? narrowedTo(loaded, extractors) : loaded
  requireGrouped(config, extractors)
  for (const warning of extractorWarnings(extractors)) context.note(warning)
  const seeds = session.strict && session.seeds !== undefined ? await strictSeeds(context, session.seeds) : session.seeds
  if (session.seeds !== undefined && seeds === undefined) return
  const out = session.out === undefined ? undefined : await openOut(context, session.out, goesOnWithRest(session))
  const progress = createProgress(progressOptions(context))
  // Where stdout has the records, what is said of them goes beside it.
  const hasRecords = session.out === '-'
  const lines = hasRecords ? async (line: string) => context.note(line) : context.out
  const data = hasRecords ? async (line: string) => context.err(line) : context.out
  const tell = (report: unknown, write: () => Promise<void>): Promise<void> => (context.globals.json ? data(toJson(report)) : write())
  context.drainWhenUnread()
  const runtime = await Runtime.open({
    config,
    owner: 'millrace run',
    clock: systemClock,
    observer: context.observer,
    signal: context.draining,
  })
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
      onProgress: (state) => progress.update(runProgress(state)),
      onUncounted: async (report) => {
        progress.finish()
        await out?.end()
        await tell(report, () => writeUncounted(context, report, lines))
      },
      onOutput: (text) => context.note(text),
      draining: context.draining,
      aborting: context.aborting,
    })
    progress.finish()
    await out?.end()
    await tell(report, () => writeSummary(context, report, lines))
    context.setExitCode(runExitCode(report))
  } catch (error) {
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

interface Out {
  /** What was written before goes, unless it is appended to. */
  begin(): Promise<WriteRecord>
  end(): Promise<void>
}

/** A file is opened before the run, so that a path that can't be written is told at once, and emptied only when the run works. */
async function openOut(context: CommandContext, target: string, appends: boolean): Promise<Out> {
  if (target === '-') return { begin: async () => (record) => context.out(toJson(record)), end: async () => undefined }
  const { stream, fd } = await opened(target)
  let failure: unknown
  stream.on('error', (error) => {
    failure = outFailure(target, error)
  })
  const write: WriteRecord = async (record) => {
    if (failure !== undefined) throw failure
    if (stream.write(`${toJson(record)}\n`)) return
    await drained(stream)
    if (failure !== undefined) throw failure
  }
  return {
    async begin() {
      // A pipe or a device has nothing to empty.
      const file = await promisify(fstat)(fd)
      if (appends || !file.isFile()) return write
      if (file.size > 0) context.note(`--out: ${target} held ${renderBytes(file.size)}, which the records of this crawl replace`)
      await promisify(ftruncate)(fd)
      return write
    },
    async end() {
      await new Promise<void>((resolve) => stream.end(() => resolve()))
      if (failure !== undefined) throw failure
    },
  }
}

/** Until there is room again, or it has failed. */
function drained(stream: WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done)
      stream.off('error', done)
      resolve()
    }
    stream.on('drain', done)
    stream.on('error', done)
  })
}

function opened(target: string): Promise<{ stream: WriteStream; fd: number }> {
  return new Promise((resolve, reject) => {
    const stream = createWriteStream(target, { flags: 'a' })
    stream.once('open', (fd) => resolve({ stream, fd }))
    stream.once('error', (error) =>
      reject(new MillraceError('USAGE', `--out: can not write ${target}: ${errorText(error)}`, { cause: error })),
    )
  })
}

function outFailure(target: string, error: NodeJS.ErrnoException): MillraceError {
  const code = error.code === 'ENOSPC' ? 'DISK_FULL' : 'INTERNAL'
  return new MillraceError(code, `--out: writing ${target} failed: ${errorText(error)}`, { cause: error })
}
