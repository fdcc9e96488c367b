import { describe, expect, it } from 'vitest'
import { progressLine } from '../../../src/cli/progress.ts'
import { runProgress as progressOf } from '../../../src/cli/run-summary.ts'
import type { RunProgress } from '../../../src/control/run.ts'

const runProgress = (state: Omit<RunProgress, 'stalledBy'>) => progressOf({ stalledBy: null, ...state })

describe('the progress of a run', () => {
  it('has a bar and a rate while URLs are under way', () => {
    const { text, ratio } = runProgress({ accepted: 8, final: 2, records: 3, elapsedMs: 4000 })
    expect(text).toBe('2 of 8 URLs done, 3 records, 0.5 URLs/s')
    expect(ratio).toBe(0.25)
  })

  it.each([
    ['disk', 'fetching rests: less free disk than fetch.minFreeDisk'],
    ['state-store', 'fetching rests: no answer from the state store'],
  ] as const)('says while it lasts that fetching rests for the %s, and where a terminal still shows it', (stalledBy, reason) => {
    const progress = progressOf({ accepted: 1_000_000, final: 2, records: 3, elapsedMs: 4000, stalledBy })
    expect(progressLine(progress, String)).toBe(`2 of 1000000 URLs done, ${reason}, 3 records`)
    expect(progressLine(progress, String).slice(0, 79)).toContain(reason)
    expect(progress.fields).toMatchObject({ stalledBy })
  })

  it('says nothing of it where every URL is done', () => {
    expect(progressOf({ accepted: 5, final: 5, records: 2, elapsedMs: 10, stalledBy: 'disk' }).text).toBe('5 of 5 URLs done, 2 records')
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
