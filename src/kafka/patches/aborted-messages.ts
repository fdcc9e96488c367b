import type { KafkajsModules } from './kafkajs-modules.ts'

/** A record as kafkajs decodes it; the part of it that the filter looks at. */
interface FetchedRecord {
  readonly offset: string
  readonly key: Buffer | null
  readonly isControlRecord: boolean
  readonly batchContext: { readonly producerId: string; readonly inTransaction: boolean }
}

interface AbortedTransaction {
  readonly producerId: string
  readonly firstOffset: string
}

interface FilterInput {
  readonly messages: readonly FetchedRecord[]
  readonly abortedTransactions?: readonly AbortedTransaction[] | null
}

/** Type of a control record, the second int16 of its key: 0 ends a transaction by abort. */
const ABORT_MARKER = 0

/**
 * Records of a fetch without those of aborted transactions; control records stay (the caller removes them).
 * The broker lists aborted transactions in the order of their end, so they are put into the order of their start here, and every
 * one that has started by a record's offset is opened before the record is judged. Stock kafkajs opens at most one per record in
 * the order given, and so delivers aborted records where transactions overlap; it also takes any data record with a key of four
 * zero bytes for a marker. Source: Kafka's consumer, `CompletedFetch.consumeAbortedTransactionsUpTo`.
 */
export function withoutAborted({ messages, abortedTransactions }: FilterInput): readonly FetchedRecord[] {
  if (!abortedTransactions || abortedTransactions.length === 0) return messages
  const byStart = abortedTransactions
    .map((transaction) => ({ producerId: transaction.producerId, firstOffset: BigInt(transaction.firstOffset) }))
    .sort((a, b) => (a.firstOffset < b.firstOffset ? -1 : a.firstOffset > b.firstOffset ? 1 : 0))
  const open = new Set<string>()
  let next = 0
  return messages.filter((message) => {
    const offset = BigInt(message.offset)
    for (let started = byStart[next]; started !== undefined && started.firstOffset <= offset; started = byStart[next]) {
      open.add(started.producerId)
      next += 1
    }
    const { producerId, inTransaction } = message.batchContext
    if (message.isControlRecord) {
      if (isAbortMarker(message.key)) open.delete(producerId)
      return true
    }
    return !(inTransaction && open.has(producerId))
  })
}

/** Of the key of a control record. Source: Kafka's `EndTransactionMarker`. */
export function isAbortMarker(key: Buffer | null): boolean {
  return key !== null && key.length >= 4 && key.readInt16BE(2) === ABORT_MARKER
}

/** Readers of committed data see no aborted record. */
export function patchAbortedMessages(modules: KafkajsModules): void {
  modules.replace('consumer/filterAbortedMessages.js', withoutAborted)
}
