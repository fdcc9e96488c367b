import { describe, expect, it } from 'vitest'
import { groupRates } from '../../../src/cli/ledger-session.ts'
import type { StatusReport } from '../../../src/control/inspect/status-report.ts'

function report(at: number, committed: readonly (string | null)[]): StatusReport {
  const groups = committed.map((offset, partition) => ({
    group: 'g',
    topic: 't',
    partition,
    committed: offset,
    end: '9',
    lag: 0,
    lagSeconds: null,
    runnable: null,
  }))
  const empty = {
    summary: [],
    workers: [],
    fetch: null,
    pausedSites: [],
    stoppedCrawls: [],
    isStateUp: true,
    isControlUp: true,
    stalls: [],
    extractors: [],
  }
  return { clusterId: 'c', at, groups, ...empty }
}

describe('rates of a group', () => {
  it.each([
    ['are what was committed a second, over all partitions', report(0, ['10', '0']), report(2_000, ['20', '6']), 8],
    ['are nothing at the first commit, which may stand in the middle of a long log', report(0, [null]), report(1_000, ['4000000']), 0],
    ['are nothing of a partition that was not there before', report(0, ['1']), report(1_000, ['5', '4000000']), 4],
    ['are nothing where an offset was set back', report(0, ['10']), report(1_000, ['3']), 0],
    ['are nothing where nothing is committed', report(0, [null]), report(1_000, [null]), 0],
  ])('%s', (_, before, now, rate) => {
    expect(groupRates(before, now).get('g')).toBe(rate)
  })

  it('are not known of one moment', () => {
    expect(groupRates(report(5, ['1']), report(5, ['9'])).size).toBe(0)
  })
})
