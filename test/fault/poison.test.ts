import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createKafkaClient } from '../../src/kafka/client.ts'
import { readLog } from '../../src/kafka/log-reader.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import { FaultRun, faultSeed } from '../support/fault-run.ts'
import { OwnBroker } from '../support/own-broker.ts'
import { SeededRandom } from '../support/random.ts'

const POISON = 20_000
const PARTITIONS = 4
const MIB = 1_048_576
const PEAK_BYTES = 400 * MIB

/** A foreign producer writes what is no task between those that are. Each is a dead letter with the bytes it had; the tasks go on. */
describe('a flood of poison messages on urls', () => {
  let broker: OwnBroker
  let run: FaultRun | undefined

  beforeEach(async () => {
    broker = await OwnBroker.start()
  })

  afterEach(async () => {
    await run?.close()
    await broker.end()
  })

  it('is buried whole, holds up nobody, and takes no more memory than its window', { timeout: 240_000 }, async () => {
    const seed = faultSeed()
    run = await FaultRun.open({ seed, brokers: broker.address, pagesPerHost: 60 })
    await run.untilFullSpeed()
    const fetchPid = run.programs.find(({ name }) => name === 'fetch')?.program.child.pid as number
    const before = memoryOf(fetchPid)
    const fault = run.begin('a flood of poison')
    const poison = poisonOf(new SeededRandom(seed), POISON)
    await produce(broker.address, `${run.deployment.prefix}urls`, poison)
    run.heal(fault)
    const floodMs = Math.round((fault.healedAt as number) - fault.at)
    const buried = `${run.deployment.prefix}dead-letters`
    await run.until(async () => (await countOf(broker.address, buried)) >= POISON, 'all of it to be buried', 120_000, 1_000)
    const buriedAfterMs = Math.round(performance.now() - fault.at)
    const fullSpeedAfterMs = await run.untilFullSpeedAgain(fault, 30_000)
    await run.untilEnded(90_000)
    const peakMiB = Math.round(memoryOf(fetchPid).peak / MIB)
    const letters = await run.deployment.deadLetters()
    const report = await run.report({ deadLetters: POISON })
    run.print(`${POISON} poison messages`, {
      floodMs,
      buriedAfterMs,
      fullSpeedAfterMs,
      residentMiB: Math.round(before.now / MIB),
      peakMiB,
      ...report.figures,
    })
    expect(report.violations, JSON.stringify(report, undefined, 2)).toEqual([])
    expect(countByHash(letters.map(({ value }) => value))).toEqual(countByHash(poison))
    expect(peakMiB * MIB).toBeLessThan(PEAK_BYTES)
  })
})

const KINDS: Readonly<Record<string, number>> = {
  'random bytes': 4,
  'an unknown schema': 4,
  'an id of a registry': 3,
  'half a line of JSON': 3,
  'JSON of wrong types': 3,
  'JSON with an unknown name': 2,
  'nothing at all': 1,
  'much of it': 0.01,
}

/** Each one different, so that it can be found again by its bytes; `null` cannot. */
function poisonOf(random: SeededRandom, count: number): (Buffer | null)[] {
  const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, () => Math.floor(random.next() * 256)))
  return Array.from({ length: count }, (_, number) => {
    switch (random.pick(KINDS)) {
      case 'random bytes':
        return Buffer.concat([Buffer.from([0x80]), bytes(40)])
      case 'an unknown schema':
        return Buffer.concat([Buffer.from([0xc3, 0x01]), bytes(60)])
      case 'an id of a registry':
        return Buffer.concat([Buffer.from([0, 0, 0, 0, 99]), bytes(60)])
      case 'half a line of JSON':
        return Buffer.from(`{"url": "http://half.example/${number}`)
      case 'JSON of wrong types':
        return Buffer.from(`{"url": ${number}}`)
      case 'JSON with an unknown name':
        return Buffer.from(`{"url": "http://name.example/${number}", "adress": "typo"}`)
      case 'nothing at all':
        return null
      default:
        return Buffer.concat([Buffer.from([0xc3, 0x01]), bytes(8), Buffer.alloc(900_000, number % 256)])
    }
  })
}

async function produce(address: string, topic: string, values: readonly (Buffer | null)[]): Promise<void> {
  const client = createKafkaClient({ brokers: [address], clientId: 'a-stranger' }, silentObserver)
  const producer = client.kafka.producer({ createPartitioner: client.kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  const small = values.filter((value) => (value?.length ?? 0) < 1_000)
  const large = values.filter((value) => (value?.length ?? 0) >= 1_000)
  const messages = (part: readonly (Buffer | null)[], from: number) =>
    part.map((value, index) => ({ key: `k${from + index}`, partition: (from + index) % PARTITIONS, value }))
  for (let from = 0; from < small.length; from += 1_000)
    await producer.send({ topic, messages: messages(small.slice(from, from + 1_000), from) })
  for (const [index, value] of large.entries()) await producer.send({ topic, messages: messages([value], index) })
  await producer.disconnect()
}

async function countOf(address: string, topic: string): Promise<number> {
  const client = createKafkaClient({ brokers: [address], clientId: 'a-stranger' }, silentObserver)
  let count = 0
  for await (const event of readLog({ client, clock: systemClock, from: new Map([[topic, 'earliest']]) }))
    if (event.kind === 'batch') count += event.messages.length
  return count
}

function countByHash(values: readonly (Buffer | null)[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) {
    const hash = value === null ? 'null' : createHash('sha256').update(value).digest('hex')
    counts.set(hash, (counts.get(hash) ?? 0) + 1)
  }
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Linux: bytes in memory now and at most. */
function memoryOf(pid: number): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const bytes = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1_024
  return { now: bytes('VmRSS'), peak: bytes('VmHWM') }
}
