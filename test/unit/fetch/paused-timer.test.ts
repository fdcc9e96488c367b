import { expect, it } from 'vitest'
import { MOST_PAUSED_MS, PausedTimer } from '../../../src/fetch/paused-timer.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('a timer that stands still counts the time alone in which it runs', async () => {
  const clock = new ManualClock()
  let runs = 0
  const timer = new PausedTimer(clock, 100, () => (runs += 1))
  await clock.advance(60)
  timer.pause()
  timer.pause()
  await clock.advance(1_000)
  timer.resume()
  timer.resume()
  await clock.advance(39)
  expect(runs).toBe(0)
  await clock.advance(1)
  expect(runs).toBe(1)
})

it('a timer stands still for so long and no longer', async () => {
  const clock = new ManualClock()
  let runs = 0
  const timer = new PausedTimer(clock, 100, () => (runs += 1))
  timer.pause()
  await clock.advance(MOST_PAUSED_MS + 50)
  timer.pause()
  await clock.advance(49)
  expect(runs).toBe(0)
  await clock.advance(1)
  expect(runs).toBe(1)
})

it('a timer that was stopped never runs, paused or not', async () => {
  const clock = new ManualClock()
  let runs = 0
  const timer = new PausedTimer(clock, 100, () => (runs += 1))
  timer.stop()
  timer.pause()
  await clock.advance(200)
  expect(runs).toBe(0)
})
