import { describe, expect, it } from 'vitest'
import { runProgress } from '../../../src/cli/run-summary.ts'

describe('the progress of a run', () => {
  it('has a bar and a rate while URLs are under way', () => {
    const { text, ratio } = runProgress({ accepted: 8, final: 2, records: 3, elapsedMs: 4000 })
    expect(text).toBe('2 of 8 URLs done, 3 records, 0.5 URLs/s')
    expect(ratio).toBe(0.25)
  })

  it('says what is waited for where every URL is done, and shows no bar that is full', () => {
    const done = { accepted: 5, final: 5, records: 2, elapsedMs: 60_000 }
    const behind = runProgress({ ...done, unread: { extract: 3, frontier: 1, isReplaying: false } })
    expect(behind.text).toBe('5 of 5 URLs done, 3 pages wait for extraction, links of 1 page not followed yet, 2 records')
    expect(behind.ratio).toBeUndefined()
    expect(behind.fields).toMatchObject({ unread: { extract: 3 } })
    const replaying = runProgress({ ...done, unread: { extract: 0, frontier: 0, isReplaying: true } })
    expect(replaying.text).toBe('5 of 5 URLs done, a replay in place has work left, 2 records')
  })

  it('shows no bar before the first URL is taken', () => {
    expect(runProgress({ accepted: 0, final: 0, records: 0, elapsedMs: 10 }).ratio).toBeUndefined()
  })
})
