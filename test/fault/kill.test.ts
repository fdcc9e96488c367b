import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { faultSeed } from '../support/fault-run.ts'
import { type KillRunOptions, killRun } from '../support/kill-run.ts'
import { findRedisServer, OwnRedis } from '../support/own-redis.ts'

/**
 * A crawl of some hundred pages with 6 to 10 kills -9, many times over. MILLRACE_TEST_SEED=n begins with that seed (else with one by
 * chance, which is printed), MILLRACE_TEST_RUNS=n takes n of them; 20 where not given.
 */
const first = faultSeed()
const runs = Number(process.env.MILLRACE_TEST_RUNS ?? 20)
const seeds = Array.from({ length: runs }, (_, index) => first + index)

const WISHES = { crawlDelayMs: 1_000, slowPages: 20, retryAfterMs: 4_000, busyPages: 40 }

async function holds(options: Pick<KillRunOptions, 'seed' | 'processes' | 'commands' | 'redis' | 'kills'>): Promise<void> {
  const report = await killRun({ ...options, hosts: 4, pagesPerHost: 100, wishes: WISHES, timeoutMs: 420_000 })
  const { figures, kills, fullSpeedAfterMs, seconds, gaveUp, commands } = report
  const struck = kills.map((kill, index) => `${kill} (full speed after ${fullSpeedAfterMs[index] ?? '-'} ms)`)
  process.stdout.write(
    `seed ${options.seed} (${options.processes}, ${commands} commands, ${seconds} s): ${JSON.stringify(figures)}; ${struck.join(', ')}; gave up: ${gaveUp.join('; ') || 'none'}\n`,
  )
  expect(report.violations, JSON.stringify(report, undefined, 2)).toEqual([])
}

const isLinux = process.platform === 'linux'

describe.skipIf(!isLinux)('a crawl whose processes are killed -9, counted from outside', () => {
  it.each(seeds)('holds with seed %i', { timeout: 480_000 }, async (seed) => {
    await holds({ seed, processes: seed % 3 === 2 ? 'stages' : 'run', commands: seed % 2 === 1, kills: 6 + (seed % 5) })
  })
})

const hasRedis = findRedisServer()
const inRedis = `the same with the state in Redis${hasRedis ? '' : ' (skipped: needs redis-server on the PATH)'}`

describe.skipIf(!isLinux || !hasRedis)(inRedis, () => {
  let redis: OwnRedis
  beforeEach(async () => {
    redis = await OwnRedis.start()
  })
  afterEach(() => redis.end())

  it('holds', { timeout: 480_000 }, async () => {
    await holds({ seed: first, processes: 'stages', redis: redis.url, kills: 6 })
  })
})
