import { type PartitionId, partitionId, type TopicPartition } from '../kernel/brand.ts'
import type { Cluster, ClusterBroker } from './cluster.ts'
import { committedAt, fetchCommitted } from './group-admin.ts'
import { kafkajsModules } from './patches/kafkajs-modules.ts'
import type { CommittedOffset } from './transactional.ts'
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

/**
 * What a group has committed for one partition, and nothing that is about to change: `unstable` while a transaction holds a newer offset,
 * or the coordinator has not got to its end after a start. Without this an offset may be read whose successor is committed already.
 * A broker that does not know the question is asked without it. Errors: what kafkajs throws; KAFKA_REQUEST_FAILED where the partition was
 * left out.
 */
export async function fetchStableOffset(cluster: Cluster, groupId: string, at: TopicPartition): Promise<CommittedOffset | 'unstable'> {
  const broker = (await cluster.findGroupCoordinator({ groupId })) as RawBroker
  if (!broker.isConnected()) await broker.connect()
  if ((broker.versions[OFFSET_FETCH]?.maxVersion ?? 0) < VERSION) return committedAt(await fetchCommitted(cluster, groupId, [at]), at)
  const { Encoder } = modules()
  const request = {
    apiKey: OFFSET_FETCH,
    apiVersion: VERSION,
    apiName: 'OffsetFetch',
    encode: async () => new Encoder().writeBuffer(requestBytes(groupId, at)),
  }
  const response = { decode: async (raw: Buffer) => ({ raw }), parse: async ({ raw }: { raw: Buffer }) => raw }
  return committedIn((await broker.connectionPool.send({ request, response })) as Buffer, at)
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
function requestBytes(groupId: string, { topic, partition }: TopicPartition): Buffer {
  const index = Buffer.alloc(4)
  index.writeInt32BE(partition)
  const one = compactLength(1)
  return Buffer.concat([NO_TAGS, compactText(groupId), one, compactText(topic), one, index, NO_TAGS, REQUIRE_STABLE, NO_TAGS])
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
function committedIn(answer: Buffer, at: TopicPartition): CommittedOffset | 'unstable' {
  const reader = new WireReader(answer)
  reader.tags()
  // The time that the broker throttled.
  reader.skip(4)
  const found = new Map<PartitionId, CommittedOffset>()
  const codes: number[] = []
  for (let topics = reader.compactLength(); topics > 0; topics -= 1) {
    const topic = reader.compactText() ?? ''
    for (let partitions = reader.compactLength(); partitions > 0; partitions -= 1) {
      const partition = reader.int32()
      const offset = reader.int64()
      // Leader epoch.
      reader.skip(4)
      const metadata = reader.compactText() ?? ''
      codes.push(reader.int16())
      reader.tags()
      found.set(partitionId(topic, partition), offset < 0n ? { offset: undefined, metadata: '' } : { offset, metadata })
    }
    reader.tags()
  }
  codes.unshift(reader.int16())
  if (codes.includes(UNSTABLE)) return 'unstable'
  for (const code of codes) if (code !== 0) throw modules().createErrorFromCode(code)
  return committedAt(found, at)
}
