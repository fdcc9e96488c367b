import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import type { Config } from '../../../../src/config/options.ts'
import { listenForCommands } from '../../../../src/control/groups/worker-socket.ts'
import { type ExplainReport, explain } from '../../../../src/control/inspect/explain.ts'
import { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../../src/control/runtime/topics.ts'
import { overrideSite } from '../../../../src/control/sites/sites.ts'
import { createDelay, createFetch } from '../../../../src/control/stages/stages.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { ServiceGroup } from '../../../../src/kernel/service-group.ts'
import type { UrlTask } from '../../../../src/message/generated/types.ts'
import { outcomeOf } from '../../../../src/message/outcome.ts'
import { newUrlTask } from '../../../../src/message/url-task.ts'
import { canonicalUrl } from '../../../../src/url/canonical-url.ts'
import { partitionFor } from '../../../../src/url/partition.ts'
import { registrableDomain } from '../../../../src/url/registrable-domain.ts'
import { eventually } from '../../../support/eventually.ts'
import { freePort } from '../../../support/free-port.ts'
import { brokers, uniqueName } from '../../../support/services.ts'

const server = createServer((request, response) => {
  const path = request.url ?? '/'
  if (path === '/robots.txt' && request.headers.host?.startsWith('broken.')) response.writeHead(500).end()
  else if (path === '/robots.txt') response.end('User-agent: *\nDisallow: /private/\nCrawl-delay: 0.06\n')
  else if (path.startsWith('/down')) response.writeHead(503).end()
  // `/held…` is never answered.
  else if (!path.startsWith('/held')) response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>here</h1>')
})
let folder: string
let runtime: Runtime
let stages: ServiceGroup
let base: string

beforeEach(async () => {
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://shop.example:${(server.address() as AddressInfo).port}`
  folder = mkdtempSync(join(tmpdir(), 'millrace-explain-'))
  const sets = [
    `brokers=${brokers().join(',')}`,
    `topics.prefix=${uniqueName('explain')}.`,
    'topics.partitions.urls=5',
    'topics.partitions.delay=2',
    'topics.partitions.deadLetters=2',
    'fetch.resolve=*.example=127.0.0.1',
    'fetch.allowAddresses=127.0.0.0/8',
    'politeness.default.ratePerSecond=20',
    'retry.maxAttempts=2',
    'retry.firstDelay=1s',
    `data=${folder}`,
  ]
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: silentObserver })
  await applyTopics(runtime)
  stages = new ServiceGroup()
})
afterEach(async () => {
  await stages.stop({ mode: 'abort', timeoutMs: 0 })
  await runtime.close()
  rmSync(folder, { recursive: true })
  server.closeAllConnections()
})

async function produce(path: string, fields: Partial<UrlTask> = {}): Promise<UrlTask> {
  const url = `${base}${path}`
  const task = newUrlTask({
    url,
    canonicalUrl: canonicalUrl(new URL(url)),
    taskId: uniqueName('t'),
    lane: 'normal',
    dedup: 'none',
    ...fields,
  })
  await (await runtime.publisher()).publish([task])
  return task
}

async function startWorkers(): Promise<void> {
  const fetch = await createFetch(runtime, '0')
  await stages.start('delay', await createDelay(runtime))
  await stages.start('fetch', fetch)
  const socket = { dataDir: runtime.dataDir, stages: ['fetch'], worker: fetch, clock: systemClock, observer: silentObserver }
  runtime.onClose('socket', await listenForCommands(socket))
}

/** The same runtime, as configured otherwise. */
function withConfig(own: Runtime, change: Partial<Config>): Runtime {
  const config = { ...own.config, ...change }
  return new Proxy(own, {
    get: (target, name) => {
      if (name === 'config') return config
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

const ask = (path: string): Promise<ExplainReport> => explain(runtime, `${base}${path}`, { userAgent: 'FooBot/1.0' })

/** The report, once its state is this. */
const until = (path: string, state: ExplainReport['state']): Promise<ExplainReport> =>
  eventually(
    async () => {
      const report = await ask(path)
      return report.state === state && report
    },
    { everyMs: 200, what: `${path} to be ${state}` },
  )

describe('explain, without a worker', () => {
  it('knows what was never seen, what waits in a lane and where, and refuses what is no URL', async () => {
    for (let index = 0; index < 5; index += 1) await produce(`/before/${index}`)
    const task = await produce('/catalogue/item-4711.html')
    expect(await ask('/never/seen/it')).toMatchObject({ state: 'unknown', waitsFor: null, waiting: [], outcomes: [], isComplete: true })
    const report = await ask('/catalogue/./item-4711.html#top')
    expect(report).toMatchObject({ state: 'waiting', waitsFor: 'fetch-worker', workers: { fetch: 0, delay: 0, answered: 0 } })
    expect(report.waiting).toMatchObject([
      { taskId: task.taskId, topic: runtime.topics.urls.normal, offset: 5n, before: 5, lane: 'normal' },
    ])
    expect(report.lines.join('\n')).toContain('no fetch worker runs')
    // The root, whose URL lies within all the others.
    await produce('/')
    expect((await ask('/')).waiting).toMatchObject([{ offset: 6n }])
    await expect(explain(runtime, 'nonsense', { userAgent: '' })).rejects.toMatchObject({ code: 'USAGE' })
  })
})

describe('explain, of a URL that ends while it looks', () => {
  it('knows of it, whatever it looks at first', async () => {
    const task = await produce('/ends/meanwhile.html')
    const { admin, topics, groups, codec } = runtime
    const { canonicalUrl: key } = task
    const value = codec.encode('Outcome', outcomeOf(task, { kind: 'FETCHED', reason: 'none', at: Date.now() }), topics.outcomes)
    const producer = await runtime.producer()
    const lane = { topic: topics.urls.normal, partition: partitionFor(registrableDomain(task.url), 5) }
    const outcomes = { topic: topics.outcomes, partition: partitionFor(key, (await admin.partitions(topics.outcomes)).length) }
    const committedOffsets = admin.committedOffsets.bind(admin)
    // As long as this takes: whatever is looked for beside it has its answers from before the end.
    const asked = vi.spyOn(admin, 'committedOffsets').mockImplementation(async (group, names) => {
      if (group === groups.fetch) {
        for (let times = 0; times < 20; times += 1) await committedOffsets(group, names)
        await producer.send([{ ...outcomes, key, value }])
        await admin.commitDirect(groups.fetch, [{ ...lane, offset: 1n, metadata: '' }])
      }
      return committedOffsets(group, names)
    })
    try {
      expect(await ask('/ends/meanwhile.html')).toMatchObject({ state: 'fetched', waiting: [] })
      expect(asked).toHaveBeenCalled()
    } finally {
      asked.mockRestore()
    }
  })
})

describe('explain, while the state store is away', () => {
  it('says so, and where the URL is all the same', async () => {
    await produce('/first/page.html')
    const config = { ...runtime.config, redis: `redis://127.0.0.1:${await freePort()}` }
    const away = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: silentObserver })
    try {
      const report = await explain(away, `${base}/first/page.html`, { userAgent: 'FooBot/1.0' })
      expect(report).toMatchObject({ state: 'waiting', waiting: [{ lane: 'normal' }], robots: null })
      expect(report.stateAway).toContain(config.redis.slice('redis://'.length))
      expect(report.lines.join('\n')).toContain('no worker asks a site until it answers')
    } finally {
      await away.close()
    }
  })
})

describe('explain, of topics with other numbers of partitions', () => {
  it('looks for what waits in a delay topic by the partitions of that topic', async () => {
    const task = newUrlTask({
      url: `${base}/put/aside.html`,
      canonicalUrl: `${base}/put/aside.html`,
      taskId: uniqueName('t'),
      lane: 'normal',
      dedup: 'none',
    })
    const key = registrableDomain(task.url)
    // Else this would show nothing.
    expect(partitionFor(key, 5)).not.toBe(partitionFor(key, 2))
    const dueAt = Date.now() + 3_600_000
    const original = { topic: runtime.topics.urls.normal, partition: 3, offset: 0n, timestamp: 0, key: null, value: null, headers: {} }
    const message = (await runtime.publisher()).delayMessage(task, { original, dueAt, reason: 'not-before' })
    await (await runtime.producer()).send([message])
    expect(await ask('/put/aside.html')).toMatchObject({ state: 'delayed', waiting: [{ taskId: task.taskId, dueAt }] })
  })
})

describe('explain, beside workers', () => {
  it('names the proxies of a site that a worker leaves out, and until when', async () => {
    const proxies = ['http://user:hush@127.0.0.1:1', 'http://127.0.0.1:2']
    // Its first try takes the one out, its second the other.
    const retry = { 'retry.maxAttempts': 5, 'retry.firstDelay': 200 }
    runtime = withConfig(runtime, { 'fetch.robots': 'ignore', 'fetch.proxies': proxies, ...retry })
    await produce('/hidden')
    await startWorkers()
    const report = await eventually(
      async () => {
        const now = await ask('/hidden')
        return (now.waitsFor === 'proxies-out' || now.waitsFor === 'due-time') && now.proxies.out.length === 2 && now
      },
      { everyMs: 100, what: 'both proxies to be out' },
    )
    expect(report.proxies.all).toEqual(['http://127.0.0.1:1', 'http://127.0.0.1:2'])
    expect(report.lines.join('\n')).toMatch(
      /process \d+ has no proxy left for shop\.example, the first is tried again in \d.*127\.0\.0\.1:\d for another \d+.*\(proxy-down\)/,
    )
    expect(JSON.stringify([report.proxies, report.lines])).not.toContain('hush')
  })

  it('finds the dead letter of a URL that was produced without a key', async () => {
    runtime = withConfig(runtime, { 'retry.maxAttempts': 1 })
    const { port } = server.address() as AddressInfo
    // It lies by the number of its partition then: another one than that of either key, or this would show nothing.
    const url = Array.from({ length: 100 }, (_, index) => `http://shop-${index}.example:${port}/down.html`).find((each) => {
      const place = partitionFor(registrableDomain(each), 5) % 2
      return place !== partitionFor(registrableDomain(each), 2) && place !== partitionFor(each, 2)
    })
    const partition = partitionFor(registrableDomain(url ?? ''), 5)
    const value = Buffer.from(JSON.stringify({ url }))
    await (await runtime.producer()).send([{ topic: runtime.topics.urls.normal, partition, key: null, value }])
    await startWorkers()
    const report = await eventually(
      async () => {
        const now = await explain(runtime, url ?? '', { userAgent: 'FooBot/1.0' })
        // Both are written at once, and looked for beside each other.
        return now.state === 'failed' && now.deadLetters.length > 0 && now
      },
      { everyMs: 100, what: 'it to be given up' },
    )
    expect(report.deadLetters).toMatchObject([{ partition: partition % 2, info: { stage: 'fetch', code: 'FETCH_FAILED' } }])
  })

  it('says so of a URL whose robots.txt can not be read', async () => {
    const url = `${base.replace('shop.', 'broken.')}/page`
    await produce('', { url, canonicalUrl: canonicalUrl(new URL(url)) })
    await startWorkers()
    const report = await eventually(
      async () => {
        const now = await explain(runtime, url, { userAgent: 'FooBot/1.0' })
        // The outcome is there a moment before its worker hears that it is, and both are searched while the store is asked for the site.
        return now.outcomes.length > 0 && now.state !== 'under-way' && now.robots !== null && now
      },
      { everyMs: 100, what: 'its first attempt to be over' },
    )
    expect(report.outcomes[0]).toMatchObject({ kind: 'RETRY', reason: 'robots-unreachable' })
    expect(report.lines.join('\n')).toMatch(
      /robots\.txt could not be read at .*: it is asked again at each attempt\n *why: .*answered with status/,
    )
  })

  it('follows a URL to its page, its dead letter, its refusal', async () => {
    await produce('/catalogue/item-1.html')
    await produce('/down/for/good.html')
    await produce('/private/place.html')
    await startWorkers()
    const fetched = await until('/catalogue/item-1.html', 'fetched')
    expect(fetched).toMatchObject({ waitsFor: null, waiting: [], outcomes: [{ kind: 'FETCHED', status: 200 }] })
    expect(fetched.page).toMatchObject({ topic: runtime.topics.html, offset: 0n, status: 200 })
    const refused = await until('/private/place.html', 'ended')
    expect(refused.robots).toMatchObject({ allowed: false, rule: 'Disallow: /private/' })
    expect(refused.site.pace.crawlDelayMs).toEqual({ value: 60, from: 'robots.txt' })
    // The file is known still; who ignores it is not slowed down by it.
    const ignoring = withConfig(runtime, { 'fetch.robots': 'ignore' })
    const ignored = await explain(ignoring, `${base}/private/place.html`, { userAgent: 'FooBot/1.0' })
    expect(ignored).toMatchObject({ robots: null, site: { pace: { crawlDelayMs: { value: 0, from: 'default' } } } })
    expect(refused.lines.join('\n')).toContain('robots.txt forbids it by `Disallow: /private/`')
    await until('/down/for/good.html', 'failed')
    // Its dead letter was written with its outcome, but is looked for beside it: by now it is there.
    const failed = await ask('/down/for/good.html')
    expect(failed.outcomes.map(({ kind, attempt }) => `${kind} ${attempt}`)).toEqual(['RETRY 1', 'FAILED 2'])
    expect(failed.deadLetters).toMatchObject([{ info: { stage: 'fetch', code: 'FETCH_FAILED' } }])
  })

  it('says what a URL waits for: its time, its site, the request before it, an operator', async () => {
    const later = Date.now() + 3_600_000
    await produce('/later/than/now.html', { notBefore: later })
    await produce('/held/first.html')
    await produce('/behind/the/first.html')
    await startWorkers()
    const underWay = await until('/held/first.html', 'under-way')
    expect(underWay.inWorkers).toMatchObject([{ state: 'turn', pid: process.pid, site: underWay.site.key }])
    // For the gap after the start of the first one it waits for the rate; from then on for its end.
    const behind = await eventually(
      async () => {
        const report = await ask('/behind/the/first.html')
        return report.waitsFor === 'concurrency' && report
      },
      { everyMs: 100, what: 'the second one to wait for the first' },
    )
    expect(behind).toMatchObject({ state: 'waiting', workers: { fetch: 1, answered: 1 } })
    const delayed = await until('/later/than/now.html', 'delayed')
    expect(delayed).toMatchObject({
      waitsFor: 'due-time',
      until: later,
      waiting: [{ reason: 'not-before', dueAt: later, notBefore: later }],
    })
    await overrideSite(runtime, 'shop.example', { paused: true })
    expect((await ask('/later/than/now.html')).waitsFor).toBe('paused')
    expect((await ask('/later/than/now.html')).lines.join('\n')).toContain('is paused (override shop.example)')
  })
})
