import type { MessagePlace } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ClusterSession } from './cluster-session.ts'
import { kafkajsFailure } from './failure.ts'
import { fetchLog } from './log-fetch.ts'
import { isAbortMarker } from './patches/aborted-messages.ts'

const LOOK_EVERY_MS = 100
/** Of one look: a marker seldom stands far behind the messages of its transaction. */
const LIMITS = { isolation: 'read_uncommitted', maxWaitMs: 0, maxBytes: 1_048_576, maxBytesPerPartition: 1_048_576 } as const

/**
 * Whether the transaction that wrote a message has been committed, by its own marker behind the message. Readers of committed messages may
 * not have come so far: another transaction that is open before it holds them up, and tells nothing of this one. Shape: false where it was
 * aborted, or the message is not there; undefined where there is no marker by `deadlineMono`.
 */
export async function isCommitted(
  session: ClusterSession,
  { topic, partition, offset }: MessagePlace,
  { clock, deadlineMono }: { readonly clock: Pick<Clock, 'mono' | 'sleep'>; readonly deadlineMono: number },
): Promise<boolean | undefined> {
  let position = offset
  let producerId: string | undefined
  for (;;) {
    const [fetched] = await session.run(`looking for the end of the transaction of ${topic}/${partition}@${offset}`, (cluster) =>
      fetchLog(cluster, [{ topic, partition, position }], LIMITS).catch((error: unknown) => {
        if (kafkajsFailure(error).type === 'OFFSET_OUT_OF_RANGE') return ['gone' as const]
        throw error
      }),
    )
    if (fetched === 'gone') return false
    const records = fetched?.records.filter((record) => BigInt(record.offset) >= position) ?? []
    const [first] = records
    if (producerId === undefined && first !== undefined) {
      if (BigInt(first.offset) !== offset || first.isControlRecord) return false
      producerId = first.batchContext.producerId
    }
    const marker = records.find((record) => record.isControlRecord && record.batchContext.producerId === producerId)
    if (marker !== undefined) return !isAbortMarker(marker.key)
    if (clock.mono() >= deadlineMono) return undefined
    if (fetched === undefined || fetched.next >= fetched.end) await clock.sleep(LOOK_EVERY_MS)
    position = fetched?.next ?? position
  }
}
