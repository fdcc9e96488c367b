import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { FaultRun, faultSeed } from '../support/fault-run.ts'
import { OwnBroker } from '../support/own-broker.ts'
import { OwnRedis } from '../support/own-redis.ts'
import { findToxiproxy, HOW_TO_INSTALL, OwnToxiproxy, type Toxic } from '../support/own-toxiproxy.ts'

const command = findToxiproxy()
const title = `a network that fails between workers and what they stand on${command === undefined ? ` (skipped: needs ${HOW_TO_INSTALL})` : ''}`

type Way = 'kafka' | 'redis' | 'sites'

/**
 * Way by way: to Kafka, to Redis, to the sites. Two fetch workers; connections are reset again and again, slow, or silent. A site that is
 * away for longer is parked for half a minute, which is then part of the time until full speed.
 */
describe.skipIf(command === undefined)(title, () => {
  let broker: OwnBroker
  let redis: OwnRedis
  let proxies: OwnToxiproxy
  let redisPort: number
  let run: FaultRun | undefined

  beforeAll(async () => {
    proxies = await OwnToxiproxy.start(command as string)
    broker = await OwnBroker.start()
    redis = await OwnRedis.start()
    await proxies.add('kafka', broker.proxiedPort, broker.proxyPort)
    redisPort = await proxies.add('redis', redis.port)
  })

  afterEach(async () => {
    await proxies.heal()
    await run?.close()
    await proxies.remove('sites')
  })

  afterAll(async () => {
    await redis.end()
    await broker.end()
    await proxies.end()
  })

  const reset = (afterMs: number): Toxic => ({ type: 'reset_peer', afterMs })
  const faults: { what: string; ways: Way[]; toxic: Toxic; ms: number }[] = [
    { what: 'Kafka, reset', ways: ['kafka'], toxic: reset(300), ms: 5_000 },
    { what: 'Kafka, slow', ways: ['kafka'], toxic: { type: 'latency', ms: 150 }, ms: 8_000 },
    { what: 'Kafka, silent', ways: ['kafka'], toxic: { type: 'black-hole' }, ms: 8_000 },
    { what: 'Redis, reset', ways: ['redis'], toxic: reset(100), ms: 5_000 },
    { what: 'Redis, silent', ways: ['redis'], toxic: { type: 'black-hole' }, ms: 5_000 },
    { what: 'sites, reset', ways: ['sites'], toxic: reset(20), ms: 3_000 },
    { what: 'sites, silent', ways: ['sites'], toxic: { type: 'black-hole' }, ms: 3_000 },
    { what: 'all of them, reset', ways: ['kafka', 'redis', 'sites'], toxic: reset(200), ms: 3_000 },
  ]

  it.each(faults)('loses nothing and keeps every pace: $what', { timeout: 300_000 }, async ({ what, ways, toxic, ms }) => {
    run = await FaultRun.open({
      seed: faultSeed(),
      brokers: broker.address,
      redis: redis.url,
      programs: ['fetch', 'fetch', 'delay', 'frontier', 'extract'],
      pagesPerHost: 100,
      set: ['fetch.timeouts.headers=3s', 'fetch.timeouts.idle=3s'],
      setForCommands: [`brokers=127.0.0.1:${broker.proxyPort}`, `redis=redis://127.0.0.1:${redisPort}`],
      siteProxy: (port) => proxies.add('sites', port),
    })
    await run.untilFullSpeed()
    // Without Kafka workers lose their partitions to each other, and the new owner asks for what the old one has on the wire.
    const fault = run.begin(what, { losesRequests: ways.includes('sites') || ways.includes('kafka') })
    for (const way of ways) await proxies.poison(way, toxic)
    await run.broken(ms)
    await proxies.heal()
    run.heal(fault)
    const fullSpeedAfterMs = await run.untilFullSpeedAgain(fault, 60_000)
    expect(await run.conclude(`network to ${what}`, { withinMs: 150_000, figures: { fullSpeedAfterMs } })).toEqual([])
  })
})
