import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { faultSeed, WISHES, withoutDetails } from '../support/fault-run.ts'
import { fillDisk } from '../support/full-disk.ts'
import { linkedExtractors, linkedSettings } from '../support/linked-crawl.ts'
import { LinkedSite } from '../support/linked-site.ts'
import { countFromOutside } from '../support/oracle.ts'
import { SeededRandom } from '../support/random.ts'
import { msUntilQuiet, msUntilSpeed, speed } from '../support/site-log.ts'

const isRoot = process.getuid?.() === 0 && process.platform === 'linux'
const title = `a disk that runs full under a crawl${isRoot ? '' : ' (skipped: only root can mount a small disk for it, on Linux)'}`
const RATE_PER_SECOND = 4
const CONCURRENCY = 2

/** `run` with its own broker, all of it in a data folder on a small disk that something else fills. */
describe.skipIf(!isRoot)(title, () => {
  let deployment: Deployment | undefined
  let site: LinkedSite | undefined

  afterEach(async () => {
    const disk = deployment?.dataDir
    await deployment?.close({ keepFolder: true })
    if (disk !== undefined) spawnSync('umount', ['--lazy', disk])
    if (deployment !== undefined) rmSync(deployment.folder, { recursive: true, force: true })
    await site?.stop()
  })

  const fillings = [
    { what: 'below fetch.minFreeDisk', leaveBytes: 60 * 1024 * 1024 },
    { what: 'to the last byte', leaveBytes: 0 },
  ]

  it.each(fillings)('pauses fetching, goes on by itself and loses nothing: $what', { timeout: 180_000 }, async ({ what, leaveBytes }) => {
    const seed = faultSeed()
    const random = new SeededRandom(seed)
    const latencyMs = (): number => Math.round(random.between(2, 90))
    const pages = new LinkedSite({ hosts: 4, pagesPerHost: 50, wishes: WISHES, latencyMs })
    site = pages
    await pages.start()
    deployment = await Deployment.open({
      embedded: true,
      set: ['fetch.minFreeDisk=100MiB', ...linkedSettings(pages, { ratePerSecond: RATE_PER_SECOND, concurrency: CONCURRENCY })],
    })
    mkdirSync(deployment.dataDir)
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=400m', 'tmpfs', deployment.dataDir], { encoding: 'utf8' })
    expect(mounted.stderr).toBe('')
    deployment.file('seeds.txt', pages.seeds().join('\n'))
    const extractors = linkedExtractors(deployment)
    const run = deployment.start(['run', '--verbose', '--crawl', 'full-disk', '--seeds', 'seeds.txt', ...extractors])
    const whileItRuns = async (check: () => boolean, timeoutMs: number, label: string): Promise<void> => {
      await eventually(() => run.child.exitCode !== null || check(), { timeoutMs, what: label })
      if (!check()) throw new Error(`run ended with ${run.child.exitCode}:\n${withoutDetails(run.stderr()).slice(-3_000)}`)
    }
    await whileItRuns(() => pages.requests.length > 60, 60_000, '60 requests')

    const at = performance.now()
    const speedBefore = speed(pages.requests, at - 2_000, at)
    const filler = join(deployment.dataDir, 'something-else')
    fillDisk(deployment.dataDir, filler, leaveBytes)
    await whileItRuns(() => run.stderr().includes('"DiskLow"'), 15_000, 'a word on the disk')
    const until = performance.now() + 12_000
    await whileItRuns(() => performance.now() > until, 15_000, '12 s with a full disk')
    const quietAfterMs = Math.round(msUntilQuiet(pages.requests, at, performance.now()))

    rmSync(filler)
    const healedAt = performance.now()
    const again = (): number | undefined => msUntilSpeed(pages.requests, healedAt, 0.7 * speedBefore)
    await whileItRuns(() => again() !== undefined, 60_000, 'full speed again')
    await eventually(() => run.child.exitCode !== null, { timeoutMs: 60_000, what: 'the end of the run' }).catch((error: unknown) => {
      throw new Error(withoutDetails(run.stderr()).slice(-3_000), { cause: error })
    })
    const result = await run.done
    expect(result.code, withoutDetails(result.stderr).slice(-3_000)).toBe(0)
    const kill = { at, what, brokerDownSince: at, losesRequests: false, until: healedAt }
    const report = await countFromOutside({
      deployment,
      site: pages,
      crawlId: 'full-disk',
      kills: [kill],
      ratePerSecond: RATE_PER_SECOND,
      concurrency: CONCURRENCY,
    })
    process.stdout.write(
      `seed ${seed}, disk full ${what}: ${JSON.stringify({ quietAfterMs, fullSpeedAfterMs: Math.round(again() ?? 0), ...report.figures })}\n`,
    )
    expect(report.violations).toEqual([])
    // It is looked at every five seconds.
    expect(quietAfterMs).toBeLessThan(7_000)
  })
})
