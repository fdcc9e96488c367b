import type { Comparison } from '../comparison/compare.ts'
import type { LoadedExtractor } from '../extract/load-extractors.ts'
import { MillraceError } from '../kernel/errors.ts'
import { uuidV7 } from '../message/ids.ts'
import type { ReplayFilter } from '../message/replay-request.ts'
import { SAMPLE_PAGES } from './defaults.ts'
import { rangeGroup } from './groups/extract-groups.ts'
import { type ForgottenReplay, forgetReplay } from './replay/forget-replay.ts'
import { cancelReplay, followReplay, type InPlaceStart } from './replay/replay-in-place.ts'
import { listReplays, type ReplayStatus, replayStatus } from './replay/replay-status.ts'
import { type ReplayRunRequest, runBeside, runInPlace } from './replay/run-replay.ts'
import type { ShadowReport } from './replay/shadow-replay.ts'
import { planTombstones, writeTombstones } from './replay/tombstones.ts'
import type { Runtime } from './runtime/runtime.ts'
import { existingDomain } from './sites/site-domain.ts'
import { planRange, type ReplayScope, type StartRequest } from './trials/plan-range.ts'
import type { ReplayPlan } from './trials/replay-plan.ts'
import { type PreviewReport, previewReplay } from './trials/replay-preview.ts'

export interface ReplayOptions {
  /** Name of a configured extractor, `NAME:VERSION`, or a file. */
  readonly extractor: string
  /** The first page that is stored where not given. */
  readonly start?: StartRequest
  /** Epoch ms of the message; pages from then on are not replayed. */
  readonly until?: number
  readonly partitions?: readonly number[]
  readonly filter?: ReplayFilter
  /** Extract group by its name in `extract.groups`. */
  readonly group?: string
}

export interface ReplayPreviewOptions extends ReplayOptions {
  /** Pages that are read; 200 where not given. */
  readonly sample?: number | 'all'
  /** Extractor that is run over the same pages as "before"; the records of the log where not given. */
  readonly against?: string
}

export interface ReplayRunOptions extends ReplayOptions {
  /** One that was begun under this id goes on. */
  readonly replayId?: string
  /** Pages per second, above 0. */
  readonly rate?: number
  /** Hash of a preview: just its range, so none is given beside it. */
  readonly expect?: string
}

export interface ReplayInPlaceOptions extends ReplayRunOptions {
  readonly mode: 'in-place'
  /** Why the gate is passed over. */
  readonly force?: string
  /** Until the owners have gone back (a stopped group at once), or until all is done. `rewound` where not given. */
  readonly wait?: 'rewound' | 'done'
}

export interface ReplayShadowOptions extends ReplayRunOptions {
  readonly mode: 'shadow'
  /** Topic of the records. */
  readonly out?: string
}

export interface ReplayInPlaceReport {
  readonly replayId: string
  /** stopped: the group replays when it starts again. done: it had ended under this id. */
  readonly start: InPlaceStart
  readonly plan: ReplayPlan
  readonly status: ReplayStatus
}

export type ReplayShadowReport = ShadowReport & { readonly comparison: Comparison | undefined }

/** The verbs of `millrace replay`, as functions. Errors: as of the commands. */
export interface ReplayLibrary {
  /** The range; changes nothing. */
  plan(options: ReplayOptions): Promise<ReplayPlan>
  /** What would change; writes no message. */
  preview(options: ReplayPreviewOptions): Promise<PreviewReport>
  /** Rewinds the extract group: members that run do it by themselves, a stopped group when it starts again. */
  run(options: ReplayInPlaceOptions): Promise<ReplayInPlaceReport>
  /** Beside live work, to a topic of its own, to its end. */
  run(options: ReplayShadowOptions): Promise<ReplayShadowReport>
  /** Replays that are known, the latest last. */
  list(): Promise<ReplayStatus[]>
  status(replayId: string): Promise<ReplayStatus>
  /** Owners go back to live work, a shadow ends; what was written stays. */
  cancel(replayId: string): Promise<ReplayStatus>
  /** Removes the topic and the group of a shadow that has ended; its id is not free again. */
  forget(replayId: string): Promise<ForgottenReplay>
  /** Keys that a replay in place has left without a record; they are deleted where `execute` is set. */
  tombstones(
    replayId: string,
    options?: { readonly execute?: boolean },
  ): Promise<{ readonly keys: readonly string[]; readonly written: number }>
}

export interface ReplayLibraryParts {
  readonly open: () => Promise<Runtime>
  readonly find: (extractor: string) => Promise<LoadedExtractor>
  /** Work that has to end before the ground is taken away. */
  readonly track: <T>(work: Promise<T>) => Promise<T>
  readonly draining: AbortSignal
  readonly aborting: AbortSignal
  readonly drainTimeoutMs: number
}

export function createReplayLibrary(parts: ReplayLibraryParts): ReplayLibrary {
  const { open, find, track, draining } = parts
  const requestOf = async (runtime: Runtime, options: ReplayRunOptions): Promise<ReplayRunRequest> => {
    if (options.expect !== undefined && (options.start ?? options.until ?? options.partitions) !== undefined)
      throw new MillraceError('USAGE', '`expect` replays the range of its preview; leave out `start`, `until` and `partitions`')
    return {
      replayId: options.replayId ?? uuidV7(runtime.clock),
      extractor: await find(options.extractor),
      scope: scopeOf(options),
      group: options.group,
      rate: options.rate,
      expect: options.expect,
    }
  }
  const rangeOf = async (runtime: Runtime, options: ReplayOptions): Promise<ReplayPlan> => {
    const { name } = await find(options.extractor)
    return planRange(runtime, rangeGroup(runtime, name, options.group), scopeOf(options), false)
  }

  const inPlace = async (options: ReplayInPlaceOptions): Promise<ReplayInPlaceReport> => {
    const runtime = await open()
    const request = await requestOf(runtime, options)
    const { replayId } = request
    const { start, plan } = await runInPlace(runtime, { ...request, force: options.force, signal: draining })
    if (start === 'stopped' && options.wait !== 'done') return { replayId, start, plan, status: await replayStatus(runtime, replayId) }
    const status = await followReplay(runtime, replayId, { until: options.wait ?? 'rewound', signal: draining })
    return { replayId, start, plan, status }
  }

  const shadow = async (options: ReplayShadowOptions): Promise<ReplayShadowReport> => {
    const runtime = await open()
    const { aborting, drainTimeoutMs } = parts
    const request = { ...(await requestOf(runtime, options)), out: options.out, drainTimeoutMs, draining, aborting }
    const { report, comparison } = await runBeside(runtime, request)
    return { ...report, comparison }
  }

  function run(options: ReplayInPlaceOptions): Promise<ReplayInPlaceReport>
  function run(options: ReplayShadowOptions): Promise<ReplayShadowReport>
  function run(options: ReplayInPlaceOptions | ReplayShadowOptions): Promise<ReplayInPlaceReport | ReplayShadowReport> {
    return track<ReplayInPlaceReport | ReplayShadowReport>(
      (async () => {
        requireRunnable(options)
        return options.mode === 'shadow' ? shadow(options) : inPlace(options)
      })(),
    )
  }

  return {
    plan: (options) => track(open().then((runtime) => rangeOf(runtime, options))),
    preview: (options) =>
      track(
        (async () => {
          const runtime = await open()
          return previewReplay(runtime, {
            extractor: await find(options.extractor),
            against: options.against === undefined ? undefined : await find(options.against),
            plan: await rangeOf(runtime, options),
            filter: scopeOf(options).filter,
            sample: options.sample ?? SAMPLE_PAGES,
            signal: draining,
          })
        })(),
      ),
    run,
    list: () => track(open().then(listReplays)),
    status: (replayId) => track(open().then((runtime) => replayStatus(runtime, replayId))),
    cancel: (replayId) => track(open().then((runtime) => cancelReplay(runtime, replayId))),
    forget: (replayId) => track(open().then((runtime) => forgetReplay(runtime, replayId))),
    tombstones: (replayId, { execute = false } = {}) =>
      track(
        (async () => {
          const runtime = await open()
          const plan = await planTombstones(runtime, replayId, { signal: draining })
          const { written } = execute ? await writeTombstones(runtime, plan) : { written: 0 }
          return { keys: plan.keys, written }
        })(),
      ),
  }
}

/** What the types say, for a caller without them: a live group is not rewound by a slip, and what can't be read back is not written. */
function requireRunnable({ mode, rate }: { readonly mode: unknown; readonly rate?: unknown }): void {
  if (mode !== 'in-place' && mode !== 'shadow')
    throw new MillraceError('USAGE', `mode: ${JSON.stringify(mode)} is neither "in-place" nor "shadow"`)
  if (rate !== undefined && !(typeof rate === 'number' && Number.isFinite(rate) && rate > 0))
    throw new MillraceError('USAGE', `rate: ${String(rate)} is not a number above 0`)
}

function scopeOf({ start, until, partitions, filter }: ReplayOptions): ReplayScope {
  return {
    start: start ?? { kind: 'earliest' },
    ...(until === undefined ? {} : { until }),
    ...(partitions === undefined ? {} : { partitions }),
    filter: filter?.domain === undefined ? (filter ?? {}) : { ...filter, domain: existingDomain(filter.domain) },
  }
}
