import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { expectInTime } from '../support/in-time.ts'
import { LinkedSite } from '../support/linked-site.ts'

/** What Kafka would wait for a member that was killed; see `consumerSettings` in src/control/runtime/runtime.ts. */
const SESSION_MS = 10_000

describe('the next run after kill -9', () => {
  it('goes on at once: it waits for no session of the one that was killed', async () => {
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
      await eventually(() => site.requests.length > 5)
      killed.child.kill('SIGKILL')
      await killed.done

      const before = site.requests.length
      const next = deployment.start(['run', '--crawl', 'c', '--verbose'])
      // The last of the dead is out, and now the groups are free.
      await eventually(() => evicted(next.stderr()).length >= 3, { what: 'the dead to be taken out' })
      const free = performance.now()
      await eventually(() => site.requests.length > before, { everyMs: 5 })
      const goingOnMs = performance.now() - free
      const result = await next.done
      expect(result.code, result.stderr).toBe(0)
      const groups = ['delay', 'fetch', 'frontier'].map((stage) => `scrape.${stage}`)
      expect(evicted(result.stderr).sort()).toEqual(groups)
      expectInTime(goingOnMs, SESSION_MS)
      expect(new Set(site.requests.map(({ path }) => path)).size).toBeGreaterThanOrEqual(40)
    } finally {
      await deployment.run(['down'])
      await deployment.close()
      await site.stop()
    }
  })
})

describe('the same line after Ctrl-C', () => {
  it('writes all records of the crawl, each once', async () => {
    const site = new LinkedSite({ hosts: 1, pagesPerHost: 30, latencyMs: () => 5 })
    await site.start()
    const deployment = await Deployment.open({
      embedded: true,
      set: ['politeness.default.ratePerSecond=10', `crawl.maxDepth=${site.depth}`],
    })
    try {
      deployment.file('page.yaml', 'name: page\nversion: 1\nfields: { title: title }\n')
      const line = ['run', ...site.seeds(), '--crawl', 'c', '--extractor', 'page.yaml', '--out', 'records.ndjson']
      const written = (): { url: string }[] => {
        const text = readFileSync(join(deployment.folder, 'records.ndjson'), 'utf8')
        return text.split('\n').flatMap((record) => (record === '' ? [] : [JSON.parse(record) as { url: string }]))
      }
      const stopped = deployment.start(line)
      await eventually(() => site.requests.length > 10)
      stopped.child.kill('SIGINT')
      expect((await stopped.done).code).toBe(130)
      const before = written().map(({ url }) => url)
      expect(before.length).toBeGreaterThan(0)
      const result = await deployment.run(line)
      expect(result.code, result.stderr).toBe(0)
      const urls = written().map(({ url }) => url)
      expect(urls.length).toBeGreaterThan(before.length)
      expect(new Set(urls).size).toBe(urls.length)
      expect(urls).toEqual(expect.arrayContaining(before))
      // Without URLs and a crawl what is queued is worked off: what was written stays.
      const rest = await deployment.run(['run', '--extractor', 'page.yaml', '--out', 'records.ndjson'])
      expect(rest.code, rest.stderr).toBe(0)
      expect(written().map(({ url }) => url)).toEqual(urls)
    } finally {
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
