import type { ExtractProgress } from '../extract/extract-worker.ts'
import type { LoadedExtractor } from '../extract/load-extractors.ts'
import { addTotals, decodeMetadata, type ExtractorTotals, NO_TOTALS } from '../extract/offset-metadata.ts'
import { nextToRead } from '../kafka/admin.ts'
import { partitionId } from '../kernel/brand.ts'
import { MillraceError } from '../kernel/errors.ts'
import { subject } from '../message/command.ts'
import type { ReplayFilter, ReplayRequest } from '../message/replay-request.ts'
import { notForRecords, shadowTopicOf } from '../message/topics.ts'
import { etaOf, type ReplayPace } from '../replay/pace.ts'
import type { ReplayPlan } from '../replay/plan.ts'
import { announce } from './announce.ts'
import { announceExtractors } from './announce-extractors.ts'
import { announcedTopics } from './announced-versions.ts'
import { createExtract } from './create-extract.ts'
import { evictDeadMembers } from './dead-members.ts'
import { lookUnlessAway } from './look-unless-away.ts'
import { holdingUp, openTransactionText } from './open-transactions.ts'
import {
  beginRequest,
  deleteUnlessActive,
  endIfCancelled,
  goneOf,
  type KnownRequest,
  knownRequest,
  planOf,
  refuseCancelled,
  refuseOtherRequest,
  replayStatus,
} from './replay-ledger.ts'
import type { Runtime } from './runtime.ts'
import { StageGroup, stopStages } from './stage-group.ts'

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

const LOOK_EVERY_MS = 200
/** Looks at what the whole group has committed. */
const GROUP_LOOK_EVERY = 10

/** What a shadow was first asked for under this id. Shape: undefined where there is none; it goes on with that range, however html has grown. */
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
  const { clock, groups, topics } = runtime
  const startedMono = clock.mono()
  const groupId = groups.replay(options.replayId)
  const recordsTopic = options.out ?? shadowTopicOf(topics, options.replayId)
  const why = notForRecords(topics, recordsTopic)
  if (why !== undefined) throw new MillraceError('USAGE', `records can't go to topic ${JSON.stringify(recordsTopic)} (--out): ${why}`)
  const { name, version } = options.extractor
  const partitions = options.plan.partitions.filter(({ offsets }) => offsets > 0n)
  const request: ReplayRequest = {
    replayId: options.replayId,
    groupId,
    extractor: name,
    extractorVersion: version,
    filter: options.filter,
    expected: options.expect,
    shadow: {
      topic: recordsTopic,
      ranges: partitions.map(({ partition, from, until }) => ({ partition, from: String(from), until: String(until) })),
    },
  }
  const known = await knownRequest(runtime, options.replayId)
  const before = known === undefined ? undefined : await endedBefore(runtime, known, request)
  if (before !== undefined) return { ...before, replayId: options.replayId, interrupted: false, cancelled: false }
  await evictDeadMembers(runtime, [groupId])
  await tellOfMembers(runtime, groupId, options.onWaiting)
  await createRecordsTopic(runtime, recordsTopic)
  const isLive = await isLiveTopic(runtime, options.extractor, recordsTopic)
  await announceExtractors(runtime, [options.extractor], isLive ? 'live' : 'tried')
  const begun = known ?? (await beginRequest(runtime, request))
  // Another command was quicker under this id, and may be through already.
  const meanwhile = await endedBefore(runtime, begun, request)
  if (meanwhile !== undefined) return { ...meanwhile, replayId: options.replayId, interrupted: false, cancelled: false }
  const agreed = begun.request
  const plan = planOf(topics.html, agreed.shadow?.ranges ?? [])
  const ranges = new Map(plan.partitions.map(({ partition, from, until }) => [partition, { from, until }] as const))
  const { host, worker } = await createExtract(runtime, [options.extractor], {
    groupId,
    shadow: { request: agreed, ranges, recordsTopic, pagesPerSecond: options.rate },
    ...(options.onOutput === undefined ? {} : { onOutput: options.onOutput }),
  })
  const stages = new StageGroup()
  let finished = false
  let isDone = false
  let cancelled = false
  let gone = goneOf({ partitions: [] })
  let isHeldUpTold = false
  // A worker that has left its group owns no partition any more: what it counted is kept here.
  let standing = standingOf(worker.progress(), ranges, name)
  let pace: ReplayPace = []
  const tell = (): void => {
    const { done, totals } = standing
    const { offsets } = plan
    // By what was done since this process began, not by what a former one did.
    const estimate = etaOf(pace, { mono: clock.mono(), done: Number(done) }, Number(offsets))
    pace = estimate.pace
    options.onProgress?.({ done, offsets, read: totals.pages, elapsedMs: clock.mono() - startedMono, remainingMs: estimate.remainingMs })
  }
  try {
    await stages.start('extraction', host, options.aborting)
    await stages.start('replay', worker, options.aborting)
    const ranged = worker.rangesDone().then(() => {
      finished = true
    })
    const stop = AbortSignal.any([options.draining, options.aborting])
    let failure: unknown
    Promise.race([ranged, stages.failed]).catch((error: unknown) => {
      failure = error
    })
    for (let looks = 1; !finished && !cancelled && failure === undefined && !stop.aborted; looks += 1) {
      await clock.sleep(LOOK_EVERY_MS)
      const own = standingOf(worker.progress(), ranges, name)
      if (own.done > standing.done) standing = own
      if (looks % GROUP_LOOK_EVERY === 0) {
        // Another process under the same id may have worked a part, and somebody may have called it off.
        await lookUnlessAway(runtime, async () => {
          standing = await groupStanding(runtime, groupId, ranges, name)
          cancelled = (await knownRequest(runtime, options.replayId))?.request.cancelled === true
          if (!isHeldUpTold) isHeldUpTold = await tellOfTransactions(runtime, groupId, ranges, options.onWaiting)
        })
      }
      finished ||= standing.isThrough
      tell()
    }
    // Not later: a worker that is stopped ends its partitions too, and a group without members may be deleted by whoever ends last.
    isDone = finished && !cancelled && failure === undefined
    if (failure !== undefined) throw failure
    if (isDone) standing = await groupStanding(runtime, groupId, ranges, name)
    gone = goneOf(await replayStatus(runtime, options.replayId))
  } finally {
    const mode = options.aborting.aborted ? 'abort' : 'drain'
    await stopStages(stages, { mode, timeoutMs: options.drainTimeoutMs }, options.aborting).finally(async () => {
      // Called off it may be since the last look, or while it failed: who leaves last ends it, whatever it leaves for.
      const look = (): Promise<boolean> => endIfCancelled(runtime, groupId, options.replayId)
      if (!isDone) cancelled = (await lookUnlessAway(runtime, look)) ?? cancelled
    })
  }
  const { records, deadLetters } = standing.totals
  const pages = BigInt(standing.totals.pages)
  const elapsedMs = clock.mono() - startedMono
  const resumed = known !== undefined
  if (isDone) {
    const ended: EndedShadow = { topic: recordsTopic, pages: String(pages), records, deadLetters, gone: gone.gone, elapsedMs, resumed }
    const { totals } = standing
    const payload = { ...agreed, totals, ...gone, ended }
    await announce(runtime, { kind: 'close', subject: subject.replay(options.replayId), payload })
  }
  if (isDone) await deleteUnlessActive(runtime, groupId)
  const interrupted = !isDone
  const counted = { pages, records, deadLetters, gone: gone.gone }
  return { replayId: options.replayId, topic: recordsTopic, ...counted, interrupted, cancelled, elapsedMs, resumed }
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

/** Of a shadow that has ended, as `control` keeps it. */
interface EndedShadow {
  readonly topic: string
  /** Offsets have no number in JSON. */
  readonly pages: string
  readonly records: number
  readonly deadLetters: number
  readonly elapsedMs: number
  /** Left out by those of before, as `resumed`. */
  readonly gone?: number
  readonly resumed?: boolean
}

type EndedReport = Omit<ShadowReport, 'replayId' | 'interrupted' | 'cancelled'>

/** How the replay of this id ended, where it did: a command that was killed after the end must not do all of it again. */
async function endedBefore(runtime: Runtime, known: KnownRequest, request: ReplayRequest): Promise<EndedReport | undefined> {
  refuseOtherRequest(known.request, request)
  refuseCancelled(known.request)
  const { ended } = known.payload as { ended?: EndedShadow }
  if (!known.isClosed || ended === undefined) return undefined
  await deleteUnlessActive(runtime, request.groupId)
  return { resumed: false, gone: 0, ...ended, pages: BigInt(ended.pages) }
}

type Ranges = ReadonlyMap<number, { readonly from: bigint; readonly until: bigint }>

interface Standing {
  /** Pages of the ranges that are worked, by offsets. */
  readonly done: bigint
  readonly isThrough: boolean
  readonly totals: ExtractorTotals
}

function standingOf(partitions: readonly ExtractProgress[], ranges: Ranges, extractor: string): Standing {
  const committed = new Map(partitions.map((each) => [each.partition, each.committed]))
  let done = 0n
  let isThrough = true
  for (const [partition, { from, until }] of ranges) {
    const at = committed.get(partition) ?? from
    if (at > from) done += at - from
    if (at < until) isThrough = false
  }
  const totals = partitions.flatMap(({ metadata }) => metadata.totals.extractors[extractor] ?? [])
  return { done, isThrough, totals: totals.reduce(addTotals, NO_TOTALS) }
}

/** As the group has committed it, whichever process did. */
async function groupStanding({ admin, topics }: Runtime, groupId: string, ranges: Ranges, extractor: string): Promise<Standing> {
  const committed = await admin.committedOffsets(groupId, [topics.html])
  const partitions = [...ranges.keys()].flatMap((partition): ExtractProgress[] => {
    const stored = committed.get(partitionId(topics.html, partition))
    const metadata = decodeMetadata(stored?.metadata ?? '')
    return stored?.offset === undefined || metadata === undefined ? [] : [{ partition, committed: stored.offset, metadata }]
  })
  return standingOf(partitions, ranges, extractor)
}

/** A topic of records beside the common one; does nothing where it is there. */
export async function createRecordsTopic(runtime: Runtime, topic: string): Promise<void> {
  const existing = new Set(await runtime.admin.listTopics())
  if (existing.has(topic)) return
  const definition = runtime.wantedTopics([topic]).find((wanted) => wanted.topic === topic)
  if (definition === undefined) throw new MillraceError('INTERNAL', `topic ${topic} is not among the topics wanted`)
  await runtime.admin.createTopics([definition])
}
