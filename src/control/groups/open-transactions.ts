import { nextToRead, type PartitionLag } from '../../kafka/admin.ts'
import { readOne } from '../../kafka/log-reader.ts'
import type { MessagePlace } from '../../kernel/brand.ts'
import type { Runtime } from '../runtime/runtime.ts'

/** A transaction that nobody has ended: readers of committed messages stand before it. */
export interface OpenTransaction extends MessagePlace {
  /** Of its first message, as the offset; undefined where it can't be seen. */
  readonly ageMs: number | undefined
}

type Logs = Pick<Runtime, 'admin' | 'clock'>

/** A producer that writes transactions has one open most of the time. */
const OLD_MS = 5_000

/** The first one of each partition that has one for a while; of an offline one nobody knows. */
export async function openTransactions({ admin, clock }: Logs, topic: string): Promise<OpenTransaction[]> {
  const stable = await admin.endOffsets(topic, 'read_committed', 'led')
  const ends = await admin.endOffsets(topic, 'read_uncommitted', 'led')
  const open = [...stable].filter(([partition, offset]) => offset < (ends.get(partition) ?? 0n))
  const found = await Promise.all(
    open.map(async ([partition, offset]): Promise<OpenTransaction> => {
      const message = await readOne(admin.session, { topic, partition }, offset, 'read_uncommitted')
      return { topic, partition, offset, ageMs: message === undefined ? undefined : Math.max(0, clock.now() - message.timestamp) }
    }),
  )
  return found.filter(({ ageMs }) => ageMs === undefined || ageMs >= OLD_MS)
}

/** Those before which a group stands, with nothing left to read but what lies behind them. Where nothing waits nothing is asked. */
export async function holdingUp(logs: Logs, lags: readonly PartitionLag[]): Promise<OpenTransaction[]> {
  const behind = lags.filter(({ lag }) => lag > 0n)
  const open = await Promise.all([...new Set(behind.map(({ topic }) => topic))].map((topic) => openTransactions(logs, topic)))
  return open.flat().filter(({ topic, partition, offset }) => {
    const lag = behind.find((each) => each.topic === topic && each.partition === partition)
    return lag !== undefined && nextToRead(lag) >= offset
  })
}

/** In few words. Pure. */
export function openTransactionPlace({ topic, partition, offset }: OpenTransaction): string {
  return `${topic}/${partition} from offset ${offset} on`
}

/** Where, since when, and how one that hangs is ended. Pure. */
export function openTransactionText(open: OpenTransaction): string {
  const { topic, partition, offset, ageMs } = open
  const since = ageMs === undefined ? '' : ` for ${Math.round(ageMs / 1000)} s`
  const abort = `kafka-transactions.sh --bootstrap-server BROKER abort --topic ${topic} --partition ${partition} --start-offset ${offset}`
  return `a transaction is open in ${openTransactionPlace(open)}${since}, and nobody reads further until it ends; \`${abort}\` ends one that hangs`
}
