import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { nextToRead } from '../../kafka/admin.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { ServiceGroup, stopServices } from '../../kernel/service-group.ts'
import type { ReplayFilter, ReplayRequest } from '../../message/replay-request.ts'
import { notForRecords, shadowTopicOf } from '../../message/topics.ts'
import { announceExtractors } from '../extractors/announce-extractors.ts'
import { announcedTopics } from '../extractors/announced-versions.ts'
import { createExtract } from '../extractors/create-extract.ts'
import { evictDeadMembers } from '../groups/dead-members.ts'
import { holdingUp, openTransactionText } from '../groups/open-transactions.ts'
import { lookUnlessAway } from '../runtime/look-unless-away.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { planOf, type ReplayPlan } from '../trials/replay-plan.ts'
import { etaOf, type ReplayPace } from './pace.ts'
import { announceEnd, deleteUnlessActive, endIfCancelled, endIfThrough } from './replay-end.ts'
import { beginRequest, type KnownRequest, knownRequest, refuseCancelled, refuseOtherRequest } from './replay-ledger.ts'
import { endOf, isThrough, type ReplayEnd, type ReplayStanding, type ReplayStatus, replayStatus } from './replay-status.ts'

export interface ShadowOptions {
  readonly replayId: string
  readonly extractor: LoadedExtractor
  readonly filter: ReplayFilter
  readonly plan: ReplayPlan
  /** Pages per second; undefined: as fast as it goes. */
  readonly rate: number | undefined
  /** Hash of the preview that the plan is of; one that was begun under the id has to be of the same. */
  readonly expect?: string | undefined
  /** Topic of the records; `<prefix>records.shadow.<id>` where not given. */
  readonly out: string | undefined
  readonly drainTimeoutMs: number
  readonly onProgress?: (progress: ReplayProgress) => void
  /** Told at the begin where its group has members already, and once where it stands before an open transaction: what it may wait for. */
  readonly onWaiting?: (text: string) => void
  readonly onOutput?: (text: string) => void
  readonly draining: AbortSignal
  readonly aborting: AbortSignal
}

export interface ReplayProgress {
  /** By offsets: not each is a page. */
  readonly done: bigint
  readonly offsets: bigint
  /** Pages that the extractor was given. */
  readonly read: number
  readonly elapsedMs: number
  /** Undefined where nobody knows. */
  readonly remainingMs: number | undefined
}

export interface ShadowReport {
  readonly replayId: string
  readonly topic: string
  /** That the extractor was given. */
  readonly pages: bigint
  readonly records: number
  readonly deadLetters: number
  /** Pages of the range that retention deleted before they were read. */
  readonly gone: number
  /** Not done: its process was told to stop, or it was called off. */
  readonly interrupted: boolean
  readonly cancelled: boolean
  /** Of this process alone. */
  readonly elapsedMs: number
  /** It went on with what another process had begun. */
  readonly resumed: boolean
}

const LOOK_EVERY_MS = 500
/** How often it is looked for what may hold it up. */
const HELD_UP_EVERY = 4

/**
 * What a shadow was first asked for under this id. Shape: undefined where there is none; it goes on with that range, however html has
 * grown.
 */
export async function begunShadow(
  runtime: Runtime,
  replayId: string,
): Promise<{ readonly plan: ReplayPlan; readonly filter: ReplayFilter; readonly topic: string } | undefined> {
  const { shadow, filter } = (await knownRequest(runtime, replayId))?.request ?? {}
  if (shadow === undefined || filter === undefined) return undefined
  return { plan: planOf(runtime.topics.html, shadow.ranges), filter, topic: shadow.topic }
}

/**
 * A replay beside live work: a group of its own over a bounded range, records to a topic of their own. Begun again with the same id
 * it goes on where it stood, and where it had ended it tells of that end; begun twice at a time the two share the partitions. When it
 * is done its group is deleted; the topic stays. Errors: USAGE for a topic that is not for records, REPLAY_REFUSED where the id was
 * another request's.
 */
export async function runShadow(runtime: Runtime, options: ShadowOptions): Promise<ShadowReport> {
  const startedMono = runtime.clock.mono()
  const asked = shadowRequest(runtime, options)
  const { replayId, groupId } = asked
  const known = await knownRequest(runtime, replayId)
  const before = known === undefined ? undefined : await endedBefore(runtime, known, asked)
  if (before !== undefined) return before
  await evictDeadMembers(runtime, [groupId])
  await tellOfMembers(runtime, groupId, options.onWaiting)
  await createRecordsTopic(runtime, asked.shadow.topic)
  const isLive = await isLiveTopic(runtime, options.extractor, asked.shadow.topic)
  await announceExtractors(runtime, [options.extractor], isLive ? 'live' : 'beside')
  const begun = known ?? (await beginRequest(runtime, asked))
  // Another command was quicker under this id, and may be through already.
  const meanwhile = await endedBefore(runtime, begun, asked)
  if (meanwhile !== undefined) return meanwhile
  // To the range that it was first asked for.
  const agreed = { ...begun.request, shadow: begun.request.shadow ?? asked.shadow }
  const { status, isDone } = await workShadow(runtime, agreed, options, startedMono)
  const endedBy = { elapsedMs: runtime.clock.mono() - startedMono, resumed: known !== undefined }
  if (isDone) {
    await announceEnd(runtime, agreed, { ...status, endedBy })
    await deleteUnlessActive(runtime, groupId)
  }
  return { ...reportOf(asked, status, endedBy), interrupted: !isDone, cancelled: status.state === 'cancelled' }
}

interface BesideRequest extends ReplayRequest {
  readonly shadow: NonNullable<ReplayRequest['shadow']>
}

function shadowRequest({ groups, topics }: Runtime, { replayId, extractor, filter, expect, out, plan }: ShadowOptions): BesideRequest {
  const topic = out ?? shadowTopicOf(topics, replayId)
  const why = notForRecords(topics, topic)
  if (why !== undefined) throw new MillraceError('USAGE', `records can't go to topic ${JSON.stringify(topic)} (--out): ${why}`)
  const partitions = plan.partitions.filter(({ offsets }) => offsets > 0n)
  const ranges = partitions.map(({ partition, from, until }) => ({ partition, from: String(from), until: String(until) }))
  return {
    replayId,
    groupId: groups.replay(replayId),
    extractor: extractor.name,
    extractorVersion: extractor.version,
    filter,
    expected: expect,
    shadow: { topic, ranges },
  }
}

/**
 * Extracts until its group is through, it is called off or this process is to stop. Shape: how it stood then; done: all of it is worked.
 */
async function workShadow(
  runtime: Runtime,
  request: BesideRequest,
  options: ShadowOptions,
  startedMono: number,
): Promise<{ readonly status: ReplayStatus; readonly isDone: boolean }> {
  const { clock } = runtime
  const { replayId, groupId, shadow } = request
  const { draining, aborting, drainTimeoutMs, onProgress, onWaiting } = options
  const ranges = new Map(shadow.ranges.map(({ partition, from, until }) => [partition, { from: BigInt(from), until: BigInt(until) }]))
  const { host, worker } = await createExtract(runtime, [options.extractor], {
    groupId,
    shadow: { request, ranges, recordsTopic: shadow.topic, pagesPerSecond: options.rate },
    onReplayDone: (id) => endIfThrough(runtime, id),
    ...(options.onOutput === undefined ? {} : { onOutput: options.onOutput }),
  })
  const stages = new ServiceGroup()
  let status = await replayStatus(runtime, replayId)
  let pace: ReplayPace = []
  let isHeldUpTold = false
  let isDone = false
  const look = async (): Promise<void> => {
    status = await replayStatus(runtime, replayId)
  }
  const tell = (): void => {
    const { doneOffsets, offsets, totals } = status
    // By what was done since this process began, not by what a former one did.
    const estimate = etaOf(pace, { mono: clock.mono(), done: doneOffsets }, offsets)
    pace = estimate.pace
    const elapsedMs = clock.mono() - startedMono
    onProgress?.({ done: BigInt(doneOffsets), offsets: BigInt(offsets), read: totals.pages, elapsedMs, remainingMs: estimate.remainingMs })
  }
  try {
    await stages.start('extraction', host, aborting)
    await stages.start('replay', worker, aborting)
    const stop = AbortSignal.any([draining, aborting])
    const ended = Promise.race([worker.rangesDone().then(() => true), stages.failed])
    // What fails behind the loop is told by the stages when they are stopped.
    ended.catch(() => undefined)
    for (let looks = 1; !isDone && status.state !== 'cancelled' && !stop.aborted; looks += 1) {
      isDone = (await Promise.race([ended, clock.sleep(LOOK_EVERY_MS)])) === true
      await lookUnlessAway(runtime, async () => {
        await look()
        if (!isHeldUpTold && looks % HELD_UP_EVERY === 0) isHeldUpTold = await tellOfTransactions(runtime, groupId, ranges, onWaiting)
      })
      // Another process under the same id may have worked a part, or the last of it.
      isDone ||= isThrough(status)
      tell()
    }
    isDone &&= status.state !== 'cancelled'
    // Not later: a worker that is stopped ends its partitions too, and a group without members may be deleted by whoever ends last.
    if (isDone) await look()
  } finally {
    const mode = aborting.aborted ? 'abort' : 'drain'
    await stopServices(stages, { mode, timeoutMs: drainTimeoutMs }, aborting).finally(async () => {
      if (isDone) return
      await lookUnlessAway(runtime, async () => {
        // Called off it may be since the last look, or while it failed: who leaves last ends it, whatever it leaves for.
        await endIfCancelled(runtime, request)
        await look()
      })
    })
  }
  return { status, isDone }
}

/** Whether live work writes there too: later versions must be able to read what this one leaves there then. */
async function isLiveTopic(runtime: Runtime, extractor: LoadedExtractor, topic: string): Promise<boolean> {
  const common = runtime.topics.records
  return topic === common || topic === extractor.topic || announcedTopics(await runtime.control()).has(topic)
}

/** On a broker that is not ours a process that was killed stays a member until its session ends, and holds its partitions until then. */
async function tellOfMembers({ admin, consumerSettings }: Runtime, groupId: string, onWaiting: ShadowOptions['onWaiting']): Promise<void> {
  const { members } = await admin.describeGroup(groupId)
  if (members.length === 0) return
  const seconds = consumerSettings.sessionTimeoutMs / 1000
  onWaiting?.(
    `${members.length === 1 ? '1 other member is' : `${members.length} other members are`} in group ${groupId}: the pages are shared with them, and those of one that was killed are free after ${seconds} s`,
  )
}

/** What lies behind an open transaction can't be read, and the range may reach beyond. Shape: whether it was told. */
async function tellOfTransactions(
  runtime: Runtime,
  groupId: string,
  ranges: Ranges,
  onWaiting: ShadowOptions['onWaiting'],
): Promise<boolean> {
  const lags = (await runtime.admin.lag(groupId, [runtime.topics.html])).filter(
    (lag) => nextToRead(lag) < (ranges.get(lag.partition)?.until ?? 0n),
  )
  const open = await holdingUp(runtime, lags)
  for (const each of open) onWaiting?.(openTransactionText(each))
  return open.length > 0
}

/** How the replay of this id ended, where it did: a command that was killed after the end must not do all of it again. */
async function endedBefore(runtime: Runtime, { request, command }: KnownRequest, asked: BesideRequest): Promise<ShadowReport | undefined> {
  refuseOtherRequest(request, asked)
  refuseCancelled(request)
  const end = endOf(command)
  if (end === undefined) return undefined
  await deleteUnlessActive(runtime, request.groupId)
  return { ...reportOf(asked, end, end.endedBy), interrupted: false, cancelled: false }
}

function reportOf(
  { replayId, shadow }: BesideRequest,
  { totals, gone = 0 }: ReplayStanding,
  { elapsedMs, resumed }: ReplayEnd['endedBy'] = { elapsedMs: 0, resumed: false },
): Omit<ShadowReport, 'interrupted' | 'cancelled'> {
  const { pages, records, deadLetters } = totals
  return { replayId, topic: shadow.topic, pages: BigInt(pages), records, deadLetters, gone, elapsedMs, resumed }
}

type Ranges = ReadonlyMap<number, { readonly from: bigint; readonly until: bigint }>

/** A topic of records beside the common one; does nothing where it is there. */
export async function createRecordsTopic(runtime: Runtime, topic: string): Promise<void> {
  const existing = new Set(await runtime.admin.listTopics())
  if (existing.has(topic)) return
  const definition = runtime.wantedTopics([topic]).find((wanted) => wanted.topic === topic)
  if (definition === undefined) throw new MillraceError('INTERNAL', `topic ${topic} is not among the topics wanted`)
  await runtime.admin.createTopics([definition])
}
