import type { OffsetMetadata } from './offset-metadata.ts'

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
 * done never rewinds again; its state is carried until the request is closed.
 */
export function replayStep(metadata: OffsetMetadata, next: bigint): ReplayStep {
  const replay = metadata.replay
  if (replay === undefined || replay.phase === 'done') return { kind: 'live' }
  return next < replay.until ? { kind: 'replay', replayId: replay.replayId } : { kind: 'jump', resumeAt: replay.resumeAt }
}

/** The metadata after a jump. */
export function afterJump(metadata: OffsetMetadata): OffsetMetadata {
  return metadata.replay === undefined ? metadata : { ...metadata, replay: { ...metadata.replay, phase: 'done' } }
}
