import { describe, expect, it } from 'vitest'
import { RatePace } from '../../../src/extract/rate-pace.ts'
import { ManualClock } from '../../support/manual-clock.ts'

function paced() {
  const clock = new ManualClock()
  const pace = new RatePace(clock)
  const begun: [string, number][] = []
  const ask = async (name: string, signal = new AbortController().signal): Promise<void> => {
    begun.push([(await pace.next(2, signal)) ? name : `${name} given back`, clock.mono()])
  }
  return { clock, begun, ask }
}

describe('the rate cap of a replay', () => {
  it('gives each page the next moment', async () => {
    const { clock, begun, ask } = paced()
    const all = ['a', 'b', 'c'].map((name) => ask(name))
    await clock.advance(5_000)
    await Promise.all(all)
    expect(begun).toEqual([
      ['a', 0],
      ['b', 500],
      ['c', 1_000],
    ])
  })

  it('takes a moment again that was given back, and leaves no timer behind', async () => {
    const { clock, begun, ask } = paced()
    await ask('a')
    const giveBack = new AbortController()
    const waiting = [ask('b', giveBack.signal), ask('c', giveBack.signal)]
    await clock.advance(100)
    giveBack.abort()
    await Promise.all(waiting)
    expect(clock.armedCount).toBe(0)
    const later = ask('d')
    await clock.advance(1_000)
    await later
    expect(begun).toEqual([
      ['a', 0],
      ['b given back', 100],
      ['c given back', 100],
      ['d', 500],
    ])
  })

  it('gives no moment to two: what one partition gives back lies before what another still holds', async () => {
    const { clock, begun, ask } = paced()
    await ask('a')
    const giveBack = new AbortController()
    const waiting = [ask('b', giveBack.signal), ask('c'), ask('d', giveBack.signal), ask('e')]
    await clock.advance(100)
    giveBack.abort()
    await clock.advance(0)
    const later = ['f', 'g', 'h'].map((name) => ask(name))
    await clock.advance(5_000)
    await Promise.all([...waiting, ...later])
    expect(begun.filter(([name]) => !name.includes('back'))).toEqual([
      ['a', 0],
      ['f', 500],
      ['c', 1_000],
      ['g', 1_500],
      ['e', 2_000],
      ['h', 2_500],
    ])
  })

  it('makes nobody wait where there is no cap', async () => {
    const pace = new RatePace(new ManualClock())
    expect(await pace.next(undefined, AbortSignal.abort())).toBe(true)
  })
})
