import { describe, expect, it } from 'vitest'
import { faultSeed } from '../support/fault-run.ts'
import { killRun } from '../support/kill-run.ts'

/** The short form of test/fault/kill.test.ts: the same, with one seed and a smaller site. */
describe.skipIf(process.platform !== 'linux')('kill -9 in the middle of a crawl', () => {
  it('loses nothing and gives every record once', async () => {
    const wishes = { crawlDelayMs: 1_000, slowPages: 6, retryAfterMs: 4_000, busyPages: 12 }
    const report = await killRun({ seed: faultSeed(), processes: 'run', hosts: 3, pagesPerHost: 30, wishes, kills: 2, timeoutMs: 180_000 })
    expect(report.violations, JSON.stringify(report, undefined, 2)).toEqual([])
    expect(report.figures).toMatchObject({ urls: 108 })
  })
})
