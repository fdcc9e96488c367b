import { describe, expect, it } from 'vitest'
import { killRun } from '../support/kill-run.ts'

/** The short form of test/fault/kill.test.ts: the same, with one seed and a smaller site. */
describe.skipIf(process.platform !== 'linux')('kill -9 in the middle of a crawl', () => {
  it('loses nothing and gives every record once', { timeout: 90_000 }, async () => {
    const seed = Number(process.env.MILLRACE_TEST_SEED ?? Math.floor(Math.random() * 1_000_000))
    process.stderr.write(`kill test, seed ${seed} (MILLRACE_TEST_SEED=${seed} does the same again)\n`)
    const report = await killRun({ seed, processes: 'run', hosts: 3, pagesPerHost: 30, kills: 2, timeoutMs: 80_000 })
    expect(report.violations, JSON.stringify(report, undefined, 2)).toEqual([])
    expect(report.figures).toMatchObject({ urls: 90 })
  })
})
