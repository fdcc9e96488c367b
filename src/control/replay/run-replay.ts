import type { Comparison } from '../../comparison/compare.ts'
import type { GateVerdict } from '../../comparison/gate.ts'
import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { isStopOf, MillraceError } from '../../kernel/errors.ts'
import { isSameFilter } from '../../message/replay-request.ts'
import { announcedVersions, refuseIncompatible } from '../extractors/announced-versions.ts'
import { rangeGroup, replayGroup } from '../groups/extract-groups.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { planRange, type ReplayScope } from '../trials/plan-range.ts'
import type { ReplayPlan } from '../trials/replay-plan.ts'
import { expectedPlan, passGate } from '../trials/replay-preview.ts'
import { type InPlaceStart, refuseWhileOpen, replayInPlace, resumeInPlace } from './replay-in-place.ts'
import { knownRequest } from './replay-ledger.ts'
import { compareShadow } from './shadow-comparison.ts'
import { begunShadow, runShadow, type ShadowOptions, type ShadowReport } from './shadow-replay.ts'

export interface ReplayRunRequest {
  /** One that was begun under this id goes on. */
  readonly replayId: string
  readonly extractor: LoadedExtractor
  readonly scope: ReplayScope
  /** Extract group by its name in `extract.groups`. */
  readonly group: string | undefined
  /** Pages per second; undefined: as fast as it goes. */
  readonly rate: number | undefined
  /** Hash of a preview: its range is replayed, and nothing else. */
  readonly expect: string | undefined
}

export interface InPlaceRequest extends ReplayRunRequest {
  /** Why the gate is passed over. */
  readonly force: string | undefined
  readonly signal: AbortSignal
}

export interface InPlaceBegun {
  readonly groupId: string
  readonly start: InPlaceStart
  readonly plan: ReplayPlan
  /** What the version gives less of on a sample of the range, though nobody requires it: one sentence each. */
  readonly notes: readonly string[]
}

/**
 * Begins a replay in place, or goes on with it. Errors: REPLAY_REFUSED (no page in the range too), EXTRACTOR_INCOMPATIBLE for a version
 * whose records may not follow those before, EXTRACTOR_HELD by the gate, USAGE for an id that is none; nothing was changed then.
 */
export async function runInPlace(runtime: Runtime, request: InPlaceRequest): Promise<InPlaceBegun> {
  const { replayId, extractor, scope, group, rate, expect, force, signal } = request
  const { name, version, topic } = extractor
  refuseOddId(replayId)
  const groupId = replayGroup(runtime, extractor, group)
  const asked = {
    replayId,
    groupId,
    extractor: name,
    extractorVersion: version,
    rate,
    recordsTopic: topic,
    forced: force,
    expected: expect,
  }
  await refuseOtherRate(runtime, replayId, rate)
  const begun = await resumeInPlace(runtime, { ...asked, filter: scope.filter })
  if (begun !== undefined) return { groupId, ...begun, notes: [] }
  // Before the range: it ends where the group stands, and that one has sent it back.
  await refuseWhileOpen(runtime, groupId)
  const { plan, filter, gate } = await rangeOf(runtime, request, true)
  refuseNothing(plan)
  const control = await runtime.control()
  await refuseIncompatible(runtime, extractor, announcedVersions(control, name))
  const notes = force === undefined ? await passGate(runtime, { extractor, against: undefined, plan, filter, signal }, gate) : []
  return { groupId, ...(await replayInPlace(runtime, { ...asked, filter }, plan)), notes }
}

/** It stands in names of topics and groups, and in the metadata of offsets, which is bounded. Errors: USAGE. */
function refuseOddId(replayId: string): void {
  if (/^[a-zA-Z0-9._-]{1,64}$/.test(replayId)) return
  const text = `--id: ${JSON.stringify(replayId)} may hold letters, digits, dots, dashes and underscores alone, 64 at most`
  throw new MillraceError('USAGE', text)
}

/** Its owners go by what the request says; a shadow takes the rate anew. Errors: REPLAY_REFUSED. */
async function refuseOtherRate(runtime: Runtime, replayId: string, rate: number | undefined): Promise<void> {
  const known = await knownRequest(runtime, replayId)
  // Of a shadow's id there is more to be said, and it is said next.
  if (known === undefined || known.request.shadow !== undefined || rate === undefined || known.request.rate === rate) return
  const told = known.request.rate === undefined ? 'without --rate' : `with --rate ${known.request.rate}`
  throw new MillraceError(
    'REPLAY_REFUSED',
    `--id ${replayId} was begun ${told}, and keeps that; leave out --rate ${rate}, or take another --id`,
  )
}

export type ShadowRequest = ReplayRunRequest &
  Omit<ShadowOptions, 'plan' | 'filter' | 'rate' | 'expect' | 'replayId' | 'extractor'> & {
    /** It is done, and held against what was there before: records read so far. */
    readonly onComparing?: (records: number) => void
  }

/** A replay beside live work, to its end, and what it would change; no comparison where it, or that, was cut short. */
export async function runBeside(
  runtime: Runtime,
  request: ShadowRequest,
): Promise<{ readonly report: ShadowReport; readonly comparison: Comparison | undefined }> {
  const { extractor, replayId, scope } = request
  refuseOddId(replayId)
  const begun = await begunShadow(runtime, replayId)
  const { plan, filter: first } = begun ?? (await rangeOf(runtime, request, false))
  refuseNothing(plan)
  // Another one is refused under this id; of the same, times are those of the first time.
  const filter = isSameFilter(first, scope.filter) ? first : scope.filter
  const report = await runShadow(runtime, { ...request, out: request.out ?? begun?.topic, plan, filter })
  if (report.interrupted) return { report, comparison: undefined }
  // Another command may have been quicker under this id: the pages are those that it asked for.
  const read = (await begunShadow(runtime, replayId)) ?? { plan, filter }
  request.onComparing?.(0)
  try {
    const options = { onRead: request.onComparing, signal: request.draining }
    return { report, comparison: await compareShadow(runtime, report, extractor, read, options) }
  } catch (error) {
    if (!isStopOf(request.draining, error)) throw error
    return { report, comparison: undefined }
  }
}

function refuseNothing({ offsets, nothing }: ReplayPlan): void {
  if (offsets === 0n) throw new MillraceError('REPLAY_REFUSED', `there is no page to replay: ${nothing ?? 'the range is empty'}`)
}

async function rangeOf(
  runtime: Runtime,
  { extractor, scope, group, expect }: ReplayRunRequest,
  untilCommitted: boolean,
): Promise<Omit<Awaited<ReturnType<typeof expectedPlan>>, 'gate'> & { readonly gate?: GateVerdict }> {
  if (expect !== undefined) return expectedPlan(runtime, expect, extractor, scope.filter)
  const groupId = rangeGroup(runtime, extractor.name, group)
  return { plan: await planRange(runtime, groupId, scope, untilCommitted), filter: scope.filter }
}
