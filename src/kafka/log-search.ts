import { leastOf } from '../kernel/bigint.ts'
import type { MessagePlace, TopicPartition } from '../kernel/brand.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { Cluster, ClusterBroker } from './cluster.ts'
import { byLeader, type ClusterSession } from './cluster-session.ts'
import type { KafkaMessage } from './message.ts'
import { EARLIEST, listOffsets, offsetAt } from './offsets.ts'
import { kafkajsModules } from './patches/kafkajs-modules.ts'
import { loadKafkajs } from './patches/load-kafkajs.ts'
import { type RawBatch, type RawRecord, rawBatches, recordsWith } from './record-batches.ts'
import { WireReader } from './wire-reader.ts'

export interface LogSearch extends TopicPartition {
  readonly from: bigint
  /** First offset that is not looked at. */
  readonly until: bigint
  /** What the bytes of a message must hold one of: its value, its key or its headers. */
  readonly texts: readonly Buffer[]
  readonly signal?: AbortSignal | undefined
}

export interface LogPiece {
  /** In the order of the log; of transactions that were aborted none. */
  readonly messages: readonly KafkaMessage[]
  /** Everything before this was looked at. */
  readonly searchedTo: bigint
  /** Bytes of the log, as they lie there. */
  readonly bytes: number
}

/** Requests of kafkajs's broker below its typed ones. */
interface RawBroker extends ClusterBroker {
  readonly lookupRequest: (apiKey: number, definitions: unknown) => (options: object) => RawRequest
  readonly connectionPool: { send(request: object): Promise<unknown> }
}

interface RawRequest {
  readonly request: { readonly apiVersion: number }
  readonly response: object
}

const FETCH = 1
const READ_COMMITTED = 1
const FETCH_BYTES = 4_194_304
const OFFSET_OUT_OF_RANGE = 1

/**
 * The messages of one partition in whose bytes one of the texts lies, piece by piece: of what is found no more is held than of the log at
 * once, though a packed batch may be a hundredth of its messages. Reads the answers of the broker as bytes and looks into those batches
 * alone in which a text is, so a million small messages take about a second, where decoding them takes ten.
 * Shape: whoever stops goes on from `searchedTo` of the last piece; no piece where nothing is there, whatever the end of the log says.
 * Errors: KAFKA_UNREACHABLE, KAFKA_TOPIC_MISSING, KAFKA_REQUEST_FAILED, ABORTED.
 */
export async function* searchPieces(session: ClusterSession, search: LogSearch): AsyncGenerator<LogPiece> {
  const { until, signal } = search
  const aborted = new AbortedTransactions()
  // Once: what it looks at to be sure of the patches costs as much as a small batch.
  const codecs = loadKafkajs().CompressionCodecs as Codecs
  const piece = new GatheredPiece(search)
  let next = search.from < until ? readPart(session, search, search.from) : undefined
  while (next !== undefined) {
    const part = await next
    if (part === undefined) break
    // The broker reads on while we look.
    next = part.nextOffset < until ? readPart(session, search, part.nextOffset) : undefined
    next?.catch(() => undefined)
    aborted.learn(part.aborted)
    for (const batch of part.batches) {
      // Markers too: they end what was aborted.
      const records = aborted.covers(batch) ? [] : recordsWith(batch, await unpack(codecs, batch), search.texts)
      piece.add(batch, records, part.from)
      if (!piece.isFull) continue
      yield piece.take()
      signal?.throwIfAborted()
    }
  }
  if (!piece.isEmpty) yield piece.take()
}

/** Of the log at once, and of what is found. */
const PIECE_BYTES = 8_388_608
/** What Node.js takes for a message, and for each of its buffers, beside their bytes. */
const MESSAGE_OVERHEAD_BYTES = 256
const BUFFER_OVERHEAD_BYTES = 128

class GatheredPiece {
  readonly #search: LogSearch
  #messages: KafkaMessage[] = []
  #searchedTo: bigint
  #bytes = 0
  #heldBytes = 0

  constructor(search: LogSearch) {
    this.#search = search
    this.#searchedTo = search.from
  }

  get isFull(): boolean {
    return this.#bytes >= PIECE_BYTES || this.#heldBytes >= PIECE_BYTES
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  /** @param from - what lies before it in the batch is not looked at */
  add(batch: RawBatch, records: readonly RawRecord[], from: bigint): void {
    const { topic, partition, until } = this.#search
    this.#bytes += batch.bytes.length
    this.#searchedTo = leastOf(batch.nextOffset, until)
    for (const record of records) {
      if (record.offset < from || record.offset >= until) continue
      this.#messages.push({ topic, partition, ...record })
      this.#heldBytes += heldBytes(record)
    }
  }

  take(): LogPiece {
    const piece = { messages: this.#messages, searchedTo: this.#searchedTo, bytes: this.#bytes }
    this.#messages = []
    this.#bytes = 0
    this.#heldBytes = 0
    return piece
  }
}

function heldBytes({ key, value, headers }: RawRecord): number {
  let bytes = MESSAGE_OVERHEAD_BYTES
  for (const buffer of [key, value, ...Object.values(headers)]) bytes += BUFFER_OVERHEAD_BYTES + (buffer?.length ?? 0)
  return bytes
}

/** At least one batch, from the offset that was asked for on, or from the first one that retention has left. */
interface ReadPart {
  readonly from: bigint
  readonly nextOffset: bigint
  readonly batches: readonly RawBatch[]
  readonly aborted: readonly Aborted[]
  readonly bytes: number
}

/** Answers without anything in a row, where something is there. A broker that throttles gives them, and holds the next answer back. */
const MOST_EMPTY = 20

/**
 * What lies at an offset. Shape: undefined where the log can be read no further: at its end, or before a transaction that is open.
 * Errors: KAFKA_REQUEST_FAILED where the broker does not give what it has.
 */
async function readPart(
  session: ClusterSession,
  { topic, partition, until, signal }: LogSearch,
  offset: bigint,
): Promise<ReadPart | undefined> {
  const run = <T>(call: (cluster: Cluster) => Promise<T>): Promise<T> => session.run(`searching ${topic}/${partition}`, call, { signal })
  let from = offset
  for (let empty = 0; empty < MOST_EMPTY; ) {
    const answer = await run((cluster) => fetchSet(cluster, { topic, partition, offset: from }))
    if (answer.kind === 'out-of-range') {
      // Retention went on since the search began. Where it did not, this is behind the end.
      const at = { topic, partition }
      const low = await run(async (cluster) => offsetAt(await listOffsets(cluster, [at], EARLIEST, 'read_uncommitted'), at))
      if (low <= from || low >= until) return undefined
      from = low
      continue
    }
    if (answer.kind === 'records') {
      const batches = rawBatches(answer.records)
      const last = batches.at(-1)
      if (last !== undefined) return { from, nextOffset: last.nextOffset, batches, aborted: answer.aborted, bytes: answer.records.length }
      if (from >= answer.stableEnd) return undefined
    }
    signal?.throwIfAborted()
    empty += 1
  }
  const text = `searching ${topic}/${partition}: the broker gives nothing from offset ${from} on, though the log goes on; asked ${MOST_EMPTY} times`
  throw new MillraceError('KAFKA_REQUEST_FAILED', text, { context: { topic, partition } })
}

type FetchedSet =
  /** `stableEnd`: how far can be read now. */
  | { readonly kind: 'records'; readonly records: Buffer; readonly aborted: readonly Aborted[]; readonly stableEnd: bigint }
  /** There is no such offset: it is there no more, or not yet. */
  | { readonly kind: 'out-of-range' }
  /** The broker throttles: it answers without the topic, and without an error. */
  | { readonly kind: 'nothing' }

interface Aborted {
  readonly producerId: string
  readonly firstOffset: bigint
}

async function fetchSet(cluster: Cluster, at: MessagePlace): Promise<FetchedSet> {
  const { topic, partition, offset } = at
  const [leader] = await byLeader(cluster, [at])
  const broker = leader?.broker as RawBroker
  if (!broker.isConnected()) await broker.connect()
  const definitions = (kafkajsModules().load('protocol/requests/index.js') as { requests: { Fetch: unknown } }).requests.Fetch
  const { request } = broker.lookupRequest(
    FETCH,
    definitions,
  )({
    replicaId: -1,
    isolationLevel: READ_COMMITTED,
    maxWaitTime: 100,
    minBytes: 1,
    maxBytes: FETCH_BYTES,
    topics: [{ topic, partitions: [{ partition, fetchOffset: String(offset), maxBytes: FETCH_BYTES }] }],
  })
  const response = { decode: async (raw: Buffer) => ({ raw }), parse: async ({ raw }: { raw: Buffer }) => raw }
  const answer = (await broker.connectionPool.send({ request, response })) as Buffer
  return readAnswer(answer, request.apiVersion)
}

/** Source: Kafka protocol, Fetch response versions 4 to 11, of one partition. */
function readAnswer(answer: Buffer, version: number): FetchedSet {
  if (version < 4) throw new MillraceError('KAFKA_REQUEST_FAILED', `the broker speaks version ${version} of Fetch; expected 4 or later`)
  const reader = new WireReader(answer)
  reader.skip(4)
  if (version >= 7) {
    refuse(reader.int16())
    reader.skip(4)
  }
  if (reader.int32() === 0) return { kind: 'nothing' }
  reader.skip(reader.int16())
  if (reader.int32() === 0) return { kind: 'nothing' }
  reader.skip(4)
  const code = reader.int16()
  if (code === OFFSET_OUT_OF_RANGE) return { kind: 'out-of-range' }
  refuse(code)
  // The high watermark.
  reader.skip(8)
  const stableEnd = reader.int64()
  // The first offset of the log.
  if (version >= 5) reader.skip(8)
  const aborted: Aborted[] = []
  for (let left = reader.int32(); left > 0; left -= 1) aborted.push({ producerId: reader.int64().toString(), firstOffset: reader.int64() })
  if (version >= 11) reader.skip(4)
  return { kind: 'records', records: reader.bytes(reader.int32()), aborted, stableEnd }
}

/** Throws what kafkajs makes of the code, so that the session knows what is worth another try. */
function refuse(code: number): void {
  if (code === 0) return
  const { createErrorFromCode } = kafkajsModules().load('protocol/error.js') as { createErrorFromCode(code: number): unknown }
  throw createErrorFromCode(code)
}

type Codecs = Readonly<Record<number, (() => { decompress(bytes: Buffer): Promise<Buffer> }) | undefined>>

/** What can't be unpacked holds nothing that could be found; whoever reads it for its messages says so. */
async function unpack(codecs: Codecs, { compression, records }: RawBatch): Promise<Buffer> {
  const codec = codecs[compression]
  if (codec === undefined) return records
  const { decompress } = codec()
  return decompress(records).catch(() => Buffer.alloc(0))
}

/** Which batches belong to transactions that were aborted: from the first offset of one to the marker that ends it. */
class AbortedTransactions {
  #known: Aborted[] = []
  readonly #open = new Set<string>()

  learn(aborted: readonly Aborted[]): void {
    for (const entry of aborted)
      if (!this.#known.some(({ producerId, firstOffset }) => producerId === entry.producerId && firstOffset === entry.firstOffset))
        this.#known.push(entry)
  }

  covers(batch: RawBatch): boolean {
    this.#known = this.#known.filter(({ producerId, firstOffset }) => {
      if (firstOffset >= batch.nextOffset) return true
      this.#open.add(producerId)
      return false
    })
    if (batch.isControl) {
      this.#open.delete(batch.producerId)
      return true
    }
    return batch.inTransaction && this.#open.has(batch.producerId)
  }
}
