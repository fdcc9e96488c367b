import type { PageSource } from '../../comparison/compare.ts'
import { addTotals, decodeMetadata, type ExtractorTotals, type Gone, NO_TOTALS } from '../../extract/offset-metadata.ts'
import type { CommittedOffset } from '../../kafka/committed-offsets.ts'
import { partitionId } from '../../kernel/brand.ts'
import { commandPayload } from '../../message/command.ts'
import type { Command } from '../../message/generated/types.ts'
import { type ReplayRange, type ReplayRequest, rangeOffsets } from '../../message/replay-request.ts'
import { isClientGone } from '../runtime/process-client-id.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { type KnownRequest, knownRequest, noReplay, openIn, requestOf } from './replay-ledger.ts'

/** How far a replay is. */
export interface ReplayStanding {
  readonly doneOffsets: number
  readonly totals: ExtractorTotals
  /** Pages of its range that retention deleted before they were read; left out where there were none. */
  readonly gone?: number
  readonly partitions: readonly PartitionReplay[]
}

/** A replay as `control` and the committed offsets tell it. */
export interface ReplayStatus extends ReplayStanding {
  readonly replayId: string
  readonly groupId: string
  readonly extractor: string
  readonly version: number
  readonly state: 'open' | 'cancelled' | 'done'
  /** An open replay of the same group that was there before: owners turn to this one when that one has ended. */
  readonly behind?: string
  /** Until it has ended: members of its group, without processes that are known to be gone. At 0 nobody works on it. */
  readonly members?: number
  /** Where the records of a shadow are. */
  readonly shadowTopic?: string
  /** By offsets, those that the filter passes over too. */
  readonly offsets: number
  /** Epoch ms of the last command about it. */
  readonly at: number
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

/** What `control` keeps of a replay that has ended, beside its request: its group may be gone, and the offsets with it. */
export interface ReplayEnd extends ReplayStanding {
  /** Of a shadow that is done: the process that ended it. */
  readonly endedBy?: { readonly elapsedMs: number; readonly resumed: boolean }
}

/** All replays that `control` knows, the latest last. */
export async function listReplays(runtime: Runtime): Promise<ReplayStatus[]> {
  const control = await runtime.control()
  await control.readToEnd()
  const found: ReplayStatus[] = []
  for (const command of control.withPrefix('replay:')) {
    const request = requestOf(command)
    if (request === undefined || request.forgotten === true) continue
    if ((request.ranges ?? request.shadow) !== undefined) found.push(await statusOf(runtime, { command, request }))
  }
  return found
}

/** Errors: USAGE where there is none with this id. */
export async function replayStatus(runtime: Runtime, replayId: string): Promise<ReplayStatus> {
  const known = await knownRequest(runtime, replayId)
  if (known === undefined || known.request.forgotten === true) throw noReplay(replayId)
  return statusOf(runtime, known)
}

/** Shape: undefined until it has ended. */
export function endOf(command: Command): ReplayEnd | undefined {
  return command.kind === 'close' ? (commandPayload(command) as { readonly end?: ReplayEnd }).end : undefined
}

export async function statusOf(runtime: Runtime, { command, request }: Omit<KnownRequest, 'isClosed'>): Promise<ReplayStatus> {
  const { replayId, groupId, extractor, extractorVersion: version, shadow } = request
  const isEnded = command.kind === 'close'
  const [first] = isEnded ? [] : openIn(await runtime.control(), groupId)
  const { doneOffsets, totals, gone = 0, partitions } = endOf(command) ?? (await standingOf(runtime, request))
  return {
    replayId,
    groupId,
    extractor,
    version,
    state: request.cancelled === true ? 'cancelled' : isEnded ? 'done' : 'open',
    ...(first === undefined || first.replayId === replayId ? {} : { behind: first.replayId }),
    ...(isEnded ? {} : { members: await livingMembers(runtime, groupId) }),
    ...(shadow === undefined ? {} : { shadowTopic: shadow.topic }),
    offsets: rangeOffsets(request),
    doneOffsets,
    totals,
    ...(gone > 0 ? { gone } : {}),
    at: command.at,
    partitions,
  }
}

/**
 * Whether nothing is left to do: every partition has worked its part; of a replay that was called off, nobody is at work on it any more.
 * Pure.
 */
export function isThrough({ state, members, shadowTopic, partitions }: ReplayStatus): boolean {
  if (state !== 'cancelled') return partitions.every(({ phase }) => phase === 'done')
  // Owners of the live group jump back, and say so with the offset; those of a shadow leave.
  return shadowTopic === undefined ? partitions.every(({ phase }) => phase !== 'replaying') : (members ?? 0) === 0
}

/** Whether retention may have deleted the page before a replay read it: what it gave before says nothing of the new version then. Pure. */
export function mayBeGone({ partitions }: ReplayStanding, source: PageSource): boolean {
  const goneUntil = partitions.find(({ partition }) => partition === source.partition)?.goneUntil
  return goneUntil !== undefined && BigInt(source.offset) < BigInt(goneUntil)
}

/** A process that was killed stays a member until its session ends; on our own broker it can be told from the living. */
async function livingMembers({ admin, isEmbedded }: Runtime, groupId: string): Promise<number> {
  const { members } = await admin.describeGroup(groupId)
  return members.filter(({ clientId }) => !isEmbedded || !isClientGone(clientId)).length
}

/** By what the group has committed. */
async function standingOf({ admin, topics }: Runtime, request: ReplayRequest): Promise<ReplayStanding> {
  const committed = await admin.committedOffsets(request.groupId, [topics.html])
  let doneOffsets = 0
  let totals = NO_TOTALS
  let gone = 0
  const partitions = (request.ranges ?? request.shadow?.ranges ?? []).map((range): PartitionReplay => {
    const { partition, from, until } = range
    const worked = workedPart(request, range, committed.get(partitionId(topics.html, partition)))
    if (worked === undefined) return { partition, phase: 'waiting', from, until, position: null }
    const { reached, isDone } = worked
    // Of one that was called off a partition may be through before its end.
    const position = isDone && request.cancelled !== true ? BigInt(until) : reached
    if (position > BigInt(from)) doneOffsets += Number(position - BigInt(from))
    totals = addTotals(totals, worked.totals)
    gone += worked.gone?.pages ?? 0
    const goneUntil = worked.gone?.until.toString()
    const phase = isDone ? 'done' : 'replaying'
    return { partition, phase, from, until, position: String(position), ...(goneUntil === undefined ? {} : { goneUntil }) }
  })
  return { doneOffsets, totals, ...(gone > 0 ? { gone } : {}), partitions }
}

interface WorkedPart {
  /** First offset that the replay has not worked. */
  readonly reached: bigint
  readonly isDone: boolean
  readonly totals: ExtractorTotals
  readonly gone: Gone | undefined
}

/** How far a partition is with this replay, by what lies with its committed offset. Shape: undefined where it has not begun. */
function workedPart(
  { replayId, extractor, shadow }: ReplayRequest,
  { until }: ReplayRange,
  stored: CommittedOffset | undefined,
): WorkedPart | undefined {
  if (stored?.offset === undefined) return undefined
  const { offset } = stored
  const metadata = decodeMetadata(stored.metadata)
  // The group of a shadow does nothing else: its offsets and totals are those of the replay.
  if (shadow !== undefined) {
    const isDone = offset >= BigInt(until)
    const totals = metadata?.totals.extractors[extractor] ?? NO_TOTALS
    return { reached: isDone ? BigInt(until) : offset, isDone, totals, gone: metadata?.gone }
  }
  if (metadata?.replay?.replayId !== replayId) return undefined
  const { phase, resumeAt, until: end, totals, gone } = metadata.replay
  if (phase === 'done') return { reached: end, isDone: true, totals, gone }
  // While live pages have their turn, the replay stands where it will go on.
  return { reached: phase === 'live' ? resumeAt : offset, isDone: false, totals, gone }
}
