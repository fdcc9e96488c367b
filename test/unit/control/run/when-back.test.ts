import { describe, expect, it } from 'vitest'
import { whenBack } from '../../../../src/control/run/when-back.ts'
import { MillraceError } from '../../../../src/kernel/errors.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

const away = new MillraceError('KAFKA_UNREACHABLE', 'no broker answers')

function rig(awayBudgetMs?: number) {
  const clock = new ManualClock()
  const { observer, count } = recordingObserver()
  let fail: (error: unknown) => void = () => undefined
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  const consumerSettings = { sessionTimeoutMs: 1, ...(awayBudgetMs === undefined ? {} : { awayBudgetMs }) }
  return { runtime: { clock, observer, failed, consumerSettings }, clock, count, fail, stop: new AbortController() }
}

describe('what is read at the end of a run', () => {
  it('waits for brokers that are away, and says so', async () => {
    const { runtime, clock, count, stop } = rig()
    let looks = 0
    const read = whenBack(runtime, stop.signal, async () => {
      looks += 1
      if (looks < 4) throw away
      return 'the ledger'
    })
    for (let seconds = 0; seconds < 3; seconds += 1) await clock.advance(1_000)
    expect(await read).toBe('the ledger')
    expect([count('ReadRetried'), clock.armedCount]).toEqual([3, 0])
  })

  it('is given up with the reason when they stay away for as long as a member would wait', async () => {
    const { runtime, clock, stop } = rig(60_000)
    const read = expect(whenBack(runtime, stop.signal, () => Promise.reject(away))).rejects.toBe(away)
    for (let seconds = 0; seconds < 62; seconds += 1) await clock.advance(1_000)
    await read
  })

  it('is given up at a signal, in the middle of a look too', async () => {
    const { runtime, stop } = rig()
    const read = expect(whenBack(runtime, stop.signal, () => new Promise(() => undefined))).rejects.toThrow('enough')
    stop.abort(new Error('enough'))
    await read
  })

  it('fails at once where it is known that the broker does not come back, and by what is no absence', async () => {
    const { runtime, fail, stop } = rig()
    const read = expect(whenBack(runtime, stop.signal, () => new Promise(() => undefined))).rejects.toThrow('lost')
    fail(new Error('lost'))
    await read
    await expect(whenBack(rig().runtime, stop.signal, () => Promise.reject(new TypeError('a defect')))).rejects.toThrow('a defect')
  })
})
