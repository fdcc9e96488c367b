import { createHash } from 'node:crypto'
import { type Comparison, ComparisonBuilder, canonical, type PageSource, pageKey } from '../../comparison/compare.ts'
import { type GateVerdict, gateVerdict } from '../../comparison/gate.ts'
import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { isSameFilter, type ReplayFilter } from '../../message/replay-request.ts'
import { recordsTopicOf } from '../../message/topics.ts'
import { type AnnouncedVersion, announcedVersions, schemaProblems, topicsOfVersions } from '../extractors/announced-versions.ts'
import { previousRecords } from '../records/stored-records.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { PageTrial, type TriedPage } from './page-trial.ts'
import { planOf, type ReplayPlan } from './replay-plan.ts'
import { isRead, PageSample, pagesOfPlan, type StoredPage } from './stored-pages.ts'
import { triedWindows, type WindowLimits } from './tried-windows.ts'

export interface PreviewOptions {
  readonly extractor: LoadedExtractor
  /** Run over the same pages as "before"; undefined: what the topic of records holds of them. */
  readonly against: LoadedExtractor | undefined
  readonly plan: ReplayPlan
  readonly filter: ReplayFilter
  /** Pages that the extractor reads; `all`: the whole range. */
  readonly sample: number | 'all'
  /** `total`: offsets of the range, or pages of the sample. */
  readonly onProgress?: (progress: { readonly done: number; readonly total: number; readonly elapsedMs: number }) => void
  readonly onOutput?: (text: string) => void
  readonly signal?: AbortSignal
}

export interface PreviewReport extends Comparison {
  readonly extractor: string
  readonly version: number
  /** Where "before" comes from: records of the log, by the pages of each version, or a run of another file. */
  readonly before: { readonly kind: 'records' | 'extractor'; readonly versions: Readonly<Record<number, number>> }
  readonly range: {
    readonly offsets: number
    /** Deleted by retention. */
    readonly gone: number
  }
  readonly pages: {
    /** Read by the extractor, or with records of the version before. */
    readonly compared: number
    readonly sampled: boolean
  }
  /** Where the records go, and other topics that those before lie on. */
  readonly topic: string
  readonly movedFrom: readonly string[]
  /** Of the new records, as a message, against the largest that their topic takes. Units: bytes. Null where there are none. */
  readonly largestRecord: (LargestRecord & { readonly limit: number }) | null
  /** With the versions of the log and, where one is configured, of the registry. */
  readonly compatibility: { readonly ok: boolean; readonly problems: readonly { readonly path: string; readonly reason: string }[] }
  readonly gate: GateVerdict
  /** The version is known with another definition: it has to be raised before it runs. */
  readonly versionTaken: boolean
  readonly partitions: ReplayPlan['partitions']
  /** For `--expect`: the same extractor over the same pages with the same result. */
  readonly hash: string
}

export interface LargestRecord {
  readonly bytes: number
  readonly url: string
  readonly source: PageSource
}

/** What is held in memory until the old records are found: the topic of records is read through for each window. */
const WINDOW: WindowLimits = { pages: 10_000, bytes: 33_554_432 }
/** How long `--expect` finds a preview. */
const KEPT_MS = 14 * 86_400_000

/**
 * What a replay would change, without writing a message: the new extractor over stored pages of the range, against what these pages
 * gave before. The hash is remembered in the state store, with the range, so that `--expect` replays just what was looked at.
 */
export async function previewReplay(runtime: Runtime, options: PreviewOptions): Promise<PreviewReport> {
  const { extractor, against, filter, onOutput } = options
  const control = await runtime.control()
  await control.readToEnd()
  const known = announcedVersions(control, extractor.name)
  const trial = await PageTrial.start(runtime, extractor, onOutput)
  const old =
    against === undefined
      ? undefined
      : await PageTrial.start(runtime, against, onOutput).catch(async (error: unknown) => {
          await trial.close()
          throw error
        })
  let compared: ComparedPages
  try {
    compared = await comparePages(runtime, options, known, { trial, old })
  } finally {
    await Promise.all([trial.close(), old?.close()])
  }
  const report = await reportOf(runtime, options, known, { ...compared, limit: trial.largestTaken })
  await remember(runtime, report, extractor, filter)
  return report
}

interface ComparedPages {
  readonly builder: ComparisonBuilder
  /** Pages by the version that they were held against. */
  readonly versions: Readonly<Record<number, number>>
  readonly compared: number
  readonly largest: LargestRecord | undefined
}

/** Runs the extractor, and the other one where there is one, over the pages, and holds what they give against what they gave. */
async function comparePages(
  runtime: Runtime,
  options: PreviewOptions,
  known: readonly AnnouncedVersion[],
  { trial, old }: { readonly trial: PageTrial; readonly old: PageTrial | undefined },
): Promise<ComparedPages> {
  const builder = new ComparisonBuilder()
  const versions: Record<number, number> = {}
  let compared = 0
  let largest: LargestRecord | undefined
  const pages = inScope(pagesToRead(runtime, options), progressOf(runtime, options))
  const run = async (stored: StoredPage): Promise<Pair> => {
    const [fresh, was] = await Promise.all([trial.run(stored), old?.run(stored)])
    return { fresh, was, bytes: fresh.bytes + (was?.bytes ?? 0) }
  }
  const atOnce = runtime.config['extract.threads'] + 1
  for await (const pairs of triedWindows(pages, run, { atOnce, limits: WINDOW })) {
    const before = old === undefined ? await recordsBefore(runtime, options, known, pairs) : undefined
    for (const [version, count] of Object.entries(before?.versions ?? {}))
      versions[Number(version)] = (versions[Number(version)] ?? 0) + count
    for (const { fresh, was } of pairs) {
      const earlier = before?.byPage.get(pageKey(fresh.source)) ?? (was !== undefined && Array.isArray(was.result) ? was.result : [])
      const isFailure = !Array.isArray(fresh.result)
      if (earlier.length === 0 && !isFailure && (fresh.result as readonly unknown[]).length === 0 && !fresh.matched) continue
      compared += 1
      if (fresh.largestBytes > (largest?.bytes ?? 0)) largest = { bytes: fresh.largestBytes, url: fresh.url, source: fresh.source }
      builder.add({ source: fresh.source, url: fresh.url, before: earlier, after: fresh.result })
    }
  }
  if (options.against !== undefined) versions[options.against.version] = compared
  return { builder, versions, compared, largest }
}

async function reportOf(
  runtime: Runtime,
  options: PreviewOptions,
  known: readonly AnnouncedVersion[],
  { builder, versions, compared, largest, limit }: ComparedPages & { readonly limit: number },
): Promise<PreviewReport> {
  const { extractor, against, plan } = options
  const comparison = builder.result()
  const problems = await schemaProblems(runtime, extractor, known)
  const before = known.filter(({ version }) => version in versions)
  const required = [extractor, against].flatMap((each) => each?.requiredFields ?? [])
  return {
    extractor: extractor.name,
    version: extractor.version,
    ...comparison,
    before: { kind: against === undefined ? 'records' : 'extractor', versions },
    range: { offsets: Number(plan.offsets), gone: Number(plan.gone) },
    pages: { compared, sampled: options.sample !== 'all' },
    topic: recordsTopicOf(extractor, runtime.topics),
    movedFrom: movedFrom(runtime, extractor, against === undefined ? before : [against]),
    largestRecord: largest === undefined ? null : { ...largest, limit },
    compatibility: { ok: problems.length === 0, problems },
    gate: gateVerdict(comparison, new Set([...required, ...before.flatMap((each) => each.required)])),
    versionTaken: known.some(
      ({ version, definitionSha256 }) => version === extractor.version && definitionSha256 !== extractor.definitionSha256,
    ),
    partitions: plan.partitions,
    hash: hashOf(options, builder.digest()),
  }
}

/** Tells of each page that was looked at. */
function progressOf({ clock }: Runtime, { sample, plan, onProgress }: PreviewOptions): () => void {
  const startedMono = clock.mono()
  const total = sample === 'all' ? Number(plan.offsets) : Math.min(sample, Number(plan.offsets))
  let done = 0
  return () => {
    done += 1
    onProgress?.({ done, total, elapsedMs: clock.mono() - startedMono })
  }
}

function pagesToRead(runtime: Runtime, { extractor, against, plan, filter, sample, signal }: PreviewOptions): AsyncGenerator<StoredPage> {
  if (sample === 'all') return pagesOfPlan(runtime, plan, filter, signal)
  const isWanted = (stored: StoredPage): boolean => isRead(extractor, stored) || (against !== undefined && isRead(against, stored))
  return new PageSample(runtime, plan, filter, { wanted: sample, isWanted }).pages(signal)
}

interface Pair {
  readonly fresh: TriedPage
  readonly was: TriedPage | undefined
  readonly bytes: number
}

/** Those that the extractor may read; all are counted. */
async function* inScope(pages: AsyncIterable<StoredPage>, onPage: () => void): AsyncGenerator<StoredPage> {
  for await (const stored of pages) {
    onPage()
    if (stored.inScope) yield stored
  }
}

async function recordsBefore(
  runtime: Runtime,
  { extractor, signal }: Pick<PreviewOptions, 'extractor' | 'signal'>,
  known: readonly AnnouncedVersion[],
  pairs: readonly Pair[],
): ReturnType<typeof previousRecords> {
  const since = pairs.reduce((least, { fresh }) => Math.min(least, fresh.fetchedAt), Number.MAX_SAFE_INTEGER)
  const topics = topicsOfVersions(runtime, extractor, known)
  const scope = { topics, extractor: extractor.name, version: extractor.version, since, signal }
  return pairs.length === 0
    ? { byPage: new Map(), versions: {} }
    : previousRecords(runtime, scope, new Set(pairs.map(({ fresh }) => pageKey(fresh.source))))
}

/** Topics of versions that records were held against, where the new ones go to another one. */
function movedFrom(
  { topics }: Pick<Runtime, 'topics'>,
  extractor: LoadedExtractor,
  before: readonly Pick<LoadedExtractor, 'topic'>[],
): string[] {
  const now = recordsTopicOf(extractor, topics)
  return [...new Set(before.map((each) => recordsTopicOf(each, topics)))].filter((topic) => topic !== now)
}

function hashOf({ extractor, plan, filter }: PreviewOptions, digest: string): string {
  const ranges = plan.partitions.map(({ partition, from, until }) => [partition, from, until])
  const { name, version, definitionSha256 } = extractor
  return createHash('sha256')
    .update(canonical([name, version, definitionSha256, filter, ranges, digest]))
    .digest('hex')
    .slice(0, 16)
}

/** What `--expect` finds again. */
export interface RememberedPreview {
  readonly extractor: string
  readonly version: number
  readonly definitionSha256: string
  readonly filter: ReplayFilter
  readonly topic: string
  readonly partitions: readonly (readonly [number, string, string])[]
  readonly gate: GateVerdict
}

async function remember(
  runtime: Runtime,
  report: PreviewReport,
  { name, version, definitionSha256 }: LoadedExtractor,
  filter: ReplayFilter,
): Promise<void> {
  const partitions = report.partitions.map(({ partition, from, until }) => [partition, String(from), String(until)] as const)
  const remembered: RememberedPreview = {
    extractor: name,
    version,
    definitionSha256,
    filter,
    topic: runtime.topics.html,
    partitions,
    gate: report.gate,
  }
  const state = await runtime.state()
  await state.writeTimed(`preview:${report.hash}`, JSON.stringify(remembered), KEPT_MS)
}

/**
 * The range that was previewed under a hash, for the same extractor. Errors: REPLAY_REFUSED where the hash is not known here, the
 * extractor or the filter is another one, or pages of the range are gone since.
 */
export async function expectedPlan(
  runtime: Runtime,
  hash: string,
  extractor: LoadedExtractor,
  filter: ReplayFilter,
): Promise<{ readonly plan: ReplayPlan; readonly filter: ReplayFilter; readonly gate: GateVerdict }> {
  const state = await runtime.state()
  const text = await state.readTimed(`preview:${hash}`)
  const refuse = (why: string): MillraceError =>
    new MillraceError('REPLAY_REFUSED', `--expect ${hash}: ${why}; look again with \`millrace replay preview\``)
  if (text === undefined) throw refuse(`no preview of the last ${KEPT_MS / 86_400_000} days has this hash`)
  const preview = JSON.parse(text) as RememberedPreview
  const { name, version, definitionSha256 } = extractor
  if (preview.extractor !== name || preview.version !== version || preview.definitionSha256 !== definitionSha256)
    throw refuse(
      `it was of ${preview.extractor} version ${preview.version}, and ${name} version ${version} of ${extractor.file} is another extractor`,
    )
  if (!isSameFilter(preview.filter, filter)) throw refuse(`it was of other pages (filter ${JSON.stringify(preview.filter)})`)
  const lows = await runtime.admin.earliestOffsets(preview.topic)
  const ranges = preview.partitions.map(([partition, from, until]) => ({ partition, from, until }))
  for (const { partition, from, until } of ranges)
    if (BigInt(from) < BigInt(until) && BigInt(from) < (lows.get(partition) ?? 0n))
      throw refuse(`retention has deleted pages of partition ${partition} since`)
  return { plan: planOf(preview.topic, ranges), filter: preview.filter, gate: preview.gate }
}

const GATE_SAMPLE = 100

/**
 * Lets a version pass that gives no less than the one before on the same pages: by the verdict of a preview where there is one, else by
 * a look at a sample. Shape: what is to be known of it all the same, one sentence each; of a preview none, which has shown it.
 * Errors: EXTRACTOR_HELD with the reasons.
 */
export async function passGate(
  runtime: Runtime,
  request: Omit<PreviewOptions, 'sample'>,
  known: GateVerdict | undefined,
): Promise<readonly string[]> {
  const fresh = async (): Promise<GateVerdict> => (await previewReplay(runtime, { ...request, sample: GATE_SAMPLE })).gate
  const { held, reasons, notes } = known === undefined ? await fresh() : { ...known, notes: [] }
  if (!held) return notes
  const { name, version } = request.extractor
  throw new MillraceError('EXTRACTOR_HELD', `version ${version} of ${name} is held back: ${reasons.join('; ')}`)
}
