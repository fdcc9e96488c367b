import { describe, expect, it } from 'vitest'
import { createProgress, type ProgressOptions, progressLine } from '../../../src/cli/progress.ts'
import { durationText } from '../../../src/kernel/duration-text.ts'
import { ManualClock } from '../../support/manual-clock.ts'

function progress(style: ProgressOptions['style'], columns = 80) {
  const written: string[] = []
  const clock = new ManualClock()
  const write = (text: string): void => void written.push(text)
  return { written, clock, progress: createProgress({ write, style, clock, columns: () => columns, duration: durationText }) }
}

const state = (done: number) => ({ text: `${done} fetched`, fields: { done } })

describe('progress', () => {
  it('draws one line over itself on a terminal, ten times a second at most, and removes it at the end', async () => {
    const { written, clock, progress: shown } = progress('line')
    shown.update(state(1))
    shown.update(state(2))
    await clock.advance(100)
    shown.update(state(3))
    shown.finish()
    shown.finish()
    expect(written).toEqual(['\r\x1b[2K1 fetched', '\r\x1b[2K3 fetched', '\r\x1b[2K'])
  })

  it('never writes past the width of the terminal, where the line could not be removed', () => {
    const { written, progress: shown } = progress('line', 30)
    shown.update({ text: '🚀'.repeat(100), fields: {} })
    expect([...(written[0] ?? '').replace('\r\x1b[2K', '')]).toHaveLength(29)
  })

  it('writes a line every five seconds elsewhere, and none for what takes no longer', async () => {
    const { written, clock, progress: shown } = progress('log')
    for (let second = 0; second <= 10; second += 1) {
      shown.update(state(second))
      await clock.advance(1000)
    }
    shown.finish()
    expect(written).toEqual(['5 fetched\n', '10 fetched\n'])
  })

  it('writes at once what is of another phase', () => {
    const { written, progress: shown } = progress('log')
    shown.update(state(1))
    shown.update({ ...state(2), phase: 'counting' })
    shown.update({ ...state(3), phase: 'counting' })
    expect(written).toEqual(['2 fetched\n'])
  })

  it('gives documents for --json, and nothing for --quiet', () => {
    const json = progress('json')
    json.progress.update(state(7))
    json.progress.finish()
    expect(json.written).toEqual(['{"progress":{"done":7}}\n'])
    const none = progress('none')
    none.progress.update(state(7))
    none.progress.finish()
    expect(none.written).toEqual([])
  })

  it('shows a bar where the end is known, never more than whole, and the time that is left', () => {
    expect(progressLine({ text: 'x', ratio: 0.5, remainingMs: 95_000, fields: {} }, durationText)).toBe(
      '[##########..........] 50%  x  about 1m 35s left',
    )
    expect(progressLine({ text: 'x', ratio: 1.7, fields: {} }, durationText)).toBe('[####################] 100%  x')
    expect(progressLine({ text: 'x', ratio: -1, fields: {} }, durationText)).toBe('[....................] 0%  x')
    expect(progressLine({ text: 'x', fields: {} }, durationText)).toBe('x')
  })
})
