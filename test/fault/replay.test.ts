import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { faultSeed } from '../support/fault-run.ts'
import { fillDisk } from '../support/full-disk.ts'
import { type ReplayMode, ReplayRun, type ReplayRunReport } from '../support/replay-run.ts'

/**
 * Replays of a live group with pages that flow, under faults; each page of the range gives one record to each replay and one to live work.
 * MILLRACE_TEST_SEED=n begins with that seed (else with one by chance, which is printed), MILLRACE_TEST_RUNS=n takes n of them; 1 where
 * not given.
 */
const first = faultSeed()
const seeds = Array.from({ length: Number(process.env.MILLRACE_TEST_RUNS ?? 1) }, (_, index) => first + index)
const cases = seeds.flatMap((seed) => (['in place', 'shadow'] as const).map((mode) => ({ seed, mode })))

let run: ReplayRun | undefined

afterEach(async () => {
  await run?.close()
  run = undefined
})

/** Seconds that live pages wait beside it, in the median and at most; the replay takes half a minute. */
const calm = seeds.flatMap((seed) => [
  { seed, mode: 'in place' as const, pages: 750, rate: 25, median: 6, most: 15 },
  { seed, mode: 'shadow' as const, pages: 750, rate: 25, median: 2, most: 8 },
])

describe('a replay that nothing disturbs', () => {
  it.each(calm)(
    'leaves live pages a short wait: $mode, $pages pages at a rate of $rate, seed $seed',
    { timeout: 300_000 },
    async (given) => {
      const { seed, mode, pages, rate, median, most } = given
      const replay = await open({ seed, mode, pages })
      await replay.replayed('first', async () => undefined, { rate })
      const report = await replay.report()
      told(replay, given, report)
      const { liveLag } = report.figures
      expect(liveLag.median).toBeLessThan(median)
      expect(liveLag.most).toBeLessThan(most)
    },
  )
})

describe.skipIf(process.platform !== 'linux')('a replay while processes are killed -9', () => {
  it.each(cases)('gives each page once: $mode, seed $seed', { timeout: 300_000 }, async ({ seed, mode }) => {
    const replay = await open({ seed, mode, pages: 500 })
    const strikes = 5 + (seed % 4)
    await replay.replayed(
      'first',
      async () => {
        for (let strike = 0; strike < strikes; strike += 1) {
          await replay.pause(replay.random.between(100, 3_000))
          const victim = replay.random.pick({ worker: 4, replay: 4, extraction: 2 })
          if (victim === 'worker') await replay.killWorker()
          else if (victim === 'extraction') replay.killExtraction()
          else {
            await replay.killReplay()
            await replay.pause(replay.random.next() < 0.5 ? 0 : replay.random.between(200, 2_000))
            replay.startReplay('first', { rate: 25 })
          }
        }
      },
      { rate: 25 },
    )
    // The same group again, another part, and one more kill.
    await replay.replayed(
      'second',
      async () => {
        await replay.pause(replay.random.between(1_000, 4_000))
        await replay.killWorker()
      },
      { domain: 'odd.shop-books.com', rate: 60 },
    )
    told(replay, { seed, mode }, await replay.report())
  })
})

describe('a replay while members of the group come and go', () => {
  it.each(cases)('gives each page once: $mode, seed $seed', { timeout: 300_000 }, async ({ seed, mode }) => {
    const replay = await open({ seed, mode, pages: 500 })
    await replay.replayed(
      'first',
      async () => {
        for (let change = 0; change < 6; change += 1) {
          await replay.pause(replay.random.between(100, 2_500))
          if (replay.workers.length < 2 || (replay.workers.length < 4 && replay.random.next() < 0.5)) {
            replay.strike('join')
            replay.startWorker()
          } else {
            replay.strike('leave')
            await replay.endWorker()
          }
          // A second process under the same id is one more member of a shadow's group.
          if (mode === 'shadow' && change === 2) replay.startReplay('first', { rate: 25 })
        }
      },
      { rate: 25 },
    )
    told(replay, { seed, mode }, await replay.report())
  })
})

describe('a replay while partitions of html are added', () => {
  it.each(cases)('gives each page once: $mode, seed $seed', { timeout: 300_000 }, async ({ seed, mode }) => {
    const replay = await open({ seed, mode, pages: 500 })
    await replay.replayed(
      'first',
      async () => {
        await replay.pause(replay.random.between(1_000, 6_000))
        replay.strike('partitions 4 to 8')
        const { code, stderr } = await replay.deployment.run(['topics', 'apply'], undefined, ['topics.partitions.html=8'])
        expect(code, stderr).toBe(0)
      },
      { rate: 25 },
    )
    // Pages of the added partitions are in the range of the next one.
    await replay.replayed('second', () => replay.pause(2_000), { rate: 60 })
    told(replay, { seed, mode }, await replay.report())
  })
})

const isRoot = process.getuid?.() === 0 && process.platform === 'linux'
const title = `a replay while the disk of the broker is full${isRoot ? '' : ' (skipped: only root can mount a small disk for it, on Linux)'}`

describe.skipIf(!isRoot)(title, () => {
  let disk: string | undefined

  afterEach(async () => {
    await run?.close({ keepFolder: true })
    if (disk !== undefined) spawnSync('umount', ['--lazy', disk])
    if (run !== undefined) rmSync(run.deployment.folder, { recursive: true, force: true })
    run = undefined
    disk = undefined
  })

  it.each(cases)('gives each page once: $mode, seed $seed', { timeout: 300_000 }, async ({ seed, mode }) => {
    const replay = await open({ seed, mode, pages: 500 }, (dataDir) => {
      mkdirSync(dataDir)
      const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=400m', 'tmpfs', dataDir], { encoding: 'utf8' })
      expect(mounted.stderr).toBe('')
      disk = dataDir
    })
    await replay.replayed(
      'first',
      async () => {
        await replay.pause(replay.random.between(2_000, 8_000))
        const filler = join(replay.deployment.dataDir, 'something-else')
        fillDisk(replay.deployment.dataDir, filler, 0)
        replay.strike('disk full')
        await replay.pause(replay.random.between(4_000, 12_000))
        rmSync(filler)
        replay.strike('disk free')
      },
      { rate: 25 },
    )
    told(replay, { seed, mode }, await replay.report())
  })
})

async function open(options: { seed: number; mode: ReplayMode; pages: number }, prepare?: (dataDir: string) => void): Promise<ReplayRun> {
  run = await ReplayRun.open({ ...options, timeoutMs: 150_000 }, prepare)
  return run
}

function told({ struck }: ReplayRun, { seed, mode }: { seed: number; mode: ReplayMode }, report: ReplayRunReport): void {
  const { figures, gaveUp, seconds, violations } = report
  process.stdout.write(
    `seed ${seed}, ${mode}, ${seconds} s: ${JSON.stringify(figures)}; ${struck.join(', ')}; gave up: ${gaveUp.join('; ') || 'none'}\n`,
  )
  expect(violations, JSON.stringify({ struck, ...report }, undefined, 2)).toEqual([])
}
