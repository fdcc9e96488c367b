import net from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { run } from '../../../src/control/run/run.ts'
import { Runtime } from '../../../src/control/runtime/runtime.ts'
import { stickyAssigner } from '../../../src/kafka/assigner.ts'
import { createKafkaClient } from '../../../src/kafka/client.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { Deployment } from '../../support/deployment.ts'
import { LinkedSite } from '../../support/linked-site.ts'
import { brokers } from '../../support/services.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A member of the fetch group that the brokers see at another address of loopback: another host, for all that anybody can know. */
async function memberElsewhere(groupId: string, topics: string[]): Promise<void> {
  const { kafkajs } = createKafkaClient({ brokers: brokers(), clientId: 'elsewhere' }, silentObserver)
  const kafka = new kafkajs.Kafka({
    brokers: brokers(),
    clientId: 'elsewhere',
    socketFactory: ({ host, port, onConnect }) => net.connect({ host, port, localAddress: '127.0.0.2' }, onConnect),
    logLevel: kafkajs.logLevel.NOTHING,
  })
  const consumer = kafka.consumer({ groupId, partitionAssigners: [stickyAssigner(kafkajs.AssignerProtocol, () => [])] })
  await consumer.connect()
  closing.push(() => consumer.disconnect())
  await consumer.subscribe({ topics })
  const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve))
  await consumer.run({ autoCommit: false, eachMessage: () => new Promise(() => undefined) })
  await joined
}

it('a run is refused where another host fetches with a state of its own, and no site is asked', async () => {
  const site = new LinkedSite({ hosts: 1, pagesPerHost: 2, latencyMs: () => 0 })
  await site.start()
  closing.push(() => site.stop())
  const deployment = await Deployment.open()
  closing.push(() => deployment.close())
  const sets = [
    `brokers=${brokers().join(',')}`,
    `data=${deployment.dataDir}`,
    `topics.prefix=${deployment.prefix}`,
    'topics.partitions.urls=4',
    'fetch.allowAddresses=127.0.0.0/8',
    'fetch.resolve=*.example=127.0.0.1',
  ]
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  const runtime = await Runtime.open({ config, owner: 'test', clock: systemClock, observer: silentObserver })
  closing.push(() => runtime.close())
  await memberElsewhere(runtime.groups.fetch, Object.values(runtime.topics.urls))
  let isOutputOpen = false
  const { signal } = new AbortController()
  const running = run(runtime, {
    seeds: site.urls().map(({ url }) => ({ text: url, line: undefined })),
    extractors: [],
    maxWaitMs: 10_000,
    keepRunning: false,
    drainTimeoutMs: 5_000,
    version: '0',
    openOutput: async () => {
      isOutputOpen = true
      return async () => undefined
    },
    draining: signal,
    aborting: signal,
  })
  await expect(running).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('and no redis is set') })
  expect(isOutputOpen).toBe(false)
  expect(site.requests).toEqual([])
})
