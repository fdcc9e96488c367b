import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createKafkaClient } from '../../src/kafka/client.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import { FaultRun, faultSeed } from '../support/fault-run.ts'
import { OwnBroker } from '../support/own-broker.ts'

/** Partitions are added while workers run: by Kafka's own tool first, which changes nothing, then told to Millrace by `topics apply`. */
describe('partitions that are added under load', () => {
  let broker: OwnBroker
  let run: FaultRun | undefined

  beforeEach(async () => {
    broker = await OwnBroker.start()
  })

  afterEach(async () => {
    await run?.close()
    await broker.end()
  })

  it('lose nothing, and each site keeps its pace while its tasks move', { timeout: 180_000 }, async () => {
    run = await FaultRun.open({ seed: faultSeed(), brokers: broker.address, programs: ['fetch', 'fetch', 'delay', 'frontier', 'extract'] })
    const { prefix } = run.deployment
    await run.untilFullSpeed()
    const added = run.begin('partitions added by another tool')
    await addPartitions(broker.address, [`${prefix}urls.high`, `${prefix}urls`, `${prefix}urls.low`, `${prefix}html`], 8)
    run.heal(added)
    await run.broken(4_000)
    const applied = run.begin('topics apply')
    const result = await run.deployment.run(['topics', 'apply'], undefined, ['topics.partitions.urls=8', 'topics.partitions.html=8'])
    run.heal(applied)
    expect(result.code, result.stdout + result.stderr).toBe(0)
    const fullSpeedAfterMs = await run.untilFullSpeedAgain(applied, 60_000)
    expect(await run.conclude('partitions 4 to 8', { withinMs: 90_000, figures: { fullSpeedAfterMs } })).toEqual([])
  })
})

async function addPartitions(address: string, topics: readonly string[], count: number): Promise<void> {
  const client = createKafkaClient({ brokers: [address], clientId: 'another-tool' }, silentObserver)
  const admin = client.kafka.admin()
  await admin.connect()
  await admin.createPartitions({ topicPartitions: topics.map((topic) => ({ topic, count })) })
  await admin.disconnect()
}
