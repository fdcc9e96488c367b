import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FaultRun, faultSeed } from '../support/fault-run.ts'
import { OwnBroker } from '../support/own-broker.ts'
import { OwnRedis } from '../support/own-redis.ts'

const PROGRAMS = ['fetch', 'fetch', 'delay', 'frontier', 'extract'] as const
const PERSISTENT = ['appendonly yes', 'appendfsync everysec']

/**
 * Redis goes away while two fetch workers share the pace of each site through it. Nobody asks without it: fetching pauses, goes on by
 * itself, and no site is asked faster than before.
 */
describe('a Redis that goes away under load', () => {
  let broker: OwnBroker
  let redis: OwnRedis
  let run: FaultRun | undefined

  beforeEach(async () => {
    broker = await OwnBroker.start()
  })

  afterEach(async () => {
    await run?.close()
    await redis.end()
    await broker.end()
  })

  const away = [
    { what: 'killed for 5 s, its data kept', settings: PERSISTENT, begin: () => redis.stop(), end: () => redis.start() },
    { what: 'hung for 5 s', settings: [], begin: async () => redis.hang(), end: async () => redis.goOn() },
  ]

  it.each(away)('pauses fetching and loses nothing: $what', { timeout: 180_000 }, async ({ what, settings, begin, end }) => {
    redis = await OwnRedis.start(settings)
    run = await FaultRun.open({ seed: faultSeed(), brokers: broker.address, redis: redis.url, programs: PROGRAMS })
    await run.untilFullSpeed()
    const fault = run.begin(what)
    await begin()
    await run.broken(5_000)
    const quietAfterMs = run.quietAfter(fault)
    await end()
    run.heal(fault)
    const fullSpeedAfterMs = await run.untilFullSpeedAgain(fault, 30_000)
    expect(await run.conclude(`Redis ${what}`, { withinMs: 90_000, figures: { quietAfterMs, fullSpeedAfterMs } })).toEqual([])
    expect(quietAfterMs).toBeLessThan(QUIET_MS)
  })

  it('asks no site too fast when it comes back with nothing, and asks again at most for what was forgotten', {
    timeout: 180_000,
  }, async () => {
    redis = await OwnRedis.start()
    run = await FaultRun.open({ seed: faultSeed(), brokers: broker.address, redis: redis.url, programs: PROGRAMS })
    await run.untilFullSpeed()
    const fault = run.begin('killed for 5 s, its data lost', { losesState: true })
    await redis.stop()
    await run.broken(5_000)
    const quietAfterMs = run.quietAfter(fault)
    await redis.start()
    run.heal(fault)
    const fullSpeedAfterMs = await run.untilFullSpeedAgain(fault, 30_000)
    expect(await run.conclude(`Redis ${fault.what}`, { withinMs: 120_000, figures: { quietAfterMs, fullSpeedAfterMs } })).toEqual([])
    expect(quietAfterMs).toBeLessThan(QUIET_MS)
  })
})

/** A call that waits for an answer gives up within a second; a busy machine may see it a little later. */
const QUIET_MS = 1_500
