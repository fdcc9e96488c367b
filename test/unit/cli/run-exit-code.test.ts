import { describe, expect, it } from 'vitest'
import { runExitCode } from '../../../src/cli/run-exit-code.ts'
import { NO_COUNTS } from '../../../src/control/crawls/task-ledger.ts'
import type { RunReport } from '../../../src/control/run/run-report.ts'

function report(changed: Partial<RunReport>, audit: Partial<RunReport['audit']> = {}): RunReport {
  const counts = { ...NO_COUNTS, produced: 3, outcomes: { FETCHED: 3 }, malformed: 0, extract: [], ...audit }
  const ended = {
    records: 0,
    bad: [],
    badCount: 0,
    produced: 3,
    waiting: [],
    waitingCount: 0,
    lostCount: 0,
    lostMayBeDeleted: false,
    goneCount: 0,
    interrupted: false,
    elapsedMs: 1,
  }
  return { crawlId: 'crawl', goesOn: false, audit: counts, deadLetters: {}, ...ended, ...changed }
}

describe('the exit code of a run', () => {
  it('is 0 where all is fetched, a duplicate, or was not wanted', () => {
    expect(runExitCode(report({}))).toBe(0)
    expect(runExitCode(report({}, { outcomes: { DUPLICATE: 3 } }))).toBe(0)
  })

  it.each(['max-pages', 'max-pages-per-domain', 'max-sitemaps', 'max-sitemaps-per-domain', 'out-of-scope'])(
    'is 0 where the limits of the crawl keep one out: %s',
    (reason) => expect(runExitCode(report({}, { outcomes: { FETCHED: 2, REFUSED: 1 }, reasons: { [reason]: 1 } }))).toBe(0),
  )

  it('is 3 where it was stopped, though every URL that was taken is at its end: links may be left', () => {
    expect(runExitCode(report({ interrupted: true }))).toBe(3)
  })

  it.each<[string, Partial<RunReport['audit']>]>([
    ['failed', { outcomes: { FETCHED: 2, FAILED: 1 } }],
    ['came too late', { outcomes: { FETCHED: 2, EXPIRED: 1 } }],
    ['was refused since somebody stopped the crawl', { outcomes: { FETCHED: 2, REFUSED: 1 }, reasons: { 'crawl-stopped': 1 } }],
    ['was refused', { outcomes: { FETCHED: 2, REFUSED: 1 }, reasons: { 'robots-disallowed': 1 } }],
    // A broker or a state store that lost data, tasks that came after the end, a drain that was cut short.
    ['is not at its end, though the run waited for nothing', { outcomes: { FETCHED: 2 }, inFlight: 1 }],
    ['is unaccounted for', { outcomes: { FETCHED: 2 }, difference: 1 }],
  ])('is 3 where one %s', (_, audit) => {
    expect(runExitCode(report({}, audit))).toBe(3)
  })

  it('is of this run alone where what was queued was worked off, though its ledger is that of the whole log', () => {
    const former = { outcomes: { FETCHED: 2, FAILED: 1 }, reasons: { 'robots-disallowed': 1 } }
    const nothing = { outcomes: {}, reasons: {} }
    expect(runExitCode(report({ crawlId: undefined, endedNow: nothing }, former))).toBe(0)
    expect(runExitCode(report({ crawlId: undefined, endedNow: { ...nothing, outcomes: { FAILED: 1 } } }, former))).toBe(3)
    expect(runExitCode(report({ crawlId: undefined, endedNow: nothing }, { ...former, inFlight: 1 }))).toBe(3)
  })

  it('is 3 where a message of the crawl is lost, which its ledger can not tell', () => {
    expect(runExitCode(report({ lostCount: 1 }))).toBe(3)
    expect(runExitCode(report({ lostCount: 1, lostMayBeDeleted: true }))).toBe(3)
    expect(runExitCode(report({ goneCount: 1 }))).toBe(3)
  })

  it('is 3 where one is due too late or a seed was bad, and 1 where no seed was good', () => {
    expect(runExitCode(report({ waitingCount: 1 }))).toBe(3)
    expect(runExitCode(report({ badCount: 1 }))).toBe(3)
    expect(runExitCode(report({ badCount: 1, produced: 0 }))).toBe(1)
  })
})
