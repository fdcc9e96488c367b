import { decodeMetadata, encodeMetadata, freshMetadata } from '../../extract/offset-metadata.ts'
import { afterJump, livePosition, rewound } from '../../extract/replay-step.ts'
import type { GroupDescription, OffsetToCommit } from '../../kafka/group-admin.ts'
import { PENDING_LIMIT_MS, transactionalId } from '../../kafka/transactional.ts'
import { partitionId } from '../../kernel/brand.ts'
import { countText } from '../../kernel/count-text.ts'
import { isMillraceError, MillraceError } from '../../kernel/errors.ts'
import { subject } from '../../message/command.ts'
import { type ReplayRequest, rangeOf } from '../../message/replay-request.ts'
import { evictDeadMembers } from '../groups/dead-members.ts'
import { liveWorkers } from '../groups/live-workers.ts'
import { announce } from '../runtime/announce.ts'
import { lookUnlessAway } from '../runtime/look-unless-away.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { rememberRate } from '../trials/replay-estimate.ts'
import { planOf, type ReplayPlan } from '../trials/replay-plan.ts'
import { etaOf, type ReplayPace } from './pace.ts'
import { announceEnd, deleteUnlessActive, endIfThrough } from './replay-end.ts'
import { beginRequest, knownRequest, openRequests, refuseCancelled, refuseOtherRequest } from './replay-ledger.ts'
import { isThrough, type ReplayStatus, replayStatus } from './replay-status.ts'
import { promotedOther } from './replay-versions.ts'

/** How a replay in place was begun; done: it has ended under this id already. */
export type InPlaceStart = 'live' | 'stopped' | 'done'

export interface BegunInPlace {
  readonly start: InPlaceStart
  readonly plan: ReplayPlan
}

/**
 * Asks an extract group to replay a range in place. Members that run rewind one partition after the other, by themselves; of a stopped
 * group the offsets are set here, and it replays when it starts again. Errors: REPLAY_REFUSED when another version is promoted, another
 * replay of the group was begun meanwhile, or a live member does not run the version. Nothing was changed then. Shape: the plan has a page,
 * and no other replay of the group was open ({@link refuseWhileOpen}).
 */
export async function replayInPlace(
  runtime: Runtime,
  request: Omit<ReplayRequest, 'ranges' | 'cancelled'>,
  plan: ReplayPlan,
): Promise<BegunInPlace> {
  await evictDeadMembers(runtime)
  const ranges = plan.partitions
    .filter(({ offsets }) => offsets > 0n)
    .map(({ partition, from, until }) => ({ partition, from: String(from), until: String(until) }))
  const whole: ReplayRequest = { ...request, ranges }
  const refusal = await promotedOther(runtime, request)
  if (refusal !== undefined) throw refusal
  const group = await runtime.admin.describeGroup(request.groupId)
  if (group.members.length > 0) await refuseUnlessAllRun(runtime, group, request)
  const { request: held, isClosed } = await beginRequest(runtime, whole)
  refuseCancelled(held)
  if (!isClosed) await withdrawUnlessItStands(runtime, held)
  return { start: isClosed ? 'done' : await start(runtime, held, group), plan: planOf(plan.topic, held.ranges ?? []) }
}

async function start(runtime: Runtime, request: ReplayRequest, { members }: GroupDescription): Promise<InPlaceStart> {
  if (members.length > 0) return 'live'
  return (await whileStopped(() => rewindStopped(runtime, request))) ? 'stopped' : 'live'
}

/** Shape: false where the group came up meanwhile: the broker takes no offset from outside then, and owners do it by themselves. */
async function whileStopped(work: () => Promise<void>): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    if (!isMillraceError(error, 'KAFKA_GROUP_ACTIVE')) throw error
    return false
  }
}

/**
 * Goes on with a replay that was begun under this id, by a command that was cut short: the range is that of the first time. Shape:
 * undefined where there is none. Errors: REPLAY_REFUSED where the id is that of another request, was called off, or stands behind another
 * one of its group.
 */
export async function resumeInPlace(
  runtime: Runtime,
  asked: Omit<ReplayRequest, 'ranges' | 'cancelled'>,
): Promise<BegunInPlace | undefined> {
  const known = await knownRequest(runtime, asked.replayId)
  if (known === undefined) return undefined
  const { request, isClosed } = known
  refuseOtherRequest(request, asked)
  refuseCancelled(request)
  await evictDeadMembers(runtime)
  // Its command may have been killed before it had found out: the offsets are those of the first one.
  if (!isClosed) await withdrawUnlessItStands(runtime, request)
  const plan = planOf(runtime.topics.html, request.ranges ?? [])
  return { start: isClosed ? 'done' : await start(runtime, request, await runtime.admin.describeGroup(request.groupId)), plan }
}

/** Errors: KAFKA_GROUP_ACTIVE where the group came up meanwhile; nothing was changed then. */
async function rewindStopped(runtime: Runtime, request: ReplayRequest): Promise<void> {
  const { admin, topics } = runtime
  const { groupId, replayId, ranges = [] } = request
  // Whoever still holds an open transaction is shut out, and what is committed is then what stands.
  await admin.fenceTransactions(ranges.map(({ partition }) => transactionalId(groupId, topics.html, partition)))
  // As long as an owner waits: live work would go on from there, and do again what commits meanwhile.
  const reading = admin.committedOffsets(groupId, [topics.html], PENDING_LIMIT_MS)
  const [committed, lows] = await Promise.all([reading, admin.earliestOffsets(topics.html)])
  const offsets = ranges.flatMap(({ partition }): OffsetToCommit[] => {
    const stored = committed.get(partitionId(topics.html, partition))
    const range = rangeOf(request, partition)
    if (stored?.offset === undefined || range === undefined) return []
    const metadata = decodeMetadata(stored.metadata) ?? freshMetadata(stored.offset)
    // Of a command that was cut short: it is at work on it, or through.
    if (metadata.replay?.replayId === replayId) return []
    const moved = rewound(metadata, { replayId, ...range }, stored.offset, lows.get(partition) ?? 0n)
    return [{ topic: topics.html, partition, offset: moved.offset, metadata: encodeMetadata(moved.metadata) }]
  })
  if (offsets.length > 0) await admin.commitDirect(groupId, offsets)
}

/** A member with another version would pause its partitions until somebody comes who has it. */
async function refuseUnlessAllRun(
  runtime: Runtime,
  { groupId, members }: GroupDescription,
  { extractor, extractorVersion }: Pick<ReplayRequest, 'extractor' | 'extractorVersion'>,
): Promise<void> {
  const workers = (await liveWorkers(runtime)).filter((worker) => worker.groupId === groupId)
  const others = workers.filter(({ extractors }) => extractors[extractor] !== extractorVersion)
  const wanted = `version ${extractorVersion} of ${extractor}`
  // Of several files that a worker has, the promoted one works: where it has this one, no restart is needed.
  const otherwise = `promote it where they have its file too (\`millrace promote ${extractor}:${extractorVersion}\`), start them with that version (a rolling restart will do), stop them, or use --shadow`
  if (others.length > 0) {
    const list = others.map(
      ({ host, pid, extractors }) =>
        `${pid} on ${host} (${extractors[extractor] === undefined ? 'none' : `version ${extractors[extractor]}`})`,
    )
    throw new MillraceError('REPLAY_REFUSED', `not every live member of ${groupId} runs ${wanted}: ${list.join(', ')}; ${otherwise}`)
  }
  if (workers.length < members.length) {
    throw new MillraceError(
      'REPLAY_REFUSED',
      `group ${groupId} has ${countText(members.length, 'live member')}, and ${workers.length} of them ${workers.length === 1 ? 'reports' : 'report'} ${wanted} in the state store of this deployment; ${otherwise}`,
    )
  }
}

/** One open replay per group: two would each jump to where the other began. Errors: REPLAY_REFUSED naming the other. */
export async function refuseWhileOpen(runtime: Runtime, groupId: string): Promise<void> {
  for (const { replayId } of await openRequests(runtime, groupId)) {
    if (await endIfThrough(runtime, replayId)) continue
    throw stillOpen(replayId, groupId)
  }
}

function stillOpen(replayId: string, groupId: string): MillraceError {
  const text = `replay ${replayId} of group ${groupId} is still open: let it end (\`millrace replay status\`), end it with \`millrace replay cancel ${replayId}\`, or use --shadow`
  return new MillraceError('REPLAY_REFUSED', text)
}

/**
 * Two commands may have found no open replay at the same moment: the first on the log stands, and its owners obey that one alone. The
 * same goes for a promotion of another version. Errors: REPLAY_REFUSED for the later one, which is taken back.
 */
async function withdrawUnlessItStands(runtime: Runtime, request: ReplayRequest): Promise<void> {
  const { replayId } = request
  const refusal = (await firstOther(runtime, request)) ?? (await promotedOther(runtime, request, replayId))
  if (refusal === undefined) return
  await announceEnd(runtime, { ...request, cancelled: true }, await replayStatus(runtime, replayId))
  throw refusal
}

async function firstOther(runtime: Runtime, { groupId, replayId }: ReplayRequest): Promise<MillraceError | undefined> {
  for (const first of await openRequests(runtime, groupId)) {
    if (first.replayId === replayId) return undefined
    // Through, and not closed yet: then the next one is the first.
    if (!(await endIfThrough(runtime, first.replayId))) return stillOpen(first.replayId, groupId)
  }
  return undefined
}

/**
 * Calls a replay off: owners jump back to where live work stood; of a stopped group the offsets are set here. A shadow's
 * process hears of it within seconds, finishes what it took and ends. What was written stays. Errors: USAGE where there is none, or it has
 * ended.
 */
export async function cancelReplay(runtime: Runtime, replayId: string): Promise<ReplayStatus> {
  const { admin, topics } = runtime
  const control = await runtime.control()
  const status = await replayStatus(runtime, replayId)
  if (control.get(subject.replay(replayId))?.kind === 'close') throw hasEnded(replayId)
  const request = (await openRequests(runtime, status.groupId)).find((each) => each.replayId === replayId)
  // An owner has closed it meanwhile: what is announced now would hide how it ended.
  if (request === undefined) throw hasEnded(replayId)
  await announce(runtime, { kind: 'request', subject: subject.replay(replayId), payload: { ...request, cancelled: true } })
  await evictDeadMembers(runtime, [status.groupId])
  if (request.shadow !== undefined) {
    await endIfThrough(runtime, replayId)
    await deleteUnlessActive(runtime, status.groupId)
    return replayStatus(runtime, replayId)
  }
  if ((await admin.describeGroup(status.groupId)).members.length === 0) {
    await admin.fenceTransactions(status.partitions.map(({ partition }) => transactionalId(status.groupId, topics.html, partition)))
    const committed = await admin.committedOffsets(status.groupId, [topics.html])
    const offsets = status.partitions.flatMap(({ partition }): OffsetToCommit[] => {
      const stored = committed.get(partitionId(topics.html, partition))
      const metadata = decodeMetadata(stored?.metadata ?? '')
      if (stored?.offset === undefined || metadata?.replay?.replayId !== replayId || metadata.replay.phase === 'done') return []
      const offset = livePosition(metadata, stored.offset)
      return [{ topic: topics.html, partition, offset, metadata: encodeMetadata(afterJump(metadata, stored.offset)) }]
    })
    await whileStopped(() => admin.commitDirect(status.groupId, offsets))
  }
  await endIfThrough(runtime, replayId)
  return replayStatus(runtime, replayId)
}

function hasEnded(replayId: string): MillraceError {
  return new MillraceError('USAGE', `replay ${replayId} has ended already`)
}

export interface FollowOptions {
  /** rewound: every owner has gone back to its range, or is through with it. */
  readonly until: 'rewound' | 'done'
  readonly onProgress?: (status: ReplayStatus, remainingMs: number | undefined) => void
  readonly signal: AbortSignal
}

const LOOK_EVERY_MS = 500

/** Looks until the replay is as far; a signal ends the looking, not the replay. Shape: how it stood at the last look. */
export async function followReplay(
  runtime: Runtime,
  replayId: string,
  { until, onProgress, signal }: FollowOptions,
): Promise<ReplayStatus> {
  const { clock } = runtime
  /** Since when somebody was at work at each look: what came before, or stood meanwhile, is no part of its pace. */
  let working: { readonly sinceMono: number; readonly pages: number } | undefined
  let pace: ReplayPace = []
  const look = async (): Promise<ReplayStatus> => {
    const status = await replayStatus(runtime, replayId)
    if (!isThrough(status)) return status
    if (status.state === 'open') await endIfThrough(runtime, replayId)
    return replayStatus(runtime, replayId)
  }
  for (let status = await look(); ; ) {
    // While nobody works on it there is no pace, and what was idle is no part of the next one.
    const estimate = etaOf(status.members === 0 ? [] : pace, { mono: clock.mono(), done: status.doneOffsets }, status.offsets)
    pace = estimate.pace
    if (status.state === 'open' && status.members === 0) working = undefined
    else if (status.state === 'open') working ??= { sinceMono: clock.mono(), pages: status.totals.pages }
    onProgress?.(status, estimate.remainingMs)
    if (isThrough(status) || status.state === 'cancelled') {
      if (status.state === 'done' && working !== undefined && (await isUncapped(runtime, replayId)))
        await rememberRate(runtime, status.extractor, status.totals.pages - working.pages, clock.mono() - working.sinceMono)
      return status
    }
    if (signal.aborted || (until === 'rewound' && status.partitions.every(({ phase }) => phase !== 'waiting'))) return status
    await clock.sleep(LOOK_EVERY_MS)
    status = (await lookUnlessAway(runtime, look)) ?? status
  }
}

async function isUncapped(runtime: Runtime, replayId: string): Promise<boolean> {
  return (await knownRequest(runtime, replayId))?.request.rate === undefined
}
