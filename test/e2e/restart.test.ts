import { describe, expect, it } from 'vitest'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { LinkedSite } from '../support/linked-site.ts'

/** What Kafka would wait for a member that was killed; see `consumerSettings` in src/control/runtime.ts. */
const SESSION_MS = 10_000

describe('the next run after kill -9', () => {
  it('goes on at once: it waits for no session of the one that was killed', { timeout: 90_000 }, async () => {
    const site = new LinkedSite({ hosts: 1, pagesPerHost: 40, latencyMs: () => 5 })
    await site.start()
    const deployment = await Deployment.open({
      embedded: true,
      set: ['politeness.default.ratePerSecond=10', `crawl.maxDepth=${site.depth}`, 'retry.firstDelay=1s'],
    })
    try {
      // The broker stays, and with it what it thinks of the members.
      expect((await deployment.run(['up'])).code).toBe(0)
      const killed = deployment.start(['run', ...site.seeds(), '--crawl', 'c'])
      await eventually(() => site.requests.length > 5, { timeoutMs: 40_000 })
      killed.child.kill('SIGKILL')
      await killed.done

      const before = site.requests.length
      const next = deployment.start(['run', '--crawl', 'c', '--verbose'])
      // The last of the dead is out, and now the groups are free.
      await eventually(() => evicted(next.stderr()).length >= 3, { timeoutMs: 30_000, what: 'the dead to be taken out' })
      const free = performance.now()
      await eventually(() => site.requests.length > before, { timeoutMs: 30_000, everyMs: 5 })
      const goingOnMs = performance.now() - free
      const result = await next.done
      expect(result.code, result.stderr).toBe(0)
      const groups = ['delay', 'fetch', 'frontier'].map((stage) => `scrape.${stage}`)
      expect(evicted(result.stderr).sort()).toEqual(groups)
      expect(goingOnMs).toBeLessThan(SESSION_MS)
      expect(new Set(site.requests.map(({ path }) => path)).size).toBeGreaterThanOrEqual(40)
    } finally {
      await deployment.run(['down'])
      await deployment.close()
      await site.stop()
    }
  })
})

/** Groups that a member was taken out of, from the log lines. */
function evicted(stderr: string): string[] {
  return stderr
    .split('\n')
    .filter((line) => line.includes('a member whose process has ended was taken out'))
    .map((line) => (JSON.parse(line) as { group: string }).group)
}
