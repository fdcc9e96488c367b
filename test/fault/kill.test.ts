import { describe, expect, it } from 'vitest'
import { killRun } from '../support/kill-run.ts'

/**
 * A crawl of some hundred pages with 6 to 10 kills -9, many times over. MILLRACE_TEST_SEED=n begins with that seed (else with one by
 * chance, which is printed), MILLRACE_TEST_RUNS=n takes n of them; 20 where not given.
 */
const first = Number(process.env.MILLRACE_TEST_SEED ?? Math.floor(Math.random() * 1_000_000))
const runs = Number(process.env.MILLRACE_TEST_RUNS ?? 20)
const seeds = Array.from({ length: runs }, (_, index) => first + index)

describe.skipIf(process.platform !== 'linux')('a crawl whose processes are killed -9, counted from outside', () => {
  it.each(seeds)('holds with seed %i', { timeout: 300_000 }, async (seed) => {
    const processes = seed % 3 === 2 ? 'stages' : 'run'
    const commands = seed % 2 === 1
    const report = await killRun({ seed, processes, commands, hosts: 4, pagesPerHost: 100, kills: 6 + (seed % 5), timeoutMs: 240_000 })
    const { figures, kills, seconds, gaveUp } = report
    process.stdout.write(
      `seed ${seed} (${processes}, ${report.commands} commands, ${seconds} s): ${JSON.stringify(figures)}; ${kills.join(', ')}; gave up: ${gaveUp.join('; ') || 'none'}\n`,
    )
    expect(report.violations, JSON.stringify(report, undefined, 2)).toEqual([])
  })
})
