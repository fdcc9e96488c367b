import { greatestOf, leastOf } from '../kernel/bigint.ts'
import { type Gone, NO_TOTALS, type OffsetMetadata } from './offset-metadata.ts'

/** What is done with the message at an offset, as the metadata of the partition says. */
export type ReplayStep =
  /** All extractors that match. */
  | { readonly kind: 'live' }
  /** The named extractor of this replay alone, on pages of its filter. */
  | { readonly kind: 'replay'; readonly replayId: string }
  /** The replayed range has ended: commit `resumeAt` and read on there. */
  | { readonly kind: 'jump'; readonly resumeAt: bigint }

/**
 * Decides by the offset alone. Shape: `next` is the offset of the message, or the position where there is none. A replay that is
 * done never rewinds again; its state is carried until the request is closed. In a turn of live work it is live.
 */
export function replayStep(metadata: OffsetMetadata, next: bigint): ReplayStep {
  const replay = metadata.replay
  if (replay?.phase !== 'replaying') return { kind: 'live' }
  return next < replay.until ? { kind: 'replay', replayId: replay.replayId } : { kind: 'jump', resumeAt: replay.resumeAt }
}

/**
 * The metadata after a jump away from `position`. Shape: of a replay that was called off, `until` is where it had come to: nothing behind
 * that is replayed any more.
 */
export function afterJump(metadata: OffsetMetadata, position: bigint): OffsetMetadata {
  const { replay } = metadata
  if (replay === undefined || replay.phase === 'done') return metadata
  const reached = replay.phase === 'live' ? replay.resumeAt : position
  return { ...metadata, replay: { ...replay, phase: 'done', until: leastOf(reached, replay.until) } }
}

/**
 * Offset and metadata where replay and live work take turns at `position`: each goes on where it stood. `low` is the first offset that
 * is still there.
 */
export function turned(
  metadata: OffsetMetadata,
  position: bigint,
  low: bigint,
): { readonly offset: bigint; readonly metadata: OffsetMetadata } {
  const { replay } = metadata
  if (replay === undefined || replay.phase === 'done') return { offset: position, metadata }
  const offset = greatestOf(replay.resumeAt, low)
  const phase = replay.phase === 'live' ? 'replaying' : 'live'
  const next: OffsetMetadata = { ...metadata, replay: { ...replay, phase, resumeAt: position } }
  return { offset, metadata: overtaken(next, replay.resumeAt, offset) }
}

/**
 * The metadata where reading goes on at `offset` instead of `start`, since retention has deleted what lay between: pages that nobody will
 * read are counted, those of a replay apart, or it would seem to be whole. `rangeUntil`: end of the range of a shadow.
 */
export function overtaken(metadata: OffsetMetadata, start: bigint, offset: bigint, rangeUntil?: bigint): OffsetMetadata {
  const { replay } = metadata
  if (rangeUntil !== undefined || replay?.phase !== 'replaying') {
    const gone = goneBetween(start, leastOf(offset, rangeUntil ?? offset), metadata.gone)
    return gone === undefined ? metadata : { ...metadata, gone }
  }
  const gone = goneBetween(start, leastOf(offset, replay.until), replay.gone)
  return gone === undefined ? metadata : { ...metadata, replay: { ...replay, gone } }
}

/** Shape: undefined where nothing is, and was not before. */
function goneBetween(from: bigint, until: bigint, before?: Gone): Gone | undefined {
  return until > from ? { pages: (before?.pages ?? 0) + Number(until - from), until } : before
}

/** Where live work of a partition stands, whose committed offset this is. */
export function livePosition(metadata: OffsetMetadata, committed: bigint): bigint {
  return metadata.replay?.phase === 'replaying' ? metadata.replay.resumeAt : committed
}

/** The part of a partition that an open request on `control` asks for. */
export interface ReplayOrder {
  readonly replayId: string
  readonly from: bigint
  /** First offset that is not replayed. */
  readonly until: bigint
}

/** What an owner does about `control` once the pages that it took are committed. */
export type Course =
  | { readonly kind: 'go-on' }
  | { readonly kind: 'rewind'; readonly order: ReplayOrder }
  /** The replay was called off: to where live work stands; undefined where that is at work. */
  | { readonly kind: 'jump'; readonly resumeAt: bigint | undefined }

/**
 * Decides by what the committed offset carries and what `control` holds. A partition that is done with a replay never rewinds for it
 * again, and one that replays ends that first.
 */
export function courseOf(metadata: OffsetMetadata, order: ReplayOrder | undefined, isEnded: (replayId: string) => boolean): Course {
  const replay = metadata.replay
  if (replay !== undefined && replay.phase !== 'done') {
    if (!isEnded(replay.replayId)) return { kind: 'go-on' }
    return { kind: 'jump', resumeAt: replay.phase === 'replaying' ? replay.resumeAt : undefined }
  }
  if (order === undefined || replay?.replayId === order.replayId) return { kind: 'go-on' }
  return { kind: 'rewind', order }
}

/**
 * Offset and metadata of a rewind from `position`, where live work stands; `low` is the first offset that is still there. Nothing that
 * live work has not read is replayed; where nothing is left to replay the partition is done at once.
 */
export function rewound(
  metadata: OffsetMetadata,
  order: ReplayOrder,
  position: bigint,
  low: bigint,
): { readonly offset: bigint; readonly metadata: OffsetMetadata } {
  const until = leastOf(order.until, position)
  const from = greatestOf(order.from, low)
  const isEmpty = from >= until
  const phase = isEmpty ? 'done' : 'replaying'
  const gone = goneBetween(order.from, leastOf(from, until))
  const state = { replayId: order.replayId, phase, until, resumeAt: position, totals: NO_TOTALS } as const
  const replay = gone === undefined ? state : { ...state, gone }
  return { offset: isEmpty ? position : from, metadata: { ...metadata, replay } }
}
