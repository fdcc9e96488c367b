import { describe, expect, it } from 'vitest'
import type { Cluster } from '../../../src/kafka/cluster.ts'
import type { ClusterSession } from '../../../src/kafka/cluster-session.ts'
import type { CommittedOffset } from '../../../src/kafka/committed-offsets.ts'
import { fetchStableOffsets, readStableOffsets } from '../../../src/kafka/stable-offsets.ts'
import { partitionId, type TopicPartition } from '../../../src/kernel/brand.ts'

const AT = { topic: 'html', partition: 3 }
const ID = partitionId(AT.topic, AT.partition)

interface Answered {
  readonly offset: number
  readonly metadata: string | null
  readonly code?: number
}

const int = (bytes: 2 | 4, value: number): Buffer => {
  const buffer = Buffer.alloc(bytes)
  buffer.writeIntBE(value, 0, bytes)
  return buffer
}

function length(count: number): Buffer {
  const bytes: number[] = []
  let rest = count + 1
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return Buffer.from([...bytes, rest])
}

const text = (value: string | null): Buffer =>
  value === null ? Buffer.from([0]) : Buffer.concat([length(Buffer.byteLength(value)), Buffer.from(value)])

/** An answer of OffsetFetch version 7 behind its correlation id, as Apache Kafka writes it; `tagged`: with a field that nobody knows. */
function answer(groupCode: number, found?: Answered, tagged = false): Buffer {
  const tags = tagged ? Buffer.from([1, 9, 2, 0, 0]) : Buffer.from([0])
  const topics: Buffer[] = []
  if (found !== undefined) {
    const offset = Buffer.alloc(8)
    offset.writeBigInt64BE(BigInt(found.offset))
    const partition = [int(4, AT.partition), offset, int(4, -1), text(found.metadata), int(2, found.code ?? 0), tags]
    topics.push(text(AT.topic), length(1), ...partition, tags)
  }
  return Buffer.concat([tags, int(4, 0), length(found === undefined ? 0 : 1), ...topics, int(2, groupCode), tags])
}

async function told(bytes: Buffer): Promise<CommittedOffset | 'unstable' | undefined> {
  return (
    await fetchStableOffsets(
      clusterThat(() => bytes),
      'g',
      [AT],
    )
  ).get(ID)
}

/** A cluster whose coordinator answers every OffsetFetch so. */
function clusterThat(answers: () => Buffer): Cluster {
  interface Asked {
    readonly response: { decode(raw: Buffer): Promise<{ raw: Buffer }>; parse(decoded: { raw: Buffer }): Promise<Buffer> }
  }
  const send = async ({ response }: Asked): Promise<Buffer> => response.parse(await response.decode(answers()))
  const broker = { isConnected: () => true, versions: { 9: { minVersion: 1, maxVersion: 9 } }, connectionPool: { send } }
  const offsetFetch = async () => ({
    responses: [{ topic: AT.topic, partitions: [{ partition: AT.partition, offset: '5', metadata: 'old' }] }],
  })
  return { findGroupCoordinator: async () => ({ ...broker, offsetFetch }) } as unknown as Cluster
}

describe('the stable offset of a partition', () => {
  it('comes with its metadata, however long, and past fields that are not known', async () => {
    const metadata = 'é'.repeat(20_000)
    expect(await told(answer(0, { offset: 7, metadata }, true))).toEqual({ offset: 7n, metadata })
    expect(await told(answer(0, { offset: 7, metadata: null }))).toEqual({ offset: 7n, metadata: '' })
    expect(await told(answer(0, { offset: -1, metadata: '' }))).toEqual({ offset: undefined, metadata: '' })
  })

  it('is not told while it is about to change', async () => {
    expect(await told(answer(0, { offset: -1, metadata: '', code: 88 }))).toBe('unstable')
  })

  it('is refused by name where the answer holds nothing but why: another coordinator, one that loads, no access', async () => {
    await expect(told(answer(16))).rejects.toMatchObject({ type: 'NOT_COORDINATOR_FOR_GROUP' })
    await expect(told(answer(14))).rejects.toMatchObject({ type: 'GROUP_LOAD_IN_PROGRESS' })
    await expect(told(answer(30))).rejects.toMatchObject({ type: 'GROUP_AUTHORIZATION_FAILED' })
  })

  it('is an error where the broker leaves the partition out, and not none', async () => {
    await expect(told(answer(0))).rejects.toMatchObject({ code: 'KAFKA_REQUEST_FAILED' })
  })
})

/** Shape: what is read where the offset is about to change for the first looks, whether it counts as unstable, and after how many ms. */
async function readAfter(
  unstableLooks: number,
): Promise<{ found: CommittedOffset | undefined; unstable: readonly TopicPartition[]; ms: number }> {
  let [looks, ms] = [0, 0]
  const pending = answer(0, { offset: -1, metadata: '', code: 88 })
  const ended = answer(0, { offset: 6, metadata: 'new' })
  const cluster = clusterThat(() => {
    looks += 1
    return looks <= unstableLooks ? pending : ended
  })
  const session = { run: (_what: string, ask: (with_: Cluster) => unknown) => ask(cluster) } as unknown as ClusterSession
  const clock = {
    mono: () => ms,
    sleep: async (forMs: number) => {
      ms += forMs
    },
  }
  const asked = { groupId: 'g', partitions: [AT] }
  const { committed, unstable } = await readStableOffsets(session, asked, { clock, limitMs: 1_000, what: 'reading' })
  return { found: committed.get(ID), unstable, ms }
}

describe('offsets that a transaction is about to change', () => {
  it('are those after its end, which is told before they can be read', async () => {
    expect(await readAfter(0)).toEqual({ found: { offset: 6n, metadata: 'new' }, unstable: [], ms: 0 })
    expect(await readAfter(3)).toEqual({ found: { offset: 6n, metadata: 'new' }, unstable: [], ms: 150 })
  })

  it('are those before it where it hangs, and that is said', async () => {
    expect(await readAfter(1_000)).toEqual({ found: { offset: 5n, metadata: 'old' }, unstable: [AT], ms: 1_000 })
  })
})
