import type { Runtime } from '../../src/control/runtime/runtime.ts'
import { committed } from './deployment.ts'
import { eventually } from './eventually.ts'
import { readAll } from './kafka.ts'
import { kafkaTool } from './kafka-tools.ts'
import { uniqueName } from './services.ts'
import { withFreshKafkajs } from './stock-kafkajs.ts'

/** A message as anybody sees it: where it lies, and its key as text. */
type Seen = string

/** Longest gap between two messages of a topic for Kafka's consumer; it tells its end by nothing else. */
const PATIENCE_MS = [3_000, 20_000]

/**
 * What others see of topics with read_committed, held against what our reader sees: Kafka's own console consumer, and kafkajs as it is
 * published, which shows some messages of aborted transactions where those of several producers overlap (README says so to its users).
 * Shape: the differences, in words; empty where all see the same messages with the same keys, each once.
 */
export async function differencesToOthers(runtime: Runtime, topics: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const topic of topics) found.push(...(await differencesOf(runtime, topic)))
  return found
}

async function differencesOf(runtime: Runtime, topic: string): Promise<string[]> {
  const ours = (await committed(runtime, topic)).map(({ partition, offset, key }) => seen(partition, String(offset), String(key)))
  const [console, kafkajs] = [await readByConsole(runtime.brokers, topic, ours.length), await readByKafkajs(runtime, topic)]
  const aborted = await abortedOn(runtime, topic, new Set(ours))
  return [
    ...differences(`Kafka's console consumer of ${topic}`, console, ours),
    ...differences(
      `kafkajs as it is published, of ${topic}`,
      kafkajs.filter((each) => !aborted.has(each)),
      ours,
    ),
  ]
}

/** What lies on the topic and is not `committed`. */
async function abortedOn({ client }: Runtime, topic: string, committed: ReadonlySet<Seen>): Promise<Set<Seen>> {
  const all = await readAll(client, topic, { isolation: 'read_uncommitted' })
  const found = all.map(({ partition, offset, key }) => seen(partition, String(offset), String(key)))
  return new Set(found.filter((each) => !committed.has(each)))
}

function seen(partition: number, offset: string, key: string): Seen {
  return `${partition}:${offset} ${key}`
}

function differences(who: string, theirs: readonly Seen[], ours: readonly Seen[]): string[] {
  const left = new Map<Seen, number>()
  for (const each of ours) left.set(each, (left.get(each) ?? 0) + 1)
  for (const each of theirs) left.set(each, (left.get(each) ?? 0) - 1)
  return [...left]
    .filter(([, count]) => count !== 0)
    .map(([each, count]) => `${who}: ${count > 0 ? 'does not read' : 'reads'} ${each}, and we ${count > 0 ? 'do' : 'do not'}`)
}

/** No code of ours in between. */
async function readByConsole(brokers: readonly string[], topic: string, expected: number): Promise<Seen[]> {
  let found: Seen[] = []
  for (const timeoutMs of PATIENCE_MS) {
    const args = ['--bootstrap-server', brokers.join(','), '--topic', topic, '--from-beginning', '--isolation-level', 'read_committed']
    const shown = ['print.partition=true', 'print.offset=true', 'print.key=true', 'print.value=false']
    const formatted = ['--timeout-ms', String(timeoutMs), ...shown.flatMap((property) => ['--property', property])]
    const { stdout } = await kafkaTool('org.apache.kafka.tools.consumer.ConsoleConsumer', [...args, ...formatted])
    const lines = stdout.toString('utf8').matchAll(/^Partition:(\d+)\tOffset:(\d+)\t(.*)$/gm)
    found = [...lines].map(([, partition, offset, key]) => seen(Number(partition), offset ?? '', key ?? ''))
    // On a busy machine it may have given up too soon.
    if (found.length >= expected) break
  }
  return found
}

/** The library without our patches, read_committed as it is by default. */
async function readByKafkajs(runtime: Runtime, topic: string): Promise<Seen[]> {
  const found: Seen[] = []
  const positions = new Map<number, bigint>()
  const { consumer } = withFreshKafkajs((modules) => {
    const { Kafka, logLevel } = modules.entry() as typeof import('kafkajs')
    const kafka = new Kafka({ brokers: [...runtime.brokers], clientId: 'somebody-else', logLevel: logLevel.NOTHING })
    return { consumer: kafka.consumer({ groupId: uniqueName('somebody-else') }) }
  })
  const ends = await runtime.admin.endOffsets(topic, 'read_committed')
  await consumer.connect()
  try {
    await consumer.subscribe({ topic, fromBeginning: true })
    // Batches of marks alone are told by this event, not to the handler.
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => positions.set(payload.partition, BigInt(payload.lastOffset) + 1n))
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message: { offset, key } }) => void found.push(seen(partition, offset, String(key))),
    })
    const isRead = (): boolean => [...ends].every(([partition, end]) => end === 0n || (positions.get(partition) ?? 0n) >= end)
    await eventually(isRead, { timeoutMs: 60_000, everyMs: 50, what: `kafkajs to read ${topic} to its end` })
  } finally {
    await consumer.disconnect()
  }
  return found
}
