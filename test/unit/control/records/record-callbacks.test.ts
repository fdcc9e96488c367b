import { describe, expect, it } from 'vitest'
import { RecordCallbacks } from '../../../../src/control/records/record-callbacks.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

function open() {
  const clock = new ManualClock()
  const stop = new AbortController()
  return { clock, stop, callbacks: new RecordCallbacks(clock, stop.signal) }
}
const never = (): Promise<void> => new Promise(() => undefined)

describe('a callback for records', () => {
  it('is waited for as long as it takes, and for five seconds once the run is stopped', async () => {
    const { clock, stop, callbacks } = open()
    const failures: unknown[] = []
    callbacks
      .bounded(never)({})
      .catch((error: unknown) => failures.push(error))
    await clock.advance(3_600_000)
    stop.abort()
    await clock.advance(4_999)
    expect(failures).toEqual([])
    await clock.advance(1)
    expect(failures).toMatchObject([{ code: 'ABORTED', message: expect.stringContaining('onRecord') }])
  })

  it('has five seconds for each record that is given after the stop', async () => {
    const { clock, stop, callbacks } = open()
    stop.abort()
    const given: unknown[] = []
    const write = callbacks.bounded(async (record) => {
      await clock.sleep(4_000)
      given.push(record)
    })
    for (const record of [1, 2]) {
      const written = write(record)
      await clock.advance(4_000)
      await written
    }
    expect([given, clock.armedCount]).toEqual([[1, 2], 0])
  })

  it('fails with its own error, thrown at once or later', async () => {
    const { callbacks } = open()
    const thrown = new Error('full')
    await expect(callbacks.bounded(() => Promise.reject(thrown))({})).rejects.toBe(thrown)
    const atOnce = callbacks.bounded(() => {
      throw thrown
    })
    await expect(atOnce({})).rejects.toBe(thrown)
  })

  it('is known as the one that asks, and nobody else', async () => {
    const { callbacks } = open()
    const asking: boolean[] = []
    const written = callbacks.bounded(async () => {
      await null
      asking.push(callbacks.areAsking)
    })({})
    asking.push(callbacks.areAsking)
    await written
    asking.push(callbacks.areAsking)
    expect(asking).toEqual([false, true, false])
  })
})
