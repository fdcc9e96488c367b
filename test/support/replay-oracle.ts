import type { Page, RecordEnvelope } from '../../src/message/generated/types.ts'
import { HEADER, headerValue } from '../../src/message/header-names.ts'
import { committed, type Deployment, readPages, readRecords } from './deployment.ts'
import { differencesToOthers } from './other-readers.ts'

/** A replay that has ended, and what it was asked for. */
export interface ReplayPass {
  readonly replayId: string
  readonly topic: 'records' | { readonly shadow: string }
  /** The pages that it has to have read, each once; others not at all. */
  readonly covers: (page: Page, place: Place) => boolean
  /** When it ran, epoch ms. */
  readonly during: { readonly from: number; readonly until: number }
  /** As the command told it at its end. */
  readonly told: { readonly records: number; readonly deadLetters: number }
}

export interface Place {
  readonly partition: number
  readonly offset: bigint
}

export interface ReplayFigures {
  readonly pages: number
  readonly liveRecords: number
  readonly replayed: Readonly<Record<string, number>>
  readonly deadLetters: number
  /** Of live pages that came while something was replayed, from their message to their record, in seconds. */
  readonly liveLag: { readonly pages: number; readonly median: number; readonly most: number }
}

export interface ReplayOracleOptions {
  readonly deployment: Deployment
  readonly passes: readonly ReplayPass[]
  /** True for a page that no version gives a record of. */
  readonly isBroken: (page: Page) => boolean
}

/**
 * Counts from outside, with read_committed, what live work and replays have left behind: of every page on html one live record or dead
 * letter, and one more for each replay that covers it. Shape: `violations` is empty where that holds.
 */
export async function countReplays(options: ReplayOracleOptions): Promise<{ violations: string[]; figures: ReplayFigures }> {
  const { deployment, passes, isBroken } = options
  const shadows = passes.flatMap(({ topic }) => (topic === 'records' ? [] : [topic.shadow]))
  const { pages, records, shadowed, letters, differences } = await deployment.read(async (runtime) => ({
    pages: await readPages(runtime),
    records: (await readRecords(runtime)).map(({ value }) => value as RecordEnvelope),
    shadowed: (await Promise.all(shadows.map((name) => committed(runtime, name)))).flatMap((messages) =>
      messages.map((message) => runtime.codec.decodeAny(message.value).value as RecordEnvelope),
    ),
    letters: await committed(runtime, runtime.topics.deadLetters),
    differences: await differencesToOthers(runtime, [runtime.topics.records, ...shadows]),
  }))
  const violations = [...differences]
  const found = new Map<string, number>()
  for (const { replayId, source } of [...records, ...shadowed]) count(found, `${replayId ?? 'live'} ${source.partition}:${source.offset}`)
  const letterCounts = new Map<string, number>()
  for (const { headers } of letters)
    count(letterCounts, `${headerValue(headers, HEADER.origPartition)}:${headerValue(headers, HEADER.origOffset)}`)
  const places = new Set<string>()
  const replayed: Record<string, number> = Object.fromEntries(passes.map(({ replayId }) => [replayId, 0]))
  for (const { message, value } of pages) {
    const place = { partition: message.partition, offset: message.offset }
    const at = `${place.partition}:${place.offset}`
    const broken = isBroken(value)
    const times = (replayId: string): number => found.get(`${replayId} ${at}`) ?? 0
    let least = 1
    let most = 1
    checkTimes(violations, {
      what: `live records of ${at} (${value.url})`,
      times: times('live'),
      least: broken ? 0 : 1,
      most: broken ? 0 : 1,
    })
    for (const { replayId, covers } of passes) {
      const covered = covers(value, place)
      least += covered ? 1 : 0
      most += covered ? 1 : 0
      const gave = times(replayId)
      replayed[replayId] = (replayed[replayId] ?? 0) + gave
      const bounds = { least: covered && !broken ? 1 : 0, most: covered && !broken ? 1 : 0 }
      checkTimes(violations, { what: `records of replay ${replayId} for ${at} (${value.url})`, times: gave, ...bounds })
    }
    const bounds = broken ? { least, most } : { least: 0, most: 0 }
    checkTimes(violations, { what: `dead letters of ${at} (${value.url})`, times: letterCounts.get(at) ?? 0, ...bounds })
    places.add(at)
  }
  for (const key of found.keys()) {
    const [replayId = '', at = ''] = key.split(' ')
    if (!places.has(at)) violations.push(`a record of ${at}, where there is no page`)
    if (replayId !== 'live' && !passes.some((pass) => pass.replayId === replayId)) violations.push(`a record of replay ${replayId}`)
  }
  for (const { replayId, told } of passes)
    if (told.records !== replayed[replayId])
      violations.push(`replay ${replayId} says ${told.records} records, and there are ${replayed[replayId]}`)
  return {
    violations,
    figures: {
      pages: pages.length,
      liveRecords: records.filter(({ replayId }) => replayId === null).length,
      replayed,
      deadLetters: letters.length,
      liveLag: lagOf(records, passes),
    },
  }
}

function lagOf(records: readonly RecordEnvelope[], passes: readonly ReplayPass[]): ReplayFigures['liveLag'] {
  const isDuring = (time: number): boolean => passes.some(({ during }) => time >= during.from && time < during.until)
  const lags = records
    .filter(({ replayId, fetchedAt }) => replayId === null && isDuring(fetchedAt))
    .map(({ extractedAt, fetchedAt }) => extractedAt - fetchedAt)
    .sort((a, b) => a - b)
  const at = (index: number): number => Math.round((lags[Math.max(0, index)] ?? 0) / 100) / 10
  return { pages: lags.length, median: at(lags.length >> 1), most: at(lags.length - 1) }
}

function checkTimes(
  violations: string[],
  { what, times, least, most }: { what: string; times: number; least: number; most: number },
): void {
  if (times < least || times > most) violations.push(`${what}: ${times}, not ${least === most ? least : `${least} to ${most}`}`)
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
