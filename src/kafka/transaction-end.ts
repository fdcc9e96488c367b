import type { MessagePlace } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ClusterSession } from './cluster-session.ts'
import { kafkajsFailure } from './failure.ts'
import { fetchLog } from './log-fetch.ts'
import { isAbortMarker } from './patches/aborted-messages.ts'

const LOOK_EVERY_MS = 100
/** Of one look: a marker seldom stands far behind the messages of its transaction. */
const LIMITS = { isolation: 'read_uncommitted', maxWaitMs: 0, maxBytes: 1_048_576, maxBytesPerPartition: 1_048_576 } as const

/** What became of the transaction that wrote a message. */
export interface TransactionEnd {
  /** False where it was aborted, or the message is not there; undefined where there is no marker. */
  readonly isCommitted: boolean | undefined
  /** Who wrote it; undefined where it is not there. */
  readonly producerId: string | undefined
}

/**
 * By its own marker behind the message, which is waited for until `deadlineMono`. Readers of committed messages may not have come so far:
 * another transaction that is open before it holds them up, and tells nothing of this one.
 */
export async function transactionEnd(
  session: ClusterSession,
  { topic, partition, offset }: MessagePlace,
  { clock, deadlineMono }: { readonly clock: Pick<Clock, 'mono' | 'sleep'>; readonly deadlineMono: number },
): Promise<TransactionEnd> {
  let position = offset
  let producerId: string | undefined
  for (;;) {
    const [fetched] = await session.run(`looking for the end of the transaction of ${topic}/${partition}@${offset}`, (cluster) =>
      fetchLog(cluster, [{ topic, partition, position }], LIMITS).catch((error: unknown) => {
        if (kafkajsFailure(error).type === 'OFFSET_OUT_OF_RANGE') return ['gone' as const]
        throw error
      }),
    )
    if (fetched === 'gone') return { isCommitted: false, producerId }
    const records = fetched?.records.filter((record) => BigInt(record.offset) >= position) ?? []
    const [first] = records
    if (producerId === undefined && first !== undefined) {
      if (BigInt(first.offset) !== offset || first.isControlRecord) return { isCommitted: false, producerId }
      producerId = first.batchContext.producerId
    }
    const marker = records.find((record) => record.isControlRecord && record.batchContext.producerId === producerId)
    if (marker !== undefined) return { isCommitted: !isAbortMarker(marker.key), producerId }
    if (clock.mono() >= deadlineMono) return { isCommitted: undefined, producerId }
    if (fetched === undefined || fetched.next >= fetched.end) await clock.sleep(LOOK_EVERY_MS)
    position = fetched?.next ?? position
  }
}
