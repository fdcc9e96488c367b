import { expect, it } from 'vitest'
import { cutOff } from '../../../../src/control/run/cut-off.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

function rig() {
  const clock = new ManualClock()
  const [first, second] = [new AbortController(), new AbortController()]
  let close = (): void => undefined
  const onClose = (_: string, release: () => void): void => {
    close = release
  }
  const cut = cutOff({ clock, onClose }, { draining: first.signal, aborting: second.signal, drainTimeoutMs: 30_000 })
  return { clock, first, second, cut, close: () => close() }
}

it('the end of a run is cut off when its time has passed since the first signal, however long it had run before', async () => {
  const { clock, first, cut, close } = rig()
  await clock.advance(60_000)
  first.abort()
  await clock.advance(29_999)
  expect(cut.aborted).toBe(false)
  await clock.advance(1)
  expect(cut.reason).toMatchObject({ code: 'ABORTED' })
  close()
})

it('the end of a run is cut off by the second signal, and one that ends by itself leaves no timer', async () => {
  const { clock, first, second, cut, close } = rig()
  first.abort()
  second.abort()
  expect(cut.aborted).toBe(true)
  close()
  expect(clock.armedCount).toBe(0)
})
