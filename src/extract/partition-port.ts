import type { KafkaMessage, OutgoingMessage } from '../kafka/message.ts'
import type { LogBounds } from '../kafka/offsets.ts'
import type { PartitionTransactions } from '../kafka/transactional.ts'
import type { ExtractorTotals } from './offset-metadata.ts'
import type { ReplayOrder } from './replay-step.ts'

/** One page, worked: what is written for it and what it counts for. */
export interface ProcessedPage {
  readonly offset: bigint
  readonly messages: readonly OutgoingMessage[]
  readonly totals: ReadonlyMap<string, ExtractorTotals>
  /**
   * - page: for the partition's own totals
   * - replayed: for the replay, and not for those
   * - put-back-of-replay: for neither: a dead letter of a replay was put back, which those do not count either
   * - no-page: it was put back and counted before, or is no page of an extractor's: of the totals only what was written for it
   */
  readonly counts: 'page' | 'replayed' | 'put-back-of-replay' | 'no-page'
}

/** What one partition asks of the worker that owns it. */
export interface PartitionPort {
  readonly transactions: PartitionTransactions
  /** Resolves when everything that `control` held at this moment has been read. */
  readControl(): Promise<void>
  logBounds(): Promise<LogBounds>
  /** Reads on from this offset; what was handed over before is void. */
  readFrom(offset: bigint): void
  pause(): void
  resume(): void
  /** How many partitions of the worker have pages waiting. */
  waitingPartitions(): number
  /** Why the replay can not go on here; undefined: it can. */
  refuseReplay(replayId: string): string | undefined
  /** The replay was closed: its state is carried no further. */
  isReplayClosed(replayId: string): boolean
  /** It was called off. */
  isReplayCancelled(replayId: string): boolean
  /** What an open request asks of this partition. */
  replayOrder(): ReplayOrder | undefined
  /**
   * Pages per second that may be read here, by the replay in place that is named or else as the worker goes; undefined: as many as it can.
   */
  rate(replayId: string | undefined): number | undefined
  /** The partition has worked its part of a replay. */
  replayDone(replayId: string): void
  /**
   * Works one page; never rejects for what is in it. Shape: undefined where the signal came while the page still waited for the rate of its
   * replay; what has begun is worked to its end.
   */
  process(message: KafkaMessage, work: PageWork, giveBack: AbortSignal): Promise<ProcessedPage | undefined>
}

/** As what a page is worked. */
export interface PageWork {
  /** Only for the extractor that the replay names, on pages of its filter; undefined: live, or in the range of a shadow. */
  readonly replayId: string | undefined
  /**
   * Of its partition everything from here on was read by the same work, or will be: the group for itself, or the replay as far as its range
   * goes.
   */
  readonly readFrom: bigint
}

export interface PartitionLimits {
  /** Pages per transaction. */
  readonly maxPages: number
  /**
   * Bytes of messages per transaction; the page that passes it is the last one. One that is sent for longer than its timeout is fenced, and
   * would be so again.
   */
  readonly maxTransactionBytes: number
  /** How long pages without output wait for their commit. */
  readonly maxGatherMs: number
  /** How long records wait for the pages behind them, while there are any: a transaction costs as much as a good many records. */
  readonly maxBusyGatherMs: number
  /** Pages in work at the same time. */
  readonly pagesAhead: number
  /** Bytes and pages that wait in all partitions of a worker together before reading pauses; each has an equal share. */
  readonly maxWaitingBytes: number
  readonly maxWaitingPages: number
  /** How long a replay in place works before live pages that came meanwhile have their turn. */
  readonly replayTurnMs: number
  /** Longest turn of live pages, where they come as fast as they are worked: the replay has the rest of the time. */
  readonly liveTurnMs: number
}

/** Of what waits, of one partition or of a worker. */
export interface WaitingLimits {
  readonly maxWaitingBytes: number
  readonly maxWaitingPages: number
}

export const DEFAULT_LIMITS: PartitionLimits = {
  maxPages: 64,
  maxTransactionBytes: 16 * 1024 * 1024,
  maxGatherMs: 500,
  maxBusyGatherMs: 2_500,
  pagesAhead: 4,
  maxWaitingBytes: 16 * 1024 * 1024,
  maxWaitingPages: 1_024,
  replayTurnMs: 3_000,
  liveTurnMs: 27_000,
}

/**
 * What extraction processes work in some seconds, for so many of them: a partition that was paused is read again within a quarter of a
 * second.
 */
export function waitingLimits(threads: number): WaitingLimits {
  const { maxWaitingBytes, maxWaitingPages } = DEFAULT_LIMITS
  return { maxWaitingBytes: maxWaitingBytes * threads, maxWaitingPages: maxWaitingPages * threads }
}

/** Of what may wait in the worker, by how many partitions it is shared: one that is left alone may use all of it. */
export function shareOf({ maxWaitingBytes, maxWaitingPages }: WaitingLimits, partitions: number): WaitingLimits {
  const among = Math.max(1, partitions)
  return { maxWaitingBytes: maxWaitingBytes / among, maxWaitingPages: maxWaitingPages / among }
}
