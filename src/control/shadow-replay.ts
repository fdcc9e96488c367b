import type { LoadedExtractor } from '../extract/load-extractors.ts'
import { MillraceError } from '../kernel/errors.ts'
import { subject } from '../message/command.ts'
import { inFilter, type ReplayFilter, type ReplayRequest } from '../message/replay-request.ts'
import { type Comparison, ComparisonBuilder, type PageSource, pageKey } from '../replay/compare.ts'
import type { ReplayPlan } from '../replay/plan.ts'
import { registrableDomain } from '../url/registrable-domain.ts'
import { announce } from './announce.ts'
import { announceExtractors, createExtract } from './extraction.ts'
import type { Runtime } from './runtime.ts'
import { StageGroup } from './stage-group.ts'
import { failedPages, previousRecords, readRecords, type StoredRecord } from './stored-records.ts'

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
  await createRecordsTopic(runtime, recordsTopic)
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

/** A topic of records beside the common one; does nothing where it is there. */
export async function createRecordsTopic(runtime: Runtime, topic: string): Promise<void> {
  const existing = new Set(await runtime.admin.listTopics())
  if (existing.has(topic)) return
  const definition = runtime.wantedTopics([topic]).find((wanted) => wanted.topic === topic)
  if (definition === undefined) throw new MillraceError('INTERNAL', `topic ${topic} is not among the topics wanted`)
  await runtime.admin.createTopics([definition])
}

/**
 * What a shadow replay would change: its records against those of the version before, on the pages that it read. Pages on which it
 * failed are told apart by their dead letters.
 */
export async function compareShadow(
  runtime: Runtime,
  shadowTopic: string,
  extractor: LoadedExtractor,
  scope: { readonly plan: ReplayPlan; readonly filter: ReplayFilter },
): Promise<Comparison> {
  const { name, version } = extractor
  const after = new Map<string, StoredRecord[]>()
  for await (const record of readRecords(runtime, { topic: shadowTopic, extractor: name, version })) add(after, record)
  const failed = await failedPages(runtime, { extractor: name, version })
  const pages = new Set([...after.keys(), ...failed.keys()])
  const topic = extractor.topic ?? runtime.topics.records
  for await (const record of readRecords(runtime, { topic, extractor: name }))
    if (isReplayed(record, scope)) pages.add(pageKey(record.source))
  const { byPage } = await previousRecords(runtime, { topic, extractor: name, version }, pages)
  const builder = new ComparisonBuilder()
  for (const key of pages) {
    const before = byPage.get(key) ?? []
    const fresh = after.get(key)
    const [any] = fresh ?? before
    const failure = failed.get(key)
    if (any !== undefined) builder.add({ source: any.source, url: any.url, before, after: fresh ?? failure ?? [] })
    else if (failure !== undefined && isInPlan(failure.source, scope.plan))
      builder.add({ source: failure.source, url: '', before, after: failure })
  }
  return builder.result()
}

/** A page may have been written twice, by a shadow that was begun again under its id: a record counts once. */
function add(pages: Map<string, StoredRecord[]>, record: StoredRecord): void {
  const key = pageKey(record.source)
  const known = pages.get(key) ?? []
  known[record.itemIndex] = record
  pages.set(key, known)
}

function isReplayed(record: StoredRecord, { plan, filter }: { readonly plan: ReplayPlan; readonly filter: ReplayFilter }): boolean {
  if (!isInPlan(record.source, plan)) return false
  return inFilter({ finalUrl: record.url, crawlId: record.crawlId, fetchedAt: record.fetchedAt }, filter, registrableDomain)
}

function isInPlan({ partition, offset }: PageSource, plan: ReplayPlan): boolean {
  const range = plan.partitions.find((planned) => planned.partition === partition)
  return range !== undefined && BigInt(offset) >= range.from && BigInt(offset) < range.until
}
