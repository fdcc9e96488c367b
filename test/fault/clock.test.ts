import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { FakeTime, findFaketime, HOW_TO_GET_FAKETIME } from '../support/fake-time.ts'
import { FaultRun, faultSeed, type ProgramName } from '../support/fault-run.ts'
import { setTopicConfigs } from '../support/kafka.ts'
import { OwnBroker } from '../support/own-broker.ts'

const library = findFaketime()
const title = `wall clocks that jump${library === undefined ? ` (skipped: needs ${HOW_TO_GET_FAKETIME})` : ''}`
const HOUR_S = 3_600

/**
 * The wall clock of processes is set by hours while they work; that of the broker is right. Nothing waits for hours, no pace
 * breaks, nothing is lost.
 */
describe.skipIf(library === undefined)(title, () => {
  let broker: OwnBroker
  let folder: string
  let run: FaultRun | undefined

  beforeAll(async () => {
    broker = await OwnBroker.start()
    folder = mkdtempSync(join(tmpdir(), 'millrace-clock-'))
  })

  afterEach(async () => {
    await run?.close()
  })

  afterAll(async () => {
    await broker.end()
    rmSync(folder, { recursive: true, force: true })
  })

  const all: ProgramName[] = ['fetch', 'delay', 'frontier', 'extract']
  const jumps: { what: string; who: ProgramName[]; hours: number; backAfterMs?: number }[] = [
    { what: 'all half an hour ahead', who: all, hours: 0.5 },
    // More than a broker takes: they stand still until the clock is right.
    { what: 'all three hours ahead for six seconds', who: all, hours: 3, backAfterMs: 6_000 },
    { what: 'all three hours back', who: all, hours: -3 },
    { what: 'delay alone three hours back', who: ['delay'], hours: -3 },
  ]

  it.each(jumps)(
    'loses nothing, keeps every pace and waits for nobody: $what',
    { timeout: 180_000 },
    async ({ what, who, hours, backAfterMs }) => {
      const time = new FakeTime(library as string, join(folder, 'offset'))
      run = await FaultRun.open({
        seed: faultSeed(),
        brokers: broker.address,
        env: (name) => (who.includes(name) ? time.env : {}),
      })
      // When an outcome was sent, by the one clock that is right.
      await run.deployment.read(({ admin, topics }) =>
        setTopicConfigs(admin, topics.outcomes, { 'message.timestamp.type': 'LogAppendTime' }),
      )
      await run.untilFullSpeed()
      const fault = run.begin(what)
      time.shift(hours * HOUR_S)
      if (backAfterMs !== undefined) {
        await run.broken(backAfterMs)
        time.shift(0)
      }
      run.heal(fault)
      await run.broken(2_000)
      const fullSpeedAfterMs = await run.untilFullSpeedAgain(fault, 30_000)
      expect(await run.conclude(`clocks: ${what}`, { withinMs: 90_000, figures: { fullSpeedAfterMs } })).toEqual([])
    },
  )
})
