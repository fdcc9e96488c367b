import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FaultRun, faultSeed } from '../support/fault-run.ts'
import { OwnBroker } from '../support/own-broker.ts'

/** The broker goes away while sites are asked at full speed, and comes back. The workers stay up and lose nothing. */
describe('a broker that goes away under load', () => {
  let broker: OwnBroker
  let run: FaultRun | undefined

  beforeEach(async () => {
    broker = await OwnBroker.start()
  })

  afterEach(async () => {
    await run?.close()
    await broker.end()
  })

  const away = [
    { what: 'stopped by SIGTERM for 5 s', ms: 5_000, begin: () => broker.stop('SIGTERM'), end: () => broker.start() },
    { what: 'killed for 5 s', ms: 5_000, begin: () => broker.stop('SIGKILL'), end: () => broker.start() },
    { what: 'hung for 20 s', ms: 20_000, begin: async () => broker.hang(), end: async () => broker.goOn() },
  ]

  it.each(away)('loses nothing and repeats nothing: $what', { timeout: 180_000 }, async ({ what, ms, begin, end }) => {
    run = await FaultRun.open({ seed: faultSeed(), brokers: broker.address })
    await run.untilFullSpeed()
    const fault = run.begin(what)
    await begin()
    await run.broken(ms)
    await end()
    run.heal(fault)
    const fullSpeedAfterMs = await run.untilFullSpeedAgain(fault, 60_000)
    expect(await run.conclude(`broker ${what}`, { withinMs: 90_000, figures: { fullSpeedAfterMs } })).toEqual([])
  })
})
