import { type PartitionId, partitionId, type TopicPartition } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Cluster, ClusterBroker } from './cluster.ts'
import { byTopic, type ClusterSession } from './cluster-session.ts'
import { type CommittedOffset, committedAt, fetchCommitted } from './committed-offsets.ts'
import { kafkajsModules } from './patches/kafkajs-modules.ts'
import { WireReader } from './wire-reader.ts'

/** Requests of kafkajs's broker below its typed ones. */
interface RawBroker extends ClusterBroker {
  readonly versions: Readonly<Record<number, { readonly minVersion: number; readonly maxVersion: number } | undefined>>
  readonly connectionPool: { send(request: object): Promise<unknown> }
}

const OFFSET_FETCH = 9
/** The first that knows `require_stable` (KIP-447, Apache Kafka 2.5); kafkajs ends at 4. */
const VERSION = 7
/** UNSTABLE_OFFSET_COMMIT. */
const UNSTABLE = 88

/** Between two looks at offsets that a transaction is about to change. */
const LOOK_AGAIN_MS = 50

export interface StableOffsets {
  /** One entry per partition asked for. */
  readonly committed: Map<PartitionId, CommittedOffset>
  /** Those whose transaction had not ended in time: what was committed before it is told. */
  readonly unstable: readonly TopicPartition[]
}

/**
 * What a group has committed, once the transactions that hold newer offsets have ended: a client hears of the end of its transaction before
 * the group's offsets show it. `limitMs`: nobody is kept waiting for longer.
 * Errors: what the session throws; KAFKA_REQUEST_FAILED where a partition was left out.
 */
export async function readStableOffsets(
  session: ClusterSession,
  asked: { readonly groupId: string; readonly partitions: readonly TopicPartition[] },
  { clock, limitMs, what }: { readonly clock: Pick<Clock, 'mono' | 'sleep'>; readonly limitMs: number; readonly what: string },
): Promise<StableOffsets> {
  const { groupId } = asked
  let { partitions } = asked
  const deadline = clock.mono() + limitMs
  const committed = new Map<PartitionId, CommittedOffset>()
  const look = async (read: typeof fetchStableOffsets): Promise<void> => {
    const pending: TopicPartition[] = []
    const found = await session.run(what, (cluster) => read(cluster, groupId, partitions))
    for (const at of partitions) {
      const offset = found.get(partitionId(at.topic, at.partition))
      if (offset === undefined || offset === 'unstable') pending.push(at)
      else committed.set(partitionId(at.topic, at.partition), offset)
    }
    partitions = pending
  }
  await look(fetchStableOffsets)
  while (partitions.length > 0 && clock.mono() < deadline) {
    await clock.sleep(LOOK_AGAIN_MS)
    await look(fetchStableOffsets)
  }
  const unstable = partitions
  if (unstable.length > 0) await look(fetchCommitted)
  return { committed, unstable }
}

/**
 * What a group has committed for some partitions, and nothing that is about to change: `unstable` while a transaction holds a newer offset,
 * or the coordinator has not got to its end after a start. Without this an offset may be read whose successor is committed already.
 * A broker that does not know the question is asked without it. Errors: what kafkajs throws; KAFKA_REQUEST_FAILED where a partition was
 * left out.
 */
export async function fetchStableOffsets(
  cluster: Cluster,
  groupId: string,
  partitions: readonly TopicPartition[],
): Promise<Map<PartitionId, CommittedOffset | 'unstable'>> {
  if (partitions.length === 0) return new Map()
  const broker = (await cluster.findGroupCoordinator({ groupId })) as RawBroker
  if (!broker.isConnected()) await broker.connect()
  if ((broker.versions[OFFSET_FETCH]?.maxVersion ?? 0) < VERSION) return fetchCommitted(cluster, groupId, partitions)
  const { Encoder } = modules()
  const request = {
    apiKey: OFFSET_FETCH,
    apiVersion: VERSION,
    apiName: 'OffsetFetch',
    encode: async () => new Encoder().writeBuffer(requestBytes(groupId, partitions)),
  }
  const response = { decode: async (raw: Buffer) => ({ raw }), parse: async ({ raw }: { raw: Buffer }) => raw }
  const found = committedIn((await broker.connectionPool.send({ request, response })) as Buffer)
  for (const at of partitions) committedAt(found, at)
  return found
}

function modules(): {
  readonly Encoder: new () => { writeBuffer(bytes: Buffer): unknown }
  readonly createErrorFromCode: (code: number) => unknown
} {
  const Encoder = kafkajsModules().load('protocol/encoder.js') as new () => { writeBuffer(bytes: Buffer): unknown }
  const { createErrorFromCode } = kafkajsModules().load('protocol/error.js') as { createErrorFromCode(code: number): unknown }
  return { Encoder, createErrorFromCode }
}

/** No tagged fields. */
const NO_TAGS = Buffer.from([0])
const REQUIRE_STABLE = Buffer.from([1])

/** Shape: the end of header version 2, then the body. Source: Kafka protocol, OffsetFetch request version 7. */
function requestBytes(groupId: string, partitions: readonly TopicPartition[]): Buffer {
  const topics = byTopic(partitions, ({ partition }) => partition).map(({ topic, partitions: numbers }) => {
    const indexes = Buffer.alloc(4 * numbers.length)
    numbers.forEach((partition, place) => void indexes.writeInt32BE(partition, 4 * place))
    return Buffer.concat([compactText(topic), compactLength(numbers.length), indexes, NO_TAGS])
  })
  return Buffer.concat([NO_TAGS, compactText(groupId), compactLength(topics.length), ...topics, REQUIRE_STABLE, NO_TAGS])
}

function compactText(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([compactLength(bytes.length), bytes])
}

/** Unsigned varint of the length and one. */
function compactLength(length: number): Buffer {
  const bytes: number[] = []
  let rest = length + 1
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return Buffer.from([...bytes, rest])
}

/**
 * Source: Kafka protocol, OffsetFetch response version 7, behind the correlation id. Where the coordinator can tell nothing of the group
 * (it is another one by now, it still loads, access is denied), the answer holds the reason and no topic.
 */
function committedIn(answer: Buffer): Map<PartitionId, CommittedOffset | 'unstable'> {
  const reader = new WireReader(answer)
  reader.tags()
  // The time that the broker throttled.
  reader.skip(4)
  const found = new Map<PartitionId, CommittedOffset | 'unstable'>()
  const codes = new Set<number>()
  for (let topics = reader.compactLength(); topics > 0; topics -= 1) {
    const topic = reader.compactText() ?? ''
    for (let partitions = reader.compactLength(); partitions > 0; partitions -= 1) {
      const partition = reader.int32()
      const offset = reader.int64()
      // Leader epoch.
      reader.skip(4)
      const metadata = reader.compactText() ?? ''
      const code = reader.int16()
      reader.tags()
      if (code !== UNSTABLE) codes.add(code)
      const committed = offset < 0n ? { offset: undefined, metadata: '' } : { offset, metadata }
      found.set(partitionId(topic, partition), code === UNSTABLE ? 'unstable' : committed)
    }
    reader.tags()
  }
  for (const code of [reader.int16(), ...codes]) if (code !== 0) throw modules().createErrorFromCode(code)
  return found
}
