import type { LoadedExtractor } from '../extract/load-extractors.ts'
import { readLog } from '../kafka/log-reader.ts'
import { MillraceError } from '../kernel/errors.ts'
import { subject } from '../message/command.ts'
import type { RecordEnvelope } from '../message/generated/types.ts'
import { inFilter, type ReplayFilter, type ReplayRequest } from '../message/replay-request.ts'
import { type ComparableRecord, type Comparison, compareRecords } from '../replay/compare.ts'
import type { ReplayPlan } from '../replay/plan.ts'
import { registrableDomain } from '../url/registrable-domain.ts'
import { announce } from './announce.ts'
import { announceExtractors, createExtract } from './extraction.ts'
import type { Runtime } from './runtime.ts'
import { StageGroup } from './stage-group.ts'

export interface ShadowOptions {
  readonly replayId: string
  readonly extractor: LoadedExtractor
  readonly filter: ReplayFilter
  readonly plan: ReplayPlan
  /** Pages per second; undefined: as fast as it goes. */
  readonly rate: number | undefined
  /** Topic of the records; `<prefix>records.shadow.<id>` where not given. */
  readonly out: string | undefined
  readonly drainTimeoutMs: number
  readonly onProgress?: (progress: ReplayProgress) => void
  readonly onOutput?: (text: string) => void
  readonly draining: AbortSignal
  readonly aborting: AbortSignal
}

export interface ReplayProgress {
  readonly done: bigint
  readonly pages: bigint
  readonly elapsedMs: number
}

export interface ShadowReport {
  readonly replayId: string
  readonly topic: string
  readonly pages: bigint
  readonly records: number
  readonly deadLetters: number
  readonly interrupted: boolean
  readonly elapsedMs: number
}

const LOOK_EVERY_MS = 200

/**
 * A replay beside live work: a group of its own over a bounded range, records to a topic of their own. Begun again with the same id
 * it goes on where it stood. When it is done its group is deleted; the topic stays.
 */
export async function runShadow(runtime: Runtime, options: ShadowOptions): Promise<ShadowReport> {
  const { clock, groups, admin, topics } = runtime
  const startedMono = clock.mono()
  const groupId = groups.replay(options.replayId)
  const recordsTopic = options.out ?? `${topics.records}.shadow.${options.replayId}`
  const { name, version } = options.extractor
  const request: ReplayRequest = { replayId: options.replayId, groupId, extractor: name, extractorVersion: version, filter: options.filter }
  await createShadowTopic(runtime, recordsTopic)
  await announceExtractors(runtime, [options.extractor])
  await announce(runtime, { kind: 'request', subject: subject.replay(options.replayId), payload: request })
  const ranges = new Map(options.plan.partitions.map(({ partition, from, until }) => [partition, { from, until }] as const))
  const { host, worker } = await createExtract(runtime, [options.extractor], {
    groupId,
    shadow: { request, ranges, recordsTopic, pagesPerSecond: options.rate },
    ...(options.onOutput === undefined ? {} : { onOutput: options.onOutput }),
  })
  const stages = new StageGroup()
  let finished = false
  let isDone = false
  // A worker that has left its group owns no partition any more: what it counted is kept here.
  let counted = worker.progress()
  const done = (): bigint =>
    counted.reduce((sum, { partition, committed }) => {
      const range = ranges.get(partition)
      return range === undefined || committed < range.from ? sum : sum + (committed - range.from)
    }, 0n)
  const tell = (): void => options.onProgress?.({ done: done(), pages: options.plan.pages, elapsedMs: clock.mono() - startedMono })
  try {
    await stages.start('extraction', host, options.aborting)
    await stages.start('replay', worker, options.aborting)
    const ranged = worker.rangesDone().then(() => {
      finished = true
    })
    const stop = AbortSignal.any([options.draining, options.aborting])
    let failure: unknown
    const watched = Promise.race([ranged, stages.failed]).catch((error: unknown) => {
      failure = error
    })
    while (!finished && failure === undefined && !stop.aborted) {
      await clock.sleep(LOOK_EVERY_MS)
      counted = worker.progress()
      tell()
    }
    // Not later: a worker that is stopped ends its partitions too.
    isDone = finished
    if (failure !== undefined) throw failure
    if (isDone) await watched
  } finally {
    await stages.stop({ mode: options.aborting.aborted ? 'abort' : 'drain', timeoutMs: options.drainTimeoutMs })
  }
  const totals = counted.map(({ metadata }) => metadata.replay?.totals ?? metadata.totals.extractors[name])
  if (isDone) {
    await announce(runtime, { kind: 'close', subject: subject.replay(options.replayId) })
    await admin.deleteGroup(groupId)
  }
  return {
    replayId: options.replayId,
    topic: recordsTopic,
    pages: options.plan.pages,
    records: totals.reduce((sum, each) => sum + (each?.records ?? 0), 0),
    deadLetters: totals.reduce((sum, each) => sum + (each?.deadLetters ?? 0), 0),
    interrupted: !isDone,
    elapsedMs: clock.mono() - startedMono,
  }
}

async function createShadowTopic(runtime: Runtime, topic: string): Promise<void> {
  const existing = new Set(await runtime.admin.listTopics())
  if (existing.has(topic)) return
  const definition = runtime.wantedTopics([topic]).find((wanted) => wanted.topic === topic)
  if (definition === undefined) throw new MillraceError('INTERNAL', `topic ${topic} is not among the topics wanted`)
  await runtime.admin.createTopics([definition])
}

/** Records of one extractor in a topic, by entity key, as far as they are committed; those of a filter alone where one is given. */
export async function recordsOf(runtime: Runtime, topic: string, extractor: string, version?: number): Promise<StoredRecord[]> {
  const { client, clock, observer, codec } = runtime
  await runtime.control()
  const found: StoredRecord[] = []
  for await (const event of readLog({ client, clock, observer, from: new Map([[topic, 'earliest' as const]]) })) {
    if (event.kind !== 'batch') continue
    await codec.ensureSchemas(event.messages.map(({ value }) => value))
    for (const { value } of event.messages) {
      if (value === null) continue
      const record = codec.decodeAny(value).value as StoredRecord
      if (record.extractor !== extractor || (version !== undefined && record.extractorVersion !== version)) continue
      found.push(record)
    }
  }
  return found
}

/** What a shadow replay would change: its records against those of the common topic. */
export async function compareShadow(
  runtime: Runtime,
  shadowTopic: string,
  extractor: string,
  scope: { readonly plan: ReplayPlan; readonly filter: ReplayFilter },
): Promise<Comparison> {
  // Records of pages that the replay did not read are no difference.
  const before = (await recordsOf(runtime, runtime.topics.records, extractor)).filter((record) => isReplayed(record, scope))
  const after = await recordsOf(runtime, shadowTopic, extractor)
  return compareRecords(before, after)
}

type StoredRecord = RecordEnvelope & ComparableRecord

function isReplayed(record: StoredRecord, { plan, filter }: { readonly plan: ReplayPlan; readonly filter: ReplayFilter }): boolean {
  const { partition, offset } = record.source
  const range = plan.partitions.find((planned) => planned.partition === partition)
  if (range === undefined || BigInt(offset) < range.from || BigInt(offset) >= range.until) return false
  return inFilter({ finalUrl: record.url, crawlId: record.crawlId, fetchedAt: record.fetchedAt }, filter, registrableDomain)
}
