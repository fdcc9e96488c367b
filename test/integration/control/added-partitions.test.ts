import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { audit } from '../../../src/control/crawls/audit.ts'
import { type ExplainReport, explain } from '../../../src/control/inspect/explain.ts'
import { lineage } from '../../../src/control/inspect/lineage.ts'
import { Runtime } from '../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../src/control/runtime/topics.ts'
import { createFetch } from '../../../src/control/stages/stages.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { ServiceGroup } from '../../../src/kernel/service-group.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'
import { partitionFor } from '../../../src/url/partition.ts'
import { registrableDomain } from '../../../src/url/registrable-domain.ts'
import { eventually } from '../../support/eventually.ts'
import { brokers, uniqueName } from '../../support/services.ts'

const [BEFORE, AFTER] = [2, 5]
const sites = Array.from({ length: 10 }, (_, index) => `shop-${index}.example`)
const server = createServer((request, response) => {
  if (request.url === '/robots.txt') response.writeHead(404).end()
  else if (request.url === '/down.html') response.writeHead(503).end()
  else response.writeHead(200, { 'content-type': 'text/html' }).end(`<h1>${request.headers.host ?? ''}</h1>`)
})
let folder: string
let prefix: string
let port: number
let runtime: Runtime

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-added-'))
  prefix = `${uniqueName('added')}.`
})
afterEach(async () => {
  await runtime.close()
  rmSync(folder, { recursive: true })
})
afterAll(() => {
  server.close()
})

/** The deployment with so many partitions of each topic. */
async function open(count: number): Promise<void> {
  const sets = [
    `brokers=${brokers().join(',')}`,
    `topics.prefix=${prefix}`,
    `topics.partitions.urls=${count}`,
    `topics.partitions.deadLetters=${count}`,
    'fetch.resolve=*.example=127.0.0.1',
    'fetch.allowAddresses=127.0.0.0/8',
    'politeness.default.ratePerSecond=200',
    'retry.maxAttempts=1',
    `data=${folder}`,
  ]
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: silentObserver })
  await applyTopics(runtime)
}

const urlOf = (site: string, path: string): string => `http://${site}:${port}${path}`

async function produce(path: string, round = 0): Promise<void> {
  const tasks = sites.map((site) => {
    const url = urlOf(site, path)
    return newUrlTask({ url, canonicalUrl: url, taskId: uniqueName('t'), lane: 'normal', dedup: 'none', round })
  })
  await (await runtime.publisher()).publish(tasks)
}

/** Fetches all that waits. */
async function fetchAll(): Promise<void> {
  const stages = new ServiceGroup()
  await stages.start('fetch', await createFetch(runtime, '0'))
  const { admin, groups, topics } = runtime
  await eventually(async () => (await admin.lag(groups.fetch, Object.values(topics.urls))).every(({ lag }) => lag === 0n), {
    what: 'all URLs to be done',
    everyMs: 100,
  })
  await stages.stop({ mode: 'drain', timeoutMs: 10_000 })
}

const ask = (site: string, path: string): Promise<ExplainReport> => explain(runtime, urlOf(site, path), { userAgent: 'FooBot/1.0' })

it('what was written before partitions were added is found beside what came after', async () => {
  await open(BEFORE)
  await produce('/page.html')
  await produce('/down.html')
  await produce('/once.html')
  await fetchAll()
  await produce('/waiting.html')
  await runtime.close()
  await open(AFTER)
  const moved = (key: string): boolean => partitionFor(key, BEFORE) !== partitionFor(key, AFTER)
  // Else this would show nothing.
  expect(sites.filter((site) => moved(registrableDomain(urlOf(site, '/'))) && moved(urlOf(site, '/page.html'))).length).toBeGreaterThan(1)

  for (const site of sites) {
    const page = await ask(site, '/page.html')
    expect(page, site).toMatchObject({ state: 'fetched', outcomes: [{ kind: 'FETCHED' }], isComplete: true })
    expect(page.page, site).toMatchObject({ topic: runtime.topics.html, partition: partitionFor(page.canonicalUrl, BEFORE) })
    const down = await ask(site, '/down.html')
    expect(down, site).toMatchObject({ state: 'failed', outcomes: [{ kind: 'FAILED' }] })
    expect(down.deadLetters, site).toMatchObject([{ info: { stage: 'fetch' } }])
    const waiting = await ask(site, '/waiting.html')
    expect(waiting, site).toMatchObject({ state: 'waiting', waiting: [{ partition: partitionFor(waiting.domain, BEFORE) }] })
    const led = await lineage(runtime, urlOf(site, '/page.html'))
    expect(led.page?.at, site).toMatchObject({ partition: page.page?.partition, offset: page.page?.offset })
    expect(led.task?.task, site).toMatchObject({ url: urlOf(site, '/page.html') })
    expect(led.outcomes, site).toMatchObject([{ outcome: { kind: 'FETCHED' } }])
  }

  // Once more: what came last is told last, wherever it lies.
  await produce('/page.html', 1)
  await fetchAll()
  for (const site of sites) {
    const page = await ask(site, '/page.html')
    expect(
      page.outcomes.map(({ kind }) => kind),
      site,
    ).toEqual(['FETCHED', 'FETCHED'])
    expect(page.outcomes[0]?.at, site).toBeLessThan(page.outcomes[1]?.at ?? 0)
    expect(page.page, site).toMatchObject({ partition: partitionFor(page.canonicalUrl, AFTER) })
    const led = await lineage(runtime, urlOf(site, '/page.html'))
    expect(led.page?.at, site).toMatchObject({ partition: page.page?.partition, offset: page.page?.offset })
  }
  expect(await audit(runtime)).toMatchObject({ produced: 50, difference: 0, beforeHorizon: 0 })

  // A page that retention has deleted leaves its task, and its outcome where it lies.
  const { admin, topics } = runtime
  await admin.deleteRecordsBefore(topics.html, await admin.endOffsets(topics.html, 'read_committed'))
  for (const site of sites) {
    const led = await lineage(runtime, urlOf(site, '/once.html'))
    expect(led, site).toMatchObject({ page: null, task: { task: { attempt: 1 } }, outcomes: [{ outcome: { kind: 'FETCHED' } }] })
  }

  // So it has the outcomes of before: a task may have had its own in two partitions, and is not missing.
  const ends = await admin.endOffsets(topics.outcomes, 'read_committed')
  await admin.deleteRecordsBefore(topics.outcomes, new Map([...ends].filter(([partition]) => partition < BEFORE)))
  expect(await audit(runtime)).toMatchObject({ difference: 0, missing: [] })
})

it('what another tool has put into partitions of its own is found, and where it was written', async () => {
  await open(BEFORE)
  // Kafka's tool adds partitions that no layout tells of; producers of its kind go by them at once, or by no key at all.
  const { admin, topics } = runtime
  for (const topic of Object.values(topics.urls)) await admin.addPartitions(topic, AFTER)
  const [site = ''] = sites
  const url = urlOf(site, '/foreign.html')
  const own = partitionFor(registrableDomain(url), BEFORE)
  const partition = (own + 3) % AFTER
  await (await runtime.producer()).send([{ topic: topics.urls.normal, partition, key: null, value: Buffer.from(JSON.stringify({ url })) }])
  expect(await ask(site, '/foreign.html')).toMatchObject({ state: 'waiting', waiting: [{ partition, offset: 0n }], isComplete: true })
  expect(await ask(site, '/never.html')).toMatchObject({ state: 'unknown', isComplete: true })
  await fetchAll()
  expect(await ask(site, '/foreign.html')).toMatchObject({ state: 'fetched' })
  const { task } = await lineage(runtime, url)
  expect(task).toMatchObject({ at: { topic: topics.urls.normal, partition, offset: 0n }, task: { url } })
})
