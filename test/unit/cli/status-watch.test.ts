import { describe, expect, it } from 'vitest'
import { looks } from '../../../src/cli/ledger-session.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const away = new MillraceError('KAFKA_UNREACHABLE', 'no broker answers')

describe('a watch', () => {
  it('goes on through looks that find the brokers away, and says so', async () => {
    const clock = new ManualClock()
    const told: string[] = []
    const answers = [away, away, 'seen']
    const look = async (): Promise<string> => {
      const answer = answers.shift()
      if (answer instanceof Error) throw answer
      return String(answer)
    }
    const next = looks(look, { clock, signal: new AbortController().signal, onAway: (reason) => void told.push(reason) }).next()
    await clock.advance(4_000)
    expect(await next).toEqual({ done: false, value: 'seen' })
    expect(told).toEqual(['no broker answers', 'no broker answers'])
  })

  it('ends with a defect, and a single look with whatever fails', async () => {
    const [clock, signal] = [new ManualClock(), new AbortController().signal]
    const failing = (error: Error) => () => Promise.reject(error)
    await expect(looks(failing(new TypeError('a defect')), { clock, signal, onAway: () => undefined }).next()).rejects.toThrow('a defect')
    await expect(looks(failing(away), { clock, signal }).next()).rejects.toBe(away)
  })

  it('ends at a signal in the middle of a look', async () => {
    const stop = new AbortController()
    const next = looks(() => new Promise(() => undefined), {
      clock: new ManualClock(),
      signal: stop.signal,
      onAway: () => undefined,
    }).next()
    stop.abort(new Error('stopped'))
    await expect(next).rejects.toThrow('stopped')
  })
})
