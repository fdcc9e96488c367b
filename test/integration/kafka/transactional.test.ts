import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { KafkaAdmin } from '../../../src/kafka/admin.ts'
import type { KafkaClient } from '../../../src/kafka/client.ts'
import { ClusterSession } from '../../../src/kafka/cluster-session.ts'
import { type CommitStep, CommitTrail } from '../../../src/kafka/commit-trail.ts'
import { fetchStableOffsets } from '../../../src/kafka/stable-offsets.ts'
import {
  createPartitionTransactions,
  type PartitionTransactions,
  type PartitionTransactionsOptions,
} from '../../../src/kafka/transactional.ts'
import { partitionId } from '../../../src/kernel/brand.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { cuttingClient } from '../../support/cutting-client.ts'
import { RecordingObserver } from '../../support/embedded.ts'
import { closedEnd, readEvents, readTexts, testAdmin, testClient, testTopic, textMessage } from '../../support/kafka.ts'
import { uniqueName } from '../../support/services.ts'

const client = testClient()
const admin = testAdmin(client)
const opened: PartitionTransactions[] = []

interface Input {
  readonly groupId: string
  readonly topic: string
  readonly partition: number
}

function transactions(input: Input, options: Partial<PartitionTransactionsOptions> = {}): PartitionTransactions {
  const created = createPartitionTransactions({ client, clock: systemClock, observer: silentObserver, ...input, ...options })
  opened.push(created)
  return created
}

/**
 * A client that can be made to hang at a commit: before it asks for it, or when the broker has committed, with the answer kept for itself.
 * `hush` resolves when it has come there.
 */
function silentAtCommit(side: 'before' | 'after' = 'after'): { silent: KafkaClient; hush: () => Promise<void>; speak: () => void } {
  let held: { readonly reached: () => void; readonly until: Promise<void> } | undefined
  let speak = (): void => undefined
  const producer: KafkaClient['kafka']['producer'] = (config) => {
    const real = client.kafka.producer(config)
    const transaction: typeof real.transaction = async () => {
      const begun = await real.transaction()
      const commit = async (): Promise<void> => {
        if (side === 'after') await begun.commit()
        held?.reached()
        await held?.until
        if (side === 'before') await begun.commit()
      }
      return { ...begun, commit }
    }
    return { ...real, transaction }
  }
  return {
    silent: { ...client, kafka: Object.assign(Object.create(client.kafka) as KafkaClient['kafka'], { producer }) },
    hush: () =>
      new Promise((reached) => {
        const until = new Promise<void>((resolve) => {
          speak = resolve
        })
        held = { reached, until }
      }),
    speak: () => speak(),
  }
}

function trailOf({ groupId, topic, partition }: Input, ...steps: readonly CommitStep[]): CommitTrail {
  const trail = new CommitTrail()
  for (const step of steps) trail.add(`${groupId}/${topic}/${partition}`, step)
  return trail
}

/** What readers of the topic see once no transaction is open in its first partition. */
async function committedTexts(topic: string): Promise<string[]> {
  await closedEnd(admin, topic)
  return readTexts(client, topic)
}

/** A client whose broker can't be reached for as long as that is said. */
function clientThatMayBeAway(): { readonly away: KafkaClient; readonly isAway: (is: boolean) => void } {
  let isNow = false
  const producer: KafkaClient['kafka']['producer'] = (config) => {
    if (isNow) throw new MillraceError('KAFKA_UNREACHABLE', 'it is away')
    return client.kafka.producer(config)
  }
  const away = { ...client, kafka: Object.assign(Object.create(client.kafka) as KafkaClient['kafka'], { producer }) }
  const isAway = (is: boolean): void => {
    isNow = is
  }
  return { away, isAway }
}

async function newInput(): Promise<Input> {
  return { groupId: uniqueName('group'), topic: await testTopic(admin, 'input', 2), partition: 1 }
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()))
})
afterAll(() => admin.close())

describe('transactions of an input partition', () => {
  it('commit messages, offset and metadata together, and read them back after a fence', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output', 3)
    const first = transactions(input)
    expect(await first.fence()).toEqual({ offset: undefined, metadata: '' })
    await first.commit([textMessage(output, 0, 'a'), textMessage(output, 2, 'b')], 5n, 'state')
    expect(await transactions(input).fence()).toEqual({ offset: 5n, metadata: 'state' })
    expect((await committedTexts(output)).sort()).toEqual(['a', 'b'])
    const committed = await admin.committedOffsets(input.groupId, [input.topic])
    expect(committed.get(partitionId(input.topic, 0))).toEqual({ offset: undefined, metadata: '' })
  })

  it('shut out the former owner, whose transaction leaves nothing visible', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output')
    const zombie = transactions(input)
    await zombie.fence()
    await zombie.commit([textMessage(output, 0, 'before')], 1n, '')
    const owner = transactions(input)
    expect((await owner.fence()).offset).toBe(1n)
    await expect(zombie.commit([textMessage(output, 0, 'zombie')], 9n, 'wrong')).rejects.toMatchObject({ code: 'KAFKA_FENCED' })
    await owner.commit([textMessage(output, 0, 'owner')], 2n, 'right')
    expect(await committedTexts(output)).toEqual(['before', 'owner'])
    expect(await transactions(input).fence()).toEqual({ offset: 2n, metadata: 'right' })
  })

  it('fence nobody once their partition went to another member, however late the broker answers', async () => {
    const input = await newInput()
    const owner = transactions(input)
    await owner.fence()
    const former = transactions(input)
    const lost = new AbortController()
    // It is lost while the former owner connects.
    const fencing = former.fence(lost.signal)
    lost.abort()
    await expect(fencing).rejects.toMatchObject({ code: 'ABORTED' })
    await owner.commit([], 1n, 'mine')
    expect(await transactions(input).fence()).toEqual({ offset: 1n, metadata: 'mine' })
  })

  it('are fenced by the admin as well, without a producer', async () => {
    const input = await newInput()
    const owner = transactions(input)
    await owner.fence()
    await admin.fenceTransactions([`${input.groupId}/${input.topic}/${input.partition}`])
    await expect(owner.commit([], 1n, '')).rejects.toMatchObject({ code: 'KAFKA_FENCED' })
    expect((await owner.fence()).offset).toBeUndefined()
  })

  it('begin behind an offset that another transaction is about to commit, not at the one before it', async () => {
    const input = await newInput()
    await transactions(input).fence()
    const other = client.kafka.producer({ transactionalId: uniqueName('other'), maxInFlightRequests: 1 })
    await other.connect()
    try {
      const pending = await other.transaction()
      const { groupId: consumerGroupId, topic, partition } = input
      await pending.sendOffsets({ consumerGroupId, topics: [{ topic, partitions: [{ partition, offset: '10' }] }] })
      const session = new ClusterSession({ client, clock: systemClock })
      const looked = session.run('reading', (cluster) => fetchStableOffsets(cluster, consumerGroupId, [{ topic, partition }]))
      expect((await looked).get(partitionId(topic, partition))).toBe('unstable')
      await session.close()
      const read = async (by: KafkaAdmin) =>
        (await by.committedOffsets(consumerGroupId, [topic])).get(partitionId(topic, partition))?.offset
      // The admin keeps nobody waiting for one that hangs.
      expect(await read(admin)).toBeUndefined()
      // To this one a second is half a minute, which the end of the transaction may take on a busy machine.
      const patient = new KafkaAdmin(client, { ...systemClock, mono: () => systemClock.mono() / 30 })
      const [fencing, reading] = [transactions(input).fence(), read(patient)]
      await pending.commit()
      expect((await fencing).offset).toBe(10n)
      expect(await reading).toBe(10n)
      await patient.close()
    } finally {
      await other.disconnect()
    }
  })

  it('begin nowhere while a transaction holds a newer offset, and before it once that is longer than any may be open', async () => {
    const input = await newInput()
    const first = transactions(input)
    await first.fence()
    await first.commit([], 5n, 'five')
    await first.close()
    const other = client.kafka.producer({ transactionalId: uniqueName('other'), maxInFlightRequests: 1 })
    await other.connect()
    try {
      const hanging = await other.transaction()
      const { groupId: consumerGroupId, topic, partition } = input
      await hanging.sendOffsets({ consumerGroupId, topics: [{ topic, partitions: [{ partition, offset: '10' }] }] })
      let passedMs = 0
      const clock = { ...systemClock, mono: () => systemClock.mono() + passedMs }
      const observer = new RecordingObserver()
      const { away, isAway } = clientThatMayBeAway()
      const owner = transactions(input, { client: away, clock, observer })
      const refusal = { code: 'KAFKA_TRANSACTION_FAILED', message: expect.stringContaining('has not ended yet') }
      await expect(owner.fence()).rejects.toMatchObject(refusal)
      expect(observer.names().filter((name) => name === 'OffsetAwaited')).toHaveLength(1)
      // A broker that is away has no time to end it.
      isAway(true)
      await expect(owner.fence()).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE' })
      isAway(false)
      passedMs = 80_000
      await expect(owner.fence()).rejects.toMatchObject(refusal)
      expect(observer.names()).not.toContain('OffsetUnstable')
      passedMs = 160_000
      expect((await owner.fence()).offset).toBe(5n)
      expect(observer.names()).toContain('OffsetUnstable')
      await hanging.abort()
    } finally {
      await other.disconnect()
    }
  })

  it('go on behind a commit whose messages are there, though the broker has lost its offset', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output')
    const lost = { offset: 6n, metadata: 'six' }
    const first = transactions(input)
    await first.fence()
    await first.commit([textMessage(output, 0, 'a')], 5n, 'five')
    await first.commit([textMessage(output, 0, 'b')], lost.offset, lost.metadata)
    await first.close()
    // Messages lie at 0 and 2; between and behind them are the ends of the transactions.
    const back = (offset: bigint, metadata: string) => admin.commitDirect(input.groupId, [{ ...input, offset, metadata }])
    const fenced = (before: { offset: bigint; metadata: string }, at: bigint) => {
      const messages = [{ topic: output, partition: 0, offset: at }]
      return transactions(input, { trail: trailOf(input, { before, ...lost, messages }) }).fence()
    }
    await back(5n, 'five')
    expect(await fenced({ offset: 5n, metadata: 'five' }, 2n)).toEqual(lost)
    // Whoever has it next, in another process, knows no trail.
    expect(await transactions(input).fence()).toEqual(lost)
    // Its messages are not there: it was aborted, or is lost with the end of the log.
    await back(5n, 'five')
    expect(await fenced({ offset: 5n, metadata: 'five' }, 1n)).toEqual({ offset: 5n, metadata: 'five' })
    expect(await fenced({ offset: 5n, metadata: 'five' }, 99n)).toEqual({ offset: 5n, metadata: 'five' })
    // Another owner has worked since then.
    await back(5n, 'another five')
    expect(await fenced({ offset: 5n, metadata: 'five' }, 2n)).toEqual({ offset: 5n, metadata: 'another five' })
  })

  it('go on behind a commit that no reader sees yet, and nowhere while nobody knows whether one has happened', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output')
    const other = client.kafka.producer({ transactionalId: uniqueName('other'), maxInFlightRequests: 1 })
    await other.connect()
    try {
      const open = await other.transaction()
      await open.send({ topic: output, acks: -1, messages: [{ partition: 0, value: 'before it' }] })
      const owner = transactions(input)
      await owner.fence()
      // Its message lies at 1, behind one that is still open: committed, and not to be seen.
      await owner.commit([textMessage(output, 0, 'b')], 6n, 'six')
      await owner.close()
      const held = { offset: 5n, metadata: 'five' }
      await admin.commitDirect(input.groupId, [{ ...input, ...held }])
      let passedMs = 0
      const clock = { ...systemClock, mono: () => systemClock.mono() + passedMs }
      const owned = (offset: bigint): PartitionTransactions => {
        const trail = trailOf(input, { before: held, offset: 6n, metadata: 'six', messages: [{ topic: output, partition: 0, offset }] })
        return transactions(input, { trail, clock })
      }
      expect(await owned(1n).fence()).toEqual({ offset: 6n, metadata: 'six' })
      await admin.commitDirect(input.groupId, [{ ...input, ...held }])
      const waiting = owned(0n)
      const refusal = { code: 'KAFKA_TRANSACTION_FAILED', message: expect.stringContaining('has not ended yet') }
      await expect(waiting.fence()).rejects.toMatchObject(refusal)
      // As long as any transaction may be open: its messages are seen by nobody either, by then.
      passedMs = 80_000
      expect(await waiting.fence()).toEqual(held)
      await open.abort()
      expect(await owned(0n).fence()).toEqual(held)
    } finally {
      await other.disconnect()
    }
  })

  it('go on behind a commit that was acknowledged before the broker lost its offset', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output')
    const trail = new CommitTrail()
    const owner = transactions(input, { trail })
    await owner.fence()
    await owner.commit([textMessage(output, 0, 'a')], 5n, 'five')
    await owner.commit([textMessage(output, 0, 'b')], 6n, 'six')
    await owner.close()
    await admin.commitDirect(input.groupId, [{ ...input, offset: 5n, metadata: 'five' }])
    expect(await transactions(input, { trail }).fence()).toEqual({ offset: 6n, metadata: 'six' })
  })

  it('go on behind a commit whose answer a former owner in the same process still waits for', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output')
    const trail = new CommitTrail()
    const { silent, hush, speak } = silentAtCommit()
    const former = transactions(input, { client: silent, trail })
    await former.fence()
    await former.commit([textMessage(output, 0, 'a')], 5n, 'five')
    const committed = hush()
    const answer = former.commit([textMessage(output, 0, 'b')], 6n, 'six')
    await committed
    await admin.commitDirect(input.groupId, [{ ...input, offset: 5n, metadata: 'five' }])
    expect(await transactions(input, { trail }).fence()).toEqual({ offset: 6n, metadata: 'six' })
    speak()
    await answer
  })

  it('go on behind the last commit that has happened, where the broker has lost one after the other', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output')
    const held = { offset: 5n, metadata: 'five' }
    const lost = { offset: 6n, metadata: 'six' }
    const first = transactions(input)
    await first.fence()
    await first.commit([textMessage(output, 0, 'a')], held.offset, held.metadata)
    await first.commit([textMessage(output, 0, 'b')], lost.offset, lost.metadata)
    await first.close()
    await admin.commitDirect(input.groupId, [{ ...input, ...held }])
    const at = (offset: bigint) => [{ topic: output, partition: 0, offset }]
    const trail = trailOf(input, { before: held, ...lost, messages: at(2n) })
    const owner = transactions(input, { trail, maxBatchBytes: () => 1_000 })
    expect(await owner.fence()).toEqual(lost)
    // The next one fails half way, with a message of its own on the log: it was aborted, and the one before it stands.
    const half = [textMessage(output, 0, 'a'.repeat(600)), textMessage(output, 0, 'b'.repeat(600)), textMessage(output, 55, 'c')]
    await expect(owner.commit(half, 7n, 'seven')).rejects.toMatchObject({ code: 'KAFKA_TRANSACTION_FAILED' })
    expect(await owner.fence()).toEqual(lost)
    await owner.close()
    // Had it happened, its offset would have been lost as well.
    const next = { offset: 7n, metadata: 'seven' }
    const both = trailOf(input, { before: held, ...lost, messages: at(2n) }, { before: lost, ...next, messages: at(2n) })
    expect(await transactions(input, { trail: both }).fence()).toEqual(next)
  })

  it('need a fence first, and after any failure', async () => {
    const input = await newInput()
    const owner = transactions(input)
    await expect(owner.commit([], 1n, '')).rejects.toMatchObject({ code: 'KAFKA_TRANSACTION_FAILED' })
    await owner.fence()
    await expect(owner.commit([textMessage(input.topic, 77, 'x')], 1n, '')).rejects.toMatchObject({ code: 'KAFKA_TRANSACTION_FAILED' })
    await expect(owner.commit([], 1n, '')).rejects.toMatchObject({ code: 'KAFKA_TRANSACTION_FAILED' })
    expect((await owner.fence()).offset).toBeUndefined()
    await owner.commit([], 3n, '')
    expect((await owner.fence()).offset).toBe(3n)
  })

  it('that failed half way are aborted at once, so that readers of the output do not wait', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output')
    const owner = transactions(input, { maxBatchBytes: () => 1_000 })
    await owner.fence()
    const messages = [textMessage(output, 0, 'a'.repeat(600)), textMessage(output, 0, 'b'.repeat(600)), textMessage(output, 55, 'c')]
    await expect(owner.commit(messages, 1n, '')).rejects.toMatchObject({ code: 'KAFKA_TRANSACTION_FAILED' })
    expect(await closedEnd(admin, output)).toBeGreaterThan(0n)
    expect(await committedTexts(output)).toEqual([])
  })

  it('that hang are aborted by the broker when their time is up, and hold up neither readers nor the next owner any longer', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output')
    const { silent, hush, speak } = silentAtCommit('before')
    const owner = transactions(input, { client: silent, transactionTimeoutMs: 2_000 })
    await owner.fence()
    const hanging = hush()
    const late = expect(owner.commit([textMessage(output, 0, 'hung')], 1n, 'hung')).rejects.toMatchObject({ code: 'KAFKA_FENCED' })
    // On a machine that is busy enough its time is up before it has come to its commit.
    await Promise.race([hanging, late])
    await closedEnd(admin, output)
    speak()
    await late
    const next = transactions(input)
    expect(await next.fence()).toEqual({ offset: undefined, metadata: '' })
    await next.commit([textMessage(output, 0, 'next')], 1n, '')
    expect(await committedTexts(output)).toEqual(['next'])
  })

  it('follow one another without a pause, with and without messages', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output')
    const owner = transactions(input)
    await owner.fence()
    for (let index = 1; index <= 12; index += 1) {
      await owner.commit(index % 3 === 0 ? [textMessage(output, 0, String(index))] : [], BigInt(index), `m${index}`)
    }
    expect(await owner.fence()).toEqual({ offset: 12n, metadata: 'm12' })
    expect(await committedTexts(output)).toEqual(['3', '6', '9', '12'])
  })

  it('send more than fits one batch in pieces, in order', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output', 1, { 'max.message.bytes': '20000' })
    const owner = transactions(input, { maxBatchBytes: () => 20_000 })
    await owner.fence()
    const texts = Array.from({ length: 60 }, (_, index) => `${index}-`.padEnd(1_500, 'x'))
    await owner.commit(
      texts.map((text) => textMessage(output, 0, text)),
      60n,
      '',
    )
    expect(await committedTexts(output)).toEqual(texts)
  })

  it('refuse a message too large for its topic before anything is opened, and go on', async () => {
    const input = await newInput()
    const owner = transactions(input, { maxBatchBytes: () => 1_000 })
    await owner.fence()
    await expect(owner.commit([textMessage(input.topic, 0, 'x'.repeat(2_000))], 1n, '')).rejects.toMatchObject({
      code: 'KAFKA_MESSAGE_TOO_LARGE',
    })
    await owner.commit([], 2n, '')
    expect((await owner.fence()).offset).toBe(2n)
  })

  it('give exactly one copy of each message when connections break at any point, going on from the committed offset', async () => {
    const input = await newInput()
    const output = await testTopic(admin, 'output')
    const cutting = cuttingClient()
    const owner = transactions(input, { client: cutting.client })
    let next = (await owner.fence()).offset ?? 0n
    let failures = 0
    for (let round = 0; next < 30n; round += 1) {
      if (round > 200) throw new Error('no progress')
      // Somewhere between the first request of the transaction and the answer to its end.
      if (round % 3 !== 2) cutting.loseAnswer(1 + ((round * 5) % 13))
      try {
        await owner.commit([textMessage(output, 0, String(next)), textMessage(output, 0, `${next}b`)], next + 1n, '')
        next += 1n
      } catch {
        failures += 1
        next = (await owner.fence()).offset ?? 0n
      }
    }
    const expected = Array.from({ length: 30 }, (_, index) => [String(index), `${index}b`]).flat()
    expect(await committedTexts(output)).toEqual(expected)
    expect(failures).toBeGreaterThan(3)
  })

  it('show their messages to nobody while they are open, and hold back the end of committed reading', async () => {
    const output = await testTopic(admin, 'output')
    const producer = client.kafka.producer({ transactionalId: uniqueName('open'), allowAutoTopicCreation: false })
    await producer.connect()
    const open = await producer.transaction()
    await open.send({ topic: output, messages: [{ value: 'open', partition: 0 }] })
    expect(await admin.endOffsets(output, 'read_uncommitted')).toEqual(new Map([[0, 1n]]))
    expect(await admin.endOffsets(output, 'read_committed')).toEqual(new Map([[0, 0n]]))
    expect(await readEvents(client, output)).toEqual([{ kind: 'end', topic: output, partition: 0, position: 0n }])
    await open.abort()
    await producer.disconnect()
    expect(await committedTexts(output)).toEqual([])
  })
})
