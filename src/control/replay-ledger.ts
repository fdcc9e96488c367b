import { addTotals, decodeMetadata, type ExtractorTotals, type Gone, NO_TOTALS } from '../extract/offset-metadata.ts'
import type { CommittedOffset } from '../kafka/committed-offsets.ts'
import type { ControlLog } from '../kafka/control-log.ts'
import { partitionId } from '../kernel/brand.ts'
import { isMillraceError, MillraceError } from '../kernel/errors.ts'
import { commandPayload, subject } from '../message/command.ts'
import type { Command } from '../message/generated/types.ts'
import { isSameFilter, parseReplayRequest, type ReplayRange, type ReplayRequest, rangeOffsets } from '../message/replay-request.ts'
import { canonical, type PageSource } from '../replay/compare.ts'
import type { ReplayPlan } from '../replay/plan.ts'
import { announce } from './announce.ts'
import { isClientGone } from './process-client-id.ts'
import type { Runtime } from './runtime.ts'

/** A replay as `control` and the committed offsets tell it. */
export interface ReplayStatus {
  readonly replayId: string
  readonly groupId: string
  readonly extractor: string
  readonly version: number
  readonly state: 'open' | 'cancelled' | 'done'
  /** An open replay of the same group that was there before: owners turn to this one when that one has ended. */
  readonly behind?: string
  /** Of an open one: members of its group, without processes that are known to be gone. At 0 nobody works on it. */
  readonly members?: number
  /** Where the records of a shadow are. */
  readonly shadowTopic?: string
  /** By offsets, those that the filter passes over too. */
  readonly offsets: number
  readonly doneOffsets: number
  readonly totals: ExtractorTotals
  /** Pages of its range that retention deleted before they were read; left out where there were none. */
  readonly gone?: number
  /** Epoch ms of the request. */
  readonly at: number
  readonly partitions: readonly PartitionReplay[]
}

export interface PartitionReplay {
  readonly partition: number
  /** waiting: its owner has not rewound yet, or no page of a shadow is done. */
  readonly phase: 'waiting' | 'replaying' | 'done' | 'cancelled'
  readonly from: string
  readonly until: string
  /** First offset that the replay has not worked; null where it has worked none. */
  readonly position: string | null
  /** First offset behind the last page that retention deleted before it was read; left out where there was none. */
  readonly goneUntil?: string
}

/** All replays that `control` knows, the latest last. */
export async function listReplays(runtime: Runtime): Promise<ReplayStatus[]> {
  const control = await runtime.control()
  await control.readToEnd()
  const found: ReplayStatus[] = []
  for (const command of control.withPrefix('replay:')) {
    const request = requestOf(command)
    if (request === undefined || request.forgotten === true) continue
    if ((request.ranges ?? request.shadow) !== undefined) found.push(await statusOf(runtime, command, request))
  }
  return found
}

/** Errors: USAGE where there is none with this id. */
export async function replayStatus(runtime: Runtime, replayId: string): Promise<ReplayStatus> {
  const control = await runtime.control()
  await control.readToEnd()
  const command = control.get(subject.replay(replayId))
  const request = command === undefined ? undefined : requestOf(command)
  if (command === undefined || request === undefined || request.forgotten === true) throw noReplay(replayId)
  return statusOf(runtime, command, request)
}

export function noReplay(replayId: string): MillraceError {
  return new MillraceError('USAGE', `there is no replay ${replayId}; \`millrace replay status\` lists them`)
}

/** Topics that shadows were told to write to, with the name of the last one that was. */
export function shadowTopics(control: Pick<ControlLog, 'withPrefix'>): ReadonlyMap<string, string> {
  const requests = control.withPrefix('replay:').flatMap((command) => requestOf(command) ?? [])
  const open = requests.flatMap(({ replayId, shadow, forgotten }) =>
    shadow === undefined || forgotten === true ? [] : [{ replayId, shadow }],
  )
  return new Map(open.map(({ replayId, shadow }) => [shadow.topic, replayId] as const))
}

async function statusOf(runtime: Runtime, command: Command, request: ReplayRequest): Promise<ReplayStatus> {
  const { replayId, groupId, extractor, extractorVersion: version, shadow, ranges = shadow?.ranges ?? [] } = request
  const committed = await runtime.admin.committedOffsets(groupId, [runtime.topics.html])
  const isClosed = command.kind === 'close'
  const [first] = isClosed ? [] : openIn(await runtime.control(), groupId)
  const members = isClosed ? undefined : await livingMembers(runtime, groupId)
  const closed = isClosed ? (commandPayload(command) as ClosedReplay | null) : null
  let doneOffsets = 0
  let totals = NO_TOTALS
  let gonePages = 0
  const partitions = ranges.map((range): PartitionReplay => {
    const { partition, from, until } = range
    const stored = committed.get(partitionId(runtime.topics.html, partition))
    const standing = standingOf(request, range, stored)
    if (standing !== undefined) totals = addTotals(totals, standing.totals)
    gonePages += standing?.gone?.pages ?? 0
    const goneUntil = closed?.goneUntil?.[partition] ?? standing?.gone?.until.toString()
    const isDone = isClosed || standing?.isDone === true
    // Of one that was called off a partition may be through before its end.
    const reached = isDone && request.cancelled !== true ? BigInt(until) : standing?.reached
    if (reached !== undefined && reached > BigInt(from)) doneOffsets += Number(reached - BigInt(from))
    const phase = isClosed && request.cancelled === true ? 'cancelled' : isDone ? 'done' : standing === undefined ? 'waiting' : 'replaying'
    const position = reached?.toString() ?? closed?.positions?.[partition] ?? null
    return { partition, phase, from, until, position, ...(goneUntil === undefined ? {} : { goneUntil }) }
  })
  const gone = closed?.gone ?? gonePages
  return {
    replayId,
    groupId,
    extractor,
    version,
    state: request.cancelled === true ? 'cancelled' : isClosed ? 'done' : 'open',
    ...(first === undefined || first.replayId === replayId ? {} : { behind: first.replayId }),
    ...(members === undefined ? {} : { members }),
    ...(shadow === undefined ? {} : { shadowTopic: shadow.topic }),
    offsets: rangeOffsets(request),
    doneOffsets: request.doneOffsets ?? doneOffsets,
    totals: closed?.totals ?? totals,
    ...(gone > 0 ? { gone } : {}),
    at: command.at,
    partitions,
  }
}

/** What `control` keeps of a replay that has ended beside its request. */
interface ClosedReplay {
  readonly totals?: ExtractorTotals
  readonly gone?: number
  /** By partition, where some are. */
  readonly goneUntil?: Readonly<Record<number, string>>
  /** By partition, of one that was called off: its group may be gone. */
  readonly positions?: Readonly<Record<number, string | null>>
}

/** A process that was killed stays a member until its session ends; on our own broker it can be told from the living. */
async function livingMembers({ admin, isEmbedded }: Runtime, groupId: string): Promise<number> {
  const { members } = await admin.describeGroup(groupId)
  return members.filter(({ clientId }) => !isEmbedded || !isClientGone(clientId)).length
}

interface PartitionStanding {
  /** First offset that the replay has not worked. */
  readonly reached: bigint | undefined
  readonly isDone: boolean
  readonly totals: ExtractorTotals
  readonly gone: Gone | undefined
}

/** How far a partition is with this replay, by what lies with its committed offset. Shape: undefined where it has not begun. */
function standingOf(
  { replayId, extractor, shadow }: ReplayRequest,
  { until }: ReplayRange,
  stored: CommittedOffset | undefined,
): PartitionStanding | undefined {
  const metadata = decodeMetadata(stored?.metadata ?? '')
  // The group of a shadow does nothing else: its offsets and totals are those of the replay.
  if (shadow !== undefined) {
    if (stored?.offset === undefined) return undefined
    const { offset } = stored
    const reached = offset < BigInt(until) ? offset : BigInt(until)
    const totals = metadata?.totals.extractors[extractor] ?? NO_TOTALS
    return { reached, isDone: offset >= BigInt(until), totals, gone: metadata?.gone }
  }
  if (metadata?.replay?.replayId !== replayId) return undefined
  const { phase, resumeAt, until: end, totals, gone } = metadata.replay
  // While live pages have their turn, the replay stands where it will go on.
  const position = phase === 'live' ? resumeAt : stored?.offset
  return { reached: phase === 'done' ? end : position, isDone: phase === 'done', totals, gone }
}

/** Shape: undefined for what is no request; of a closed one the request is what its last command repeats. */
function requestOf(command: Command): ReplayRequest | undefined {
  try {
    return parseReplayRequest(commandPayload(command))
  } catch (error) {
    if (!isMillraceError(error, 'MESSAGE_INVALID')) throw error
    return undefined
  }
}

export interface KnownRequest {
  readonly request: ReplayRequest
  readonly isClosed: boolean
  readonly payload: unknown
}

/** What `control` holds under an id, however it was begun. Shape: undefined where there is nothing. */
export async function knownRequest(runtime: Runtime, replayId: string): Promise<KnownRequest | undefined> {
  const control = await runtime.control()
  await control.readToEnd()
  const command = control.get(subject.replay(replayId))
  const request = command === undefined ? undefined : requestOf(command)
  if (command === undefined || request === undefined) return undefined
  return { request, isClosed: command.kind === 'close', payload: commandPayload(command) }
}

/**
 * Announces a replay. Shape: what `control` then holds, which is the request of another command where that was quicker under this id.
 * Errors: REPLAY_REFUSED where it asked for something else.
 */
export async function beginRequest(runtime: Runtime, request: ReplayRequest): Promise<KnownRequest> {
  const { replayId } = request
  await announce(runtime, { kind: 'request', subject: subject.replay(replayId), payload: request })
  const held = await knownRequest(runtime, replayId)
  if (held === undefined) throw new MillraceError('INTERNAL', `the request of replay ${replayId} is not on the control topic`)
  refuseOtherRequest(held.request, request)
  return held
}

/** The range of a request, as it was planned when the replay was first asked for. */
export function planOf(topic: string, ranges: readonly ReplayRange[]): ReplayPlan {
  const partitions = ranges.map(({ partition, from, until }) => {
    const offsets = BigInt(until) - BigInt(from)
    return { partition, from: BigInt(from), until: BigInt(until), offsets, gone: 0n, note: undefined }
  })
  return { topic, partitions, offsets: partitions.reduce((sum, { offsets }) => sum + offsets, 0n), gone: 0n }
}

/** An id goes on with what it was first: another extractor or other pages under it would be half of each. Errors: REPLAY_REFUSED. */
export function refuseOtherRequest(known: ReplayRequest, asked: Omit<ReplayRequest, 'ranges' | 'cancelled'>): void {
  const told = ({ groupId, extractor, extractorVersion, filter, shadow }: Omit<ReplayRequest, 'ranges'>): string =>
    `${extractor} version ${extractorVersion} in group ${groupId}, filter ${canonical(filter)}${shadow === undefined ? '' : `, records to ${shadow.topic}`}`
  const isOther = told({ ...known, filter: {} }) !== told({ ...asked, filter: {} })
  if (!isOther && isSameFilter(known.filter, asked.filter)) {
    // It goes on with the range that it has: of another preview it would replay what nobody has looked at.
    if (asked.expected === undefined || asked.expected === known.expected) return
    const preview = known.expected === undefined ? 'without --expect' : `with --expect ${known.expected}`
    throw new MillraceError(
      'REPLAY_REFUSED',
      `--id ${asked.replayId} was begun ${preview}, and keeps its range; leave out --expect ${asked.expected}, or take another --id`,
    )
  }
  throw new MillraceError(
    'REPLAY_REFUSED',
    `--id ${asked.replayId} was begun as ${told(known)}, and this is ${told(asked)}; take another --id`,
  )
}

/** Errors: REPLAY_REFUSED for what was called off or forgotten: what it would go on with is gone. */
export function refuseCancelled({ replayId, cancelled, forgotten }: ReplayRequest): void {
  if (forgotten === true) throw new MillraceError('REPLAY_REFUSED', `replay ${replayId} was forgotten; begin another under a new --id`)
  if (cancelled === true) throw new MillraceError('REPLAY_REFUSED', `replay ${replayId} was called off; begin another under a new --id`)
}

/** The group of a shadow that has ended. One that another process under the same id is still in is deleted by that one. */
export async function deleteUnlessActive({ admin }: Runtime, groupId: string): Promise<void> {
  await admin.deleteGroup(groupId).catch((error: unknown) => {
    if (!isMillraceError(error, 'KAFKA_GROUP_ACTIVE')) throw error
  })
}

/** Requests of a group that nobody has closed, in the order of the log. */
export async function openRequests(runtime: Runtime, groupId: string): Promise<ReplayRequest[]> {
  const control = await runtime.control()
  await control.readToEnd()
  return openIn(control, groupId)
}

/** As far as `control` was read. */
export function openIn(control: Pick<ControlLog, 'withPrefix'>, groupId: string): ReplayRequest[] {
  return control.withPrefix('replay:').flatMap((command) => {
    const request = command.kind === 'request' ? requestOf(command) : undefined
    return request?.groupId === groupId ? [request] : []
  })
}

/** Closes a replay when all partitions have worked their part; whichever owner ends last does it. Shape: true when it is closed now. */
export async function closeReplay(runtime: Runtime, groupId: string, replayId: string): Promise<boolean> {
  const control = await runtime.control()
  await control.readToEnd()
  const command = control.get(subject.replay(replayId))
  if (command === undefined || command.kind === 'close') return true
  const request = requestOf(command)
  if (request === undefined || !(await isDone(runtime, { ...request, groupId }))) return false
  const status = await statusOf(runtime, command, request)
  const { totals, doneOffsets, partitions } = status
  const positions = Object.fromEntries(partitions.map(({ partition, position }) => [partition, position]))
  const ended = { totals, ...goneOf(status) }
  // Counted now, after the last commit: what owners had taken when it was called off is among them.
  const counted = request.cancelled === true ? { ...ended, doneOffsets, positions } : ended
  await announce(runtime, { kind: 'close', subject: subject.replay(replayId), payload: { ...request, ...counted } })
  return true
}

/**
 * Closes a shadow that was called off, once nobody is at work in its group: until then it counts on. Each of its processes comes here when
 * it has left, so the last one closes it.
 */
export async function closeUnlessActive(runtime: Runtime, groupId: string, replayId: string): Promise<void> {
  if ((await runtime.admin.describeGroup(groupId)).members.length === 0) await closeReplay(runtime, groupId, replayId)
}

/** For a process that leaves the group of a shadow. Shape: whether that was called off. */
export async function endIfCancelled(runtime: Runtime, groupId: string, replayId: string): Promise<boolean> {
  if ((await knownRequest(runtime, replayId))?.request.cancelled !== true) return false
  await closeUnlessActive(runtime, groupId, replayId)
  await deleteUnlessActive(runtime, groupId)
  return true
}

/** What `control` keeps of pages that retention deleted before they were read. Pure. */
export function goneOf({ gone = 0, partitions }: Pick<ReplayStatus, 'gone' | 'partitions'>): {
  readonly gone: number
  readonly goneUntil: Readonly<Record<number, string>>
} {
  const until = partitions.flatMap(({ partition, goneUntil }) => (goneUntil === undefined ? [] : [[partition, goneUntil]]))
  return { gone, goneUntil: Object.fromEntries(until) }
}

/** Whether retention may have deleted the page before a replay read it: what it gave before says nothing of the new version then. Pure. */
export function mayBeGone({ partitions }: Pick<ReplayStatus, 'partitions'>, source: PageSource): boolean {
  const goneUntil = partitions.find(({ partition }) => partition === source.partition)?.goneUntil
  return goneUntil !== undefined && BigInt(source.offset) < BigInt(goneUntil)
}

/** True when every partition of the request has worked its part; of one that was called off, when none is at work on it. */
export async function isDone(runtime: Runtime, request: ReplayRequest): Promise<boolean> {
  const { groupId, replayId, ranges, cancelled } = request
  const { html } = runtime.topics
  const committed = await runtime.admin.committedOffsets(groupId, [html])
  const stateOf = (metadata: string) => {
    const replay = decodeMetadata(metadata)?.replay
    return replay?.replayId === replayId ? replay.phase : undefined
  }
  // Requests of before had no ranges, and were for stopped groups alone: every partition has its state from the start.
  const isAtWork = (phase: ReturnType<typeof stateOf>): boolean => phase === 'replaying' || phase === 'live'
  if (ranges === undefined || cancelled === true) return [...committed.values()].every(({ metadata }) => !isAtWork(stateOf(metadata)))
  return ranges.every(({ partition }) => stateOf(committed.get(partitionId(html, partition))?.metadata ?? '') === 'done')
}
