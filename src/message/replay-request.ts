import { z } from 'zod'
import { MillraceError } from '../kernel/errors.ts'
import { commandPayload, parseSubject } from './command.ts'
import type { Command, Page } from './generated/types.ts'

/** Which stored pages a replay reads; what is not given does not narrow. */
export interface ReplayFilter {
  /** Registrable domain, or host. */
  readonly domain?: string | undefined
  readonly crawlId?: string | undefined
  /** Epoch ms, from (included) and until (excluded). */
  readonly fetchedFrom?: number | undefined
  readonly fetchedUntil?: number | undefined
  /** Of times that were given as so long ago, the ms; by these the same line, given later, is known again. */
  readonly ago?: { readonly fetchedFrom?: number | undefined; readonly fetchedUntil?: number | undefined } | undefined
}

/** What `replay:ID` on the control topic holds. */
export interface ReplayRequest {
  readonly replayId: string
  readonly groupId: string
  readonly extractor: string
  readonly extractorVersion: number
  readonly filter: ReplayFilter
  /**
   * In place: what each partition replays. An owner that finds its partition here, and no state of this replay with its offset, rewinds.
   */
  readonly ranges?: readonly ReplayRange[] | undefined
  /** Beside live work: what is read, and where the records go. Nothing for the owners of the live group. */
  readonly shadow?: { readonly topic: string; readonly ranges: readonly ReplayRange[] } | undefined
  /** Pages per second over all partitions; undefined: as fast as it goes. */
  readonly rate?: number | undefined
  /** Owners jump back to live work; what was written stays. */
  readonly cancelled?: boolean | undefined
  /** What a shadow had left is removed; its id is not free again. */
  readonly forgotten?: boolean | undefined
  /** Where its records go; the common topic where not given. */
  readonly recordsTopic?: string | undefined
  /** Why it was begun although the gate holds the version back. */
  readonly forced?: string | undefined
  /** Hash of the preview whose range it has. */
  readonly expected?: string | undefined
}

/** Offsets in decimal: JSON has no number for them. */
export interface ReplayRange {
  readonly partition: number
  readonly from: string
  /** First offset that is not replayed. */
  readonly until: string
}

const OFFSET = /^\d{1,19}$/

const ranges = z.array(
  z.object({ partition: z.number().int().nonnegative(), from: z.string().regex(OFFSET), until: z.string().regex(OFFSET) }),
)

const schema = z.object({
  replayId: z.string().min(1),
  groupId: z.string().min(1),
  extractor: z.string().min(1),
  extractorVersion: z.number().int().positive(),
  filter: z.object({
    domain: z.string().optional(),
    crawlId: z.string().optional(),
    fetchedFrom: z.number().optional(),
    fetchedUntil: z.number().optional(),
    ago: z.object({ fetchedFrom: z.number().optional(), fetchedUntil: z.number().optional() }).optional(),
  }),
  ranges: ranges.optional(),
  shadow: z.object({ topic: z.string(), ranges }).optional(),
  rate: z.number().positive().optional(),
  cancelled: z.boolean().optional(),
  forgotten: z.boolean().optional(),
  recordsTopic: z.string().optional(),
  expected: z.string().optional(),
  forced: z.string().optional(),
})

/** Errors: MESSAGE_INVALID naming the field. Fields of later versions are passed over. */
export function parseReplayRequest(payload: unknown): ReplayRequest {
  const parsed = schema.safeParse(payload)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw new MillraceError('MESSAGE_INVALID', `the replay request is not valid: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`)
}

/**
 * True for a request under the id of a replay that was begun before. Two commands that begin one at the same moment both find nothing,
 * and each plans a range of its own: the first on the log is the range of both. What calls a replay off is a request too, and counts.
 */
export function isBegunBefore(held: Command, next: Command): boolean {
  if (parseSubject(next.subject)?.kind !== 'replay' || next.kind !== 'request') return false
  const { cancelled } = (commandPayload(next) ?? {}) as { cancelled?: unknown }
  return cancelled !== true && (held.kind === 'request' || held.kind === 'close')
}

/** The part of a partition that a replay in place covers. */
export function rangeOf(request: ReplayRequest, partition: number): { readonly from: bigint; readonly until: bigint } | undefined {
  const range = request.ranges?.find((each) => each.partition === partition)
  return range === undefined ? undefined : { from: BigInt(range.from), until: BigInt(range.until) }
}

/** Whether a place lies in the range of a replay, in place or beside live work. */
export function isInRange(request: ReplayRequest, place: { readonly partition: number; readonly offset: bigint }): boolean {
  return isWithin(rangesOf(request), place)
}

/** A range of a request, or of a plan. */
export interface OffsetRange {
  readonly partition: number
  readonly from: bigint | string
  readonly until: bigint | string
}

export function isWithin(
  ranges: readonly OffsetRange[],
  { partition, offset }: { readonly partition: number; readonly offset: bigint | number },
): boolean {
  return ranges.some((range) => range.partition === partition && offset >= BigInt(range.from) && offset < BigInt(range.until))
}

/** Of all partitions, whether in place or beside live work. */
function rangesOf({ ranges, shadow }: ReplayRequest): readonly ReplayRange[] {
  return ranges ?? shadow?.ranges ?? []
}

/** What share of the offsets of a replay lies in a partition. Shape: 0 to 1; undefined where the replay is not of it. */
export function partitionShare(request: ReplayRequest, partition: number): number | undefined {
  const range = rangesOf(request).find((each) => each.partition === partition)
  return range === undefined ? undefined : offsetsOf(range) / Math.max(1, rangeOffsets(request))
}

function offsetsOf({ from, until }: ReplayRange): number {
  return Number(BigInt(until) - BigInt(from))
}

/** Offsets of all ranges. */
export function rangeOffsets(request: ReplayRequest): number {
  return rangesOf(request).reduce((sum, range) => sum + offsetsOf(range), 0)
}

/** True for two that ask for the same, at whatever time each was given. */
export function isSameFilter(one: ReplayFilter, other: ReplayFilter): boolean {
  const meant = ({ domain, crawlId, fetchedFrom, fetchedUntil, ago }: ReplayFilter) => [
    domain,
    crawlId,
    ago?.fetchedFrom === undefined ? ['at', fetchedFrom] : ['ago', ago.fetchedFrom],
    ago?.fetchedUntil === undefined ? ['at', fetchedUntil] : ['ago', ago.fetchedUntil],
  ]
  return JSON.stringify(meant(one)) === JSON.stringify(meant(other))
}

/** True where the page lies within the filter; `isOfDomain` knows which URLs a domain means. */
export function inFilter(
  page: Pick<Page, 'crawlId' | 'fetchedAt' | 'finalUrl'>,
  filter: ReplayFilter,
  isOfDomain: (url: string, domain: string) => boolean,
): boolean {
  if (filter.crawlId !== undefined && page.crawlId !== filter.crawlId) return false
  if (filter.fetchedFrom !== undefined && page.fetchedAt < filter.fetchedFrom) return false
  if (filter.fetchedUntil !== undefined && page.fetchedAt >= filter.fetchedUntil) return false
  return filter.domain === undefined || isOfDomain(page.finalUrl, filter.domain)
}
