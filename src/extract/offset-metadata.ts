/**
 * What the metadata of an extract group's committed offset carries: the state of a replay of that partition, and running totals per
 * extractor. Both are written in the transaction that commits the offset, so they can't disagree with it.
 *
 * An offset without metadata (Kafka's own reset tool) starts anew: totals begin at that offset, and no replay is under way.
 */
export interface OffsetMetadata {
  /** First offset that the totals count. */
  readonly since: bigint
  readonly totals: Totals
  readonly replay: ReplayState | undefined
  /** Of live work, or of the range of a shadow; left out where nothing is. */
  readonly gone?: Gone
}

/** Pages that retention had deleted before they were read. */
export interface Gone {
  readonly pages: number
  /** First offset behind the last of them. Retention deletes from the begin of the log: some before it may have been read. */
  readonly until: bigint
}

export interface Totals {
  /** Pages that no extractor matched. */
  readonly noMatch: number
  readonly extractors: Readonly<Record<string, ExtractorTotals>>
}

export interface ExtractorTotals {
  /** Pages that the extractor read. */
  readonly pages: number
  readonly records: number
  /** Pages that it matched and that gave no record. */
  readonly none: number
  readonly deadLetters: number
}

export type ReplayPhase = (typeof PHASES)[number]

/** By their number in the text. */
const PHASES = ['replaying', 'done', 'live'] as const

export interface ReplayState {
  readonly replayId: string
  /**
   * - replaying: between from and until, only pages of the filter go to the named extractor
   * - live: the turn of the pages that came meanwhile; it is not done yet
   * - done: never rewinds again
   */
  readonly phase: ReplayPhase
  /** First offset that is not replayed. */
  readonly until: bigint
  /** Where live work goes on; in a turn of live work, where the replay does. */
  readonly resumeAt: bigint
  readonly totals: ExtractorTotals
  /** Left out where nothing is. */
  readonly gone?: Gone
}

export const NO_TOTALS: ExtractorTotals = { pages: 0, records: 0, none: 0, deadLetters: 0 }

/** Broker limit on the metadata of an offset (offset.metadata.max.bytes), in UTF-16 units. */
const MAX_LENGTH = 4000
const MAGIC = 'x1:'

export function freshMetadata(since: bigint): OffsetMetadata {
  return { since, totals: { noMatch: 0, extractors: {} }, replay: undefined }
}

/**
 * As text for the commit. With so many extractors that it would pass the limit of the broker, the totals are left out (audit then
 * says unknown); the replay state never is.
 */
export function encodeMetadata(metadata: OffsetMetadata): string {
  const extractors = Object.entries(metadata.totals.extractors).map(([name, totals]) => [name, row(totals)])
  const replay = metadata.replay
  const state =
    replay === undefined
      ? {}
      : {
          r: [
            replay.replayId,
            PHASES.indexOf(replay.phase),
            replay.until.toString(),
            replay.resumeAt.toString(),
            row(replay.totals),
            ...goneRow(replay.gone),
          ],
        }
  const rest = metadata.gone === undefined ? state : { ...state, g: goneRow(metadata.gone) }
  const whole =
    MAGIC + JSON.stringify({ s: metadata.since.toString(), n: metadata.totals.noMatch, t: Object.fromEntries(extractors), ...rest })
  return whole.length <= MAX_LENGTH ? whole : MAGIC + JSON.stringify({ s: '-1', n: 0, t: {}, ...rest })
}

/** Total: text that is not ours gives undefined, and the caller starts anew. */
export function decodeMetadata(text: string): OffsetMetadata | undefined {
  if (!text.startsWith(MAGIC)) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(text.slice(MAGIC.length))
  } catch {
    // Anything may stand in the metadata of an offset; what is no JSON is not ours.
    return undefined
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined
  const { s, n, t, r, g } = parsed as Record<string, unknown>
  const since = offset(s)
  if (since === undefined || typeof n !== 'number' || typeof t !== 'object' || t === null) return undefined
  const extractors: Record<string, ExtractorTotals> = {}
  for (const [name, value] of Object.entries(t)) {
    const totals = totalsOf(value)
    if (totals === undefined) return undefined
    extractors[name] = totals
  }
  const replay = r === undefined ? undefined : replayOf(r)
  if (r !== undefined && replay === undefined) return undefined
  const gone = Array.isArray(g) ? goneOf(g[0], g[1]) : undefined
  return { since, totals: { noMatch: n, extractors }, replay, ...(gone === undefined ? {} : { gone }) }
}

export function addTotals(a: ExtractorTotals, b: ExtractorTotals): ExtractorTotals {
  return { pages: a.pages + b.pages, records: a.records + b.records, none: a.none + b.none, deadLetters: a.deadLetters + b.deadLetters }
}

function row(totals: ExtractorTotals): number[] {
  return [totals.pages, totals.records, totals.none, totals.deadLetters]
}

function totalsOf(value: unknown): ExtractorTotals | undefined {
  if (!Array.isArray(value) || value.length !== 4 || !value.every((item) => Number.isSafeInteger(item) && item >= 0)) return undefined
  const [pages = 0, records = 0, none = 0, deadLetters = 0] = value as number[]
  return { pages, records, none, deadLetters }
}

function replayOf(value: unknown): ReplayState | undefined {
  if (!Array.isArray(value)) return undefined
  const [replayId, phase, until, resumeAt, totals, pages, goneUntil] = value as unknown[]
  const untilOffset = offset(until)
  const resumeOffset = offset(resumeAt)
  const counted = totalsOf(totals)
  const named = typeof phase === 'number' ? PHASES[phase] : undefined
  if (
    typeof replayId !== 'string' ||
    named === undefined ||
    untilOffset === undefined ||
    resumeOffset === undefined ||
    counted === undefined
  ) {
    return undefined
  }
  const state = { replayId, phase: named, until: untilOffset, resumeAt: resumeOffset, totals: counted }
  // What was written before had their number alone.
  const gone = goneOf(pages, goneUntil ?? until)
  return gone === undefined ? state : { ...state, gone }
}

function goneRow(gone: Gone | undefined): (number | string)[] {
  return gone === undefined ? [] : [gone.pages, gone.until.toString()]
}

function goneOf(pages: unknown, until: unknown): Gone | undefined {
  const end = offset(until)
  return typeof pages === 'number' && Number.isSafeInteger(pages) && pages > 0 && end !== undefined ? { pages, until: end } : undefined
}

function offset(value: unknown): bigint | undefined {
  return typeof value === 'string' && /^-?\d{1,19}$/.test(value) ? BigInt(value) : undefined
}
