import { describe, expect, it } from 'vitest'
import { faultSeed } from '../support/fault-run.ts'
import { rollingRun } from '../support/rolling-run.ts'
import { redisUrl } from '../support/services.ts'

/**
 * Three fetch workers under load, restarted one after the other. MILLRACE_TEST_SEED=n begins with that seed, MILLRACE_TEST_RUNS=n takes
 * n of them; 1 where not given.
 */
const first = faultSeed()
const seeds = Array.from({ length: Number(process.env.MILLRACE_TEST_RUNS ?? 1) }, (_, index) => first + index)
const cases = seeds.flatMap((seed) =>
  (['redis', 'lmdb'] as const).flatMap((state) => (['SIGTERM', 'SIGKILL'] as const).map((by) => ({ seed, state, by }))),
)

describe('three fetch workers that are restarted one after the other under load', () => {
  it.each(cases)('lose nothing and keep the pace of each site: $by, state in $state, seed $seed', { timeout: 600_000 }, async (given) => {
    const { seed, state, by } = given
    const redis = state === 'redis' ? redisUrl() : undefined
    const report = await rollingRun({
      seed,
      by,
      redis,
      hosts: 12,
      pagesPerHost: 60,
      workers: 3,
      restarts: by === 'SIGTERM' ? 6 : 3,
      timeoutMs: 300_000,
    })
    process.stdout.write(`${by}, ${state}: ${JSON.stringify(report)}\n`)
    expect(report.violations, JSON.stringify(report, undefined, 2)).toEqual([])
    // Else nobody had to know what another one was told.
    expect(report.ownersOfBusy).toBeGreaterThan(1)
  })
})
