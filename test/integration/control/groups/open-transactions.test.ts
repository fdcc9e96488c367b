import { afterEach, beforeEach, expect, it } from 'vitest'
import { status } from '../../../../src/control/inspect/status.ts'
import { runShadow } from '../../../../src/control/replay/shadow-replay.ts'
import { planRange } from '../../../../src/control/trials/plan-range.ts'
import { loadDefinition } from '../../../../src/extract/load-extractors.ts'
import type { KafkaClient } from '../../../../src/kafka/client.ts'
import { Deployment } from '../../../support/deployment.ts'
import { eventually } from '../../../support/eventually.ts'
import { testClient } from '../../../support/kafka.ts'
import { uniqueName } from '../../../support/services.ts'
import { BOOK_2, range, storePages } from '../../../support/stored-shop.ts'

let deployment: Deployment
let client: KafkaClient

beforeEach(async () => {
  client = testClient()
  deployment = await Deployment.open()
})
afterEach(() => deployment.close())

/** The broker ends a transaction that takes longer than its timeout. */
const STRANGER = { maxInFlightRequests: 1, idempotent: true, transactionTimeout: 600_000 } as const

/** A transaction of another program, begun a minute ago, with a message in a partition. Shape: what ends it. */
async function openIn(topic: string): Promise<() => Promise<void>> {
  const producer = client.kafka.producer({ ...STRANGER, transactionalId: uniqueName('stranger') })
  await producer.connect()
  const transaction = await producer.transaction()
  await transaction.send({ topic, messages: [{ partition: 0, value: 'x', timestamp: String(Date.now() - 60_000) }] })
  return async () => {
    await transaction.abort()
    await producer.disconnect()
  }
}

it('a transaction of another program that nobody ends is told of by status and by a shadow that waits for it', async () => {
  await deployment.read(async (runtime) => {
    const { topics } = runtime
    const ends = await Promise.all([topics.html, topics.records].map(openIn))
    // Behind it lies what nobody can read.
    await storePages(runtime, range(16))
    const { stalls } = await status(runtime)
    for (const topic of [topics.html, topics.records])
      expect(stalls).toContainEqual(
        expect.stringMatching(new RegExp(`^a transaction is open in ${topic}/0 from offset \\d+ on for (6\\d|[7-9]\\d|\\d{3}) s`)),
      )
    const never = new AbortController().signal
    const told: string[] = []
    const filter = {}
    const plan = await planRange(runtime, runtime.groups.extract(), { start: { kind: 'earliest' }, filter }, false)
    const extractor = loadDefinition('book.yaml', BOOK_2)
    const rest = { filter, plan, rate: undefined, out: undefined, drainTimeoutMs: 10_000, draining: never, aborting: never }
    const shadow = runShadow(runtime, { replayId: 's', extractor, ...rest, onWaiting: (text) => void told.push(text) })
    await eventually(() => told.length > 0, { what: 'what the shadow waits for' })
    expect(told).toEqual([expect.stringContaining(`a transaction is open in ${topics.html}/0 from offset`)])
    for (const end of ends) await end()
    expect(await shadow).toMatchObject({ records: 16, interrupted: false })
    // An end is answered before its mark is written.
    const isTold = async (): Promise<boolean> => (await status(runtime)).stalls.some((text) => text.includes('transaction'))
    await eventually(async () => !(await isTold()), { what: 'the ends of the transactions to be seen' })
  })
})
