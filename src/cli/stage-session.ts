import type { Config } from '../config/options.ts'
import { loadConfigured } from '../control/extractors/configured-extractors.ts'
import { extractorsOf } from '../control/groups/extract-groups.ts'
import { Runtime } from '../control/runtime/runtime.ts'
import { runStage, type StageName } from '../control/stages/stage-process.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { CommandContext } from './context.ts'
import { parseAnyDuration } from './parse-moment.ts'
import { serveMetricsOf } from './serve-metrics.ts'

export interface StageSession {
  readonly stage: StageName
  readonly group: string | undefined
  readonly candidate?: boolean
  readonly drainTimeout: string
  readonly version: string
}

/** What stands between the flags of a stage command and the stage. */
export async function openStage(context: CommandContext, config: Config, session: StageSession): Promise<void> {
  if (session.candidate === true && session.group !== undefined)
    throw new MillraceError('USAGE', '--group and --candidate: a candidate has a group of its own')
  const drainTimeoutMs = parseAnyDuration(session.drainTimeout, '--drain-timeout')
  const needsExtractors = session.stage === 'extract' || session.stage === 'frontier'
  const extractors = needsExtractors ? await loadConfigured(config.extractors, context.draining) : []
  // Before anything is started; of the other groups the files may be on other machines.
  if (session.group !== undefined) extractorsOf({ config }, extractors, session.group)
  if (session.stage === 'extract' && extractors.length === 0) context.note('note: no extractors are configured; pages are passed over')
  if (config.brokers.length > 0 && config.redis === undefined) {
    context.note('note: no redis is set: pace, dedup and limits are kept on this machine only')
  }
  const owner = `millrace ${session.stage}`
  const runtime = await Runtime.open({ config, owner, clock: systemClock, observer: context.observer, signal: context.draining })
  try {
    await serveMetricsOf(context, config, runtime)
    await runStage(runtime, {
      stage: session.stage,
      ...(session.group === undefined ? {} : { group: session.group }),
      ...(session.candidate === true ? { candidate: true } : {}),
      extractors,
      drainTimeoutMs,
      version: session.version,
      onOutput: (text) => context.note(text),
      onRunning: () => context.note(`${session.stage} is running; Ctrl-C stops it`),
      draining: context.draining,
      aborting: context.aborting,
    })
  } catch (error) {
    throw await runtime.reasonOf(error)
  } finally {
    await runtime.close()
  }
}
