import { DRAIN_TIMEOUT_MS } from '../control/defaults.ts'
import { forgetReplay } from '../control/replay/forget-replay.ts'
import { cancelReplay, followReplay } from '../control/replay/replay-in-place.ts'
import { listReplays, type ReplayStatus, replayStatus } from '../control/replay/replay-status.ts'
import { type ReplayRunRequest, runBeside, runInPlace } from '../control/replay/run-replay.ts'
import { planTombstones, type TombstonePlan, writeTombstones } from '../control/replay/tombstones.ts'
import type { Runtime } from '../control/runtime/runtime.ts'
import { systemClock } from '../kernel/clock.ts'
import { isStopOf, MillraceError } from '../kernel/errors.ts'
import { positive } from './arguments.ts'
import { writeComparison } from './comparison-summary.ts'
import type { CommandContext } from './context.ts'
import { parseAnyDuration } from './parse-moment.ts'
import { createProgress } from './progress.ts'
import { progressOptions } from './progress-options.ts'
import { counted, renderCount, toJson } from './render.ts'
import { extractorOf, type ReplayFlags, refuseRange, scopeOf } from './replay-scope.ts'
import { deletedText, replaysTable, shadowSummary, statusText } from './replay-status.ts'
import { singleLine } from './terminal-text.ts'
import { withRuntime } from './with-runtime.ts'

export interface ReplayRunFlags extends ReplayFlags {
  readonly inPlace?: boolean
  readonly shadow?: boolean
  readonly out?: string
  readonly rate?: string
  readonly id?: string
  /** Hash of a preview. */
  readonly expect?: string
  /** In place: until it is done, whoever starts a group that is stopped. */
  readonly wait?: boolean
  /** Once it is done: keys that nothing gives any more are deleted. */
  readonly tombstones?: boolean
  /** Why the gate is passed over. */
  readonly force?: string
  /** Of a shadow. */
  readonly drainTimeout?: string
}

/** `replay run`: in place, where live members rewind by themselves; a shadow works until it is done. */
export async function replayRun(context: CommandContext, flags: ReplayRunFlags): Promise<void> {
  if ((flags.inPlace === true) === (flags.shadow === true)) {
    throw new MillraceError('USAGE', 'say --in-place (rewinds the group itself) or --shadow (runs beside it, to a topic of its own)')
  }
  const drainTimeoutMs = flags.drainTimeout === undefined ? DRAIN_TIMEOUT_MS : parseAnyDuration(flags.drainTimeout, '--drain-timeout')
  const rate = flags.rate === undefined ? undefined : positive(flags.rate, '--rate')
  if (flags.inPlace === true && flags.out !== undefined) throw new MillraceError('USAGE', '--out goes with --shadow')
  if (flags.inPlace === true && flags.drainTimeout !== undefined)
    throw new MillraceError('USAGE', '--drain-timeout goes with --shadow; in place the live members do the work')
  if (flags.shadow === true && flags.force !== undefined)
    throw new MillraceError('USAGE', '--force goes with --in-place; nothing holds a shadow replay back')
  if (flags.expect !== undefined) refuseRange(flags, '--expect replays the range of its preview')
  if (flags.shadow === true && flags.wait === true)
    throw new MillraceError('USAGE', '--wait goes with --in-place; a shadow replay ends when it is done')
  if (flags.tombstones === true && flags.wait !== true)
    throw new MillraceError(
      'USAGE',
      '--tombstones goes with --in-place --wait: what is left out is known when the replay is done (`millrace replay tombstones` does it later)',
    )
  const { config } = context.loadConfig()
  const extractor = await extractorOf(context, config, flags.extractor)
  const scope = scopeOf(flags, config)
  await withRuntime(context, config, 'millrace replay run', async (runtime) => {
    const replayId = flags.id ?? new Date(systemClock.now()).toISOString().replaceAll(/[-:.]/g, '').toLowerCase()
    const request = { replayId, extractor, scope, group: flags.group, rate, expect: flags.expect }
    if (flags.inPlace === true) await inPlace(context, runtime, request, flags)
    else await shadow(context, runtime, request, { out: flags.out, drainTimeoutMs })
  })
}

async function inPlace(context: CommandContext, runtime: Runtime, request: ReplayRunRequest, flags: ReplayRunFlags): Promise<void> {
  const { replayId, extractor } = request
  const { groupId, start, plan, notes } = await runInPlace(runtime, { ...request, force: flags.force, signal: context.draining })
  for (const note of notes) context.note(`on a sample of the pages ${note}`)
  const { name, version } = extractor
  const what = `${counted(plan.offsets, 'offset')} for ${name} version ${version} (replay ${replayId})`
  const waits = flags.wait === true
  if (start === 'stopped' && !waits) {
    if (context.globals.json) await context.out(toJson({ replayId, groupId, start, ...plan }))
    else {
      await context.out(`group ${groupId} is rewound by ${what}`)
      await context.out('start it again (`millrace run` or `millrace extract`) with that version: it replays, then goes on where it was')
    }
    return
  }
  if (start === 'stopped')
    context.note(`no member of ${groupId} runs: it replays once \`millrace run\` or \`millrace extract\` is started with that version`)
  const status = await follow(context, runtime, replayId, waits ? 'done' : 'rewound')
  if (status.state === 'cancelled') context.setExitCode(3)
  const doomed = flags.tombstones === true && status.state === 'done' ? await planUnlessStopped(context, runtime, replayId) : undefined
  const deleted = doomed === undefined ? undefined : await writeTombstones(runtime, doomed)
  if (context.globals.json)
    await context.out(toJson({ start, ...plan, ...status, ...(deleted === undefined ? {} : { tombstones: deleted }) }))
  else if (status.state !== 'open') {
    await context.out(statusText(status))
    if (doomed !== undefined) await context.out(deletedText(doomed))
  } else {
    await context.out(`the live members of ${groupId} replay ${what}`)
    await context.out(`\`millrace replay status ${replayId}\` shows how far they are, \`millrace replay cancel ${replayId}\` calls it off`)
  }
}

/** The replay is done by then, and its end is told, whatever comes of its keys. Shape: undefined where a signal came first. */
async function planUnlessStopped(context: CommandContext, runtime: Runtime, replayId: string): Promise<TombstonePlan | undefined> {
  try {
    return await planTombstones(runtime, replayId, { signal: context.draining })
  } catch (error) {
    if (!isStopOf(context.draining, error)) throw error
    context.note(`stopped; no key was deleted: \`millrace replay tombstones ${replayId} --execute\` does it`)
    context.setExitCode(3)
    return undefined
  }
}

async function follow(context: CommandContext, runtime: Runtime, replayId: string, until: 'rewound' | 'done'): Promise<ReplayStatus> {
  const progress = createProgress(progressOptions(context))
  const status = await followReplay(runtime, replayId, {
    until,
    signal: context.draining,
    onProgress: ({ doneOffsets, offsets, totals, partitions, members, behind }, remainingMs) => {
      const unattended = members === 0 && behind === undefined ? ', nobody works on it' : ''
      const waiting = partitions.filter(({ phase }) => phase === 'waiting').length
      const ratio = offsets === 0 ? 1 : doneOffsets / offsets
      progress.update({
        text: `${counted(totals.pages, 'page')} read${waiting === 0 ? '' : `, ${counted(waiting, 'partition')} not begun`}${unattended}`,
        ratio,
        ...(remainingMs === undefined || ratio < 0.02 ? {} : { remainingMs }),
        fields: {
          replayId,
          done: doneOffsets,
          offsets,
          read: totals.pages,
          waiting,
          members: members ?? null,
          remainingMs: remainingMs ?? null,
        },
      })
    },
  })
  progress.finish()
  return status
}

/** `replay status`: one, or all that are known. */
export async function showReplays(context: CommandContext, replayId: string | undefined): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace replay status', async (runtime) => {
    const found = replayId === undefined ? await listReplays(runtime) : [await replayStatus(runtime, replayId)]
    if (context.globals.json) await context.out(toJson(replayId === undefined ? found : found[0]))
    else if (replayId !== undefined && found[0] !== undefined) await context.out(statusText(found[0]))
    else {
      if (found.length === 0) context.note('no replay is known')
      await context.out(replaysTable(found))
    }
  })
}

/** `replay cancel`: owners jump back to live work. */
export async function replayCancel(context: CommandContext, replayId: string): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace replay cancel', async (runtime) => {
    const status = await cancelReplay(runtime, replayId)
    if (context.globals.json) await context.out(toJson(status))
    else if (status.shadowTopic !== undefined)
      await context.out(
        `replay ${replayId} is called off: its process finishes what it took and ends; what it wrote stays in ${status.shadowTopic}`,
      )
    else await context.out(`replay ${replayId} is called off; what it wrote stays, and live work goes on where it was`)
  })
}

/** `replay forget`: the topic and the group of a shadow that has ended. */
export async function replayForget(context: CommandContext, replayId: string): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace replay forget', async (runtime) => {
    const forgotten = await forgetReplay(runtime, replayId)
    const { topic, isDeleted } = forgotten
    if (context.globals.json) await context.out(toJson(forgotten))
    else
      await context.out(
        `replay ${replayId} is forgotten; ${isDeleted ? `topic ${topic} is deleted` : `its records stay in ${topic}, which --out named`}`,
      )
  })
}

/** `replay tombstones`: keys that a replay has left without a record; says which until `--execute`. */
export async function replayTombstones(context: CommandContext, replayId: string, execute: boolean): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace replay tombstones', async (runtime) => {
    const plan = await planTombstones(runtime, replayId, { signal: context.draining })
    const report = execute ? await writeTombstones(runtime, plan) : undefined
    if (context.globals.json) {
      await context.out(toJson({ replayId, topic: plan.topic, keys: plan.keys, ...(report ?? { written: 0 }) }))
      return
    }
    for (const key of plan.keys.slice(0, KEYS_SHOWN)) await context.out(singleLine(key))
    if (plan.keys.length > KEYS_SHOWN) await context.out(`and ${renderCount(plan.keys.length - KEYS_SHOWN)} more`)
    const what = counted(plan.keys.length, 'key')
    await context.out(
      report === undefined ? `${what} of ${plan.topic} would be deleted; nothing was written (--execute does it)` : deletedText(plan),
    )
  })
}

const KEYS_SHOWN = 20

async function shadow(
  context: CommandContext,
  runtime: Runtime,
  request: ReplayRunRequest,
  { out, drainTimeoutMs }: { readonly out: string | undefined; readonly drainTimeoutMs: number },
): Promise<void> {
  const progress = createProgress(progressOptions(context))
  const { report, comparison } = await runBeside(runtime, {
    ...request,
    out,
    drainTimeoutMs,
    onProgress: ({ done, offsets, read, elapsedMs, remainingMs }) => {
      const ratio = offsets === 0n ? 1 : Number(done) / Number(offsets)
      progress.update({
        text: `${counted(read, 'page')} read`,
        ratio,
        ...(remainingMs === undefined || ratio < 0.02 ? {} : { remainingMs }),
        fields: { done: done.toString(), offsets: offsets.toString(), read, elapsedMs, remainingMs: remainingMs ?? null },
      })
    },
    onComparing: (records) => progress.update({ text: `comparing, ${counted(records, 'record')} read`, fields: { comparing: records } }),
    onWaiting: (text) => context.note(text),
    onOutput: (text) => context.note(text),
    draining: context.draining,
    aborting: context.aborting,
  })
  progress.finish()
  if (report.cancelled) context.note(`replay ${report.replayId} was called off; the records so far are in ${report.topic}`)
  else if (comparison === undefined)
    context.note(
      `stopped; \`millrace replay run --shadow --id ${report.replayId}\` with the same flags ${report.interrupted ? 'goes on' : 'compares its records'}`,
    )
  // Not done: what a script has behind it must not follow.
  if (comparison === undefined) context.setExitCode(3)
  if (context.globals.json) await context.out(toJson({ ...report, comparison }))
  if (context.globals.json || comparison === undefined) return
  await context.out(shadowSummary(report))
  await writeComparison(context, comparison)
}
