import { afterEach, describe, expect, it } from 'vitest'
import { KafkaAdmin } from '../../src/kafka/admin.ts'
import { createKafkaClient } from '../../src/kafka/client.ts'
import { CommitTrail } from '../../src/kafka/commit-trail.ts'
import { readLog } from '../../src/kafka/log-reader.ts'
import { createPartitionTransactions } from '../../src/kafka/transactional.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import { RecordingObserver } from '../support/embedded.ts'
import { eventually } from '../support/eventually.ts'
import { faultSeed } from '../support/fault-run.ts'
import { textMessage } from '../support/kafka.ts'
import { OwnBroker } from '../support/own-broker.ts'
import { SeededRandom } from '../support/random.ts'

const PARTITIONS = 4
const KILLS = Number(process.env.MILLRACE_TEST_RUNS ?? 12)

/**
 * Transactions without end on a broker that is stopped or killed -9 again and again, in the middle of its start as well. Each writes three
 * records and moves an offset by one, so afterwards the offsets and the records must tell the same.
 */
describe.skipIf(process.platform !== 'linux')('a broker that ends while it commits', () => {
  let broker: OwnBroker | undefined
  afterEach(() => broker?.end())

  it.each([
    { signal: 'SIGKILL', resigns: false, whose: 'ours' },
    { signal: 'SIGTERM', resigns: false, whose: 'ours' },
    { signal: 'SIGKILL', resigns: true, whose: 'of others' },
    { signal: 'SIGTERM', resigns: true, whose: 'of others' },
  ] as const)('forgets no transaction and brings none twice: $signal of one that is $whose', { timeout: 600_000 }, async (each) => {
    const { signal, resigns } = each
    const own = await OwnBroker.start({ resigns })
    broker = own
    const random = new SeededRandom(faultSeed())
    const client = createKafkaClient({ brokers: [own.address], clientId: 'test' }, silentObserver)
    const admin = new KafkaAdmin(client, systemClock)
    await admin.createTopics(['in', 'out'].map((topic) => ({ topic, partitions: PARTITIONS, replication: 1, configs: {} })))
    let committed = 0
    let isOver = false
    const offsets = Array.from({ length: PARTITIONS }, () => 0n)
    const surprises: string[] = []
    const trail = new CommitTrail()
    const observer = new RecordingObserver()
    const told = (event: string): number => observer.names().filter((name) => name === event).length

    const work = async (partition: number): Promise<void> => {
      const input = { client, groupId: 'group', topic: 'in', partition, clock: systemClock, observer, trail }
      const transactions = createPartitionTransactions(input)
      const fence = (): Promise<bigint> =>
        eventually(async () => (await transactions.fence()).offset ?? 0n, { timeoutMs: 240_000, everyMs: 100, what: 'the fence' })
      let next = await fence()
      while (!isOver) {
        const messages = [0, 1, 2].map((step) => textMessage('out', (partition + step) % PARTITIONS, `${partition}:${next}:${step}`))
        try {
          await transactions.commit(messages, next + 1n, '')
          next += 1n
          committed += 1
        } catch {
          // It may have been committed or not, and nothing else.
          const found = await fence()
          if (found !== next && found !== next + 1n) surprises.push(`${partition}: ${found} after ${next} was under way`)
          next = found
        }
      }
      // Behind it readers see all that was committed.
      await fence()
      offsets[partition] = next
      await transactions.close()
    }

    const works = Array.from({ length: PARTITIONS }, (_, partition) => work(partition))
    for (let kills = 0; kills < KILLS; ) {
      const enough = committed + random.between(3, 15)
      await eventually(() => committed >= enough, { timeoutMs: 120_000, everyMs: 5, what: 'transactions that commit again' })
      // Once in service, and then while it comes up.
      for (const ms of [random.between(0, 100), random.between(500, 3_000)]) {
        await systemClock.sleep(ms)
        await own.stop(signal)
        await own.launch()
        kills += 1
      }
    }
    const enough = committed + PARTITIONS
    await eventually(() => committed >= enough, { timeoutMs: 120_000, everyMs: 20, what: 'transactions that commit again' })
    isOver = true
    await Promise.all(works)

    const counts = new Map<string, number>()
    for await (const event of readLog({ client, clock: systemClock, from: new Map([['out', 'earliest' as const]]) })) {
      if (event.kind !== 'batch') continue
      for (const { value } of event.messages) counts.set(String(value), (counts.get(String(value)) ?? 0) + 1)
    }
    const expected = offsets.flatMap((end, partition) =>
      Array.from({ length: Number(end) }, (_, offset) => [0, 1, 2].map((step) => `${partition}:${offset}:${step}`)).flat(),
    )
    process.stdout.write(
      `${KILLS} kills, ${committed} transactions known to have committed, ${expected.length} records, ${told('OffsetUnstable')} offsets unstable, ${told('OffsetRestored')} restored, ${told('TransactionEndRestored')} ended once more\n`,
    )
    const twice = [...counts].filter(([, count]) => count > 1).map(([value]) => value)
    const missing = expected.filter((value) => !counts.has(value))
    const known = new Set(expected)
    const beyond = [...counts.keys()].filter((value) => !known.has(value))
    expect({ surprises, twice, missing, beyond }).toEqual({ surprises: [], twice: [], missing: [], beyond: [] })
    await admin.close()
  })
})
