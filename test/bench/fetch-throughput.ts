import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Page } from '../../src/message/generated/types.ts'
import { unpackPageBody } from '../../src/message/page-body.ts'
import { uniqueName } from '../support/services.ts'
import type { BareLoopOptions } from './bare-loop-main.ts'
import { benchPages, pageIndex } from './bench-pages.ts'
import { BenchSite, hostNames } from './bench-site.ts'
import { type BenchBroker, FetchDeployment, type LoopDelay, loopProbe, takeLoopDelay, until } from './fetch-deployment.ts'
import { type Goal, median, print, printTable } from './figures.ts'
import { cpuSeconds, loadAverage } from './machine-usage.ts'
import { hasZstdCodec, registerZstdCodec } from './zstd-codec.ts'

/**
 * G3 and G13: the fetch stage against the loop that has nothing in it. Both write every page to Kafka with acknowledgement of all
 * replicas; one of them is limited, fair, polite, and accounts for every URL.
 */
export interface ThroughputOptions {
  readonly rounds: number
  readonly pages: number
  readonly latencyMs: number
  readonly concurrency: number
}

export interface Round {
  readonly pagesPerCpuSecond: number
  readonly pagesPerSecond: number
  readonly brokerCpuMs: number
  readonly loop: LoopDelay
}

const HOSTS = 200
/** Of all pages, before the clock starts: connections and robots.txt are warm then, and the compiler has done most of its work. */
export const WARM_SHARE = 0.1

export async function fetchThroughput(broker: BenchBroker, options: ThroughputOptions): Promise<Goal[]> {
  const site = await BenchSite.start({ latencyMs: options.latencyMs, keepLog: false })
  const zstd = process.env.MILLRACE_BENCH_ZSTD
  const deployment = await FetchDeployment.open(broker, [
    `fetch.concurrency=${options.concurrency}`,
    'politeness.default.ratePerSecond=1000',
    'politeness.default.concurrency=4',
  ])
  if (hasZstdCodec(zstd)) registerZstdCodec(zstd, deployment.runtime.client.kafkajs)
  const contenders = ['fetch stage', 'bare loop', ...(hasZstdCodec(zstd) ? ['bare loop, zstd'] : [])]
  const rounds = new Map<string, Round[]>(contenders.map((name) => [name, []]))
  try {
    for (let round = 0; round < options.rounds; round += 1) {
      for (const name of contenders) {
        const store = name === 'bare loop, zstd' ? 'zstd' : 'packed'
        const figures =
          name === 'fetch stage'
            ? await stageRound(deployment, broker, site, options.pages)
            : await bareRound(deployment, broker, site, { ...options, store, ...(zstd === undefined ? {} : { zstdFolder: zstd }) })
        rounds.get(name)?.push(figures)
      }
    }
  } finally {
    await deployment.close()
    await site.stop()
  }
  return report(rounds, options)
}

/** The fetch stage over so many pages, measured and verified. */
export async function stageRound(deployment: FetchDeployment, broker: BenchBroker, site: BenchSite, pages: number): Promise<Round> {
  const perHost = Math.ceil(pages / HOSTS)
  const before = await deployment.pageCount()
  // In the crawl of an earlier round these URLs would be duplicates.
  const crawlId = uniqueName('bench')
  await deployment.produce(
    Array.from({ length: perHost }, (_, index) => hostNames(HOSTS).map((host) => ({ url: site.url(host, index), crawlId }))).flat(),
  )
  // Where the machine is busy, some tasks leave their window.
  const delay = deployment.start('delay')
  const program = deployment.start('fetch')
  const total = perHost * HOSTS
  const figures = await measure(
    broker,
    program.pid,
    async () => {
      program.assertRunning()
      return (await deployment.pageCount()) - before
    },
    total,
    () => program.takeLoopDelay(),
  )
  await program.stop()
  await delay.stop()
  await verify(deployment, deployment.runtime.topics.html, before, total, (bytes) => deployment.runtime.codec.decode('Page', bytes))
  return figures
}

async function bareRound(
  deployment: FetchDeployment,
  broker: BenchBroker,
  site: BenchSite,
  options: ThroughputOptions & Pick<BareLoopOptions, 'store' | 'zstdFolder'>,
): Promise<Round> {
  const topic = uniqueName('bare')
  await deployment.runtime.admin.createTopics([{ topic, partitions: 4, replication: 1, configs: {} }])
  const perHost = Math.ceil(options.pages / HOSTS)
  const total = perHost * HOSTS
  const { store, zstdFolder, concurrency } = options
  const loop: BareLoopOptions = {
    brokers: broker.brokers,
    topic,
    partitions: 4,
    urls: { hosts: hostNames(HOSTS), perHost, port: site.port },
    concurrency,
    store,
    ...(zstdFolder === undefined ? {} : { zstdFolder }),
  }
  const main = fileURLToPath(new URL('./bare-loop-main.ts', import.meta.url))
  const execArgv = [...process.execArgv, '--import', loopProbe]
  const child = fork(main, [JSON.stringify(loop)], { execArgv, serialization: 'advanced' })
  const ended = once(child, 'exit')
  const figures = await measure(
    broker,
    child.pid ?? 0,
    () => deployment.messageCount(topic),
    total,
    () => takeLoopDelay(child),
  )
  await ended
  const raw = deployment.runtime.codec.schemas.current('Page')
  await verify(deployment, topic, 0, total, (bytes) => raw.decode(bytes) as Page)
  return figures
}

/** From the warm pages on until almost all are stored; the rest are the tail in which slots run empty. */
async function measure(
  broker: BenchBroker,
  pid: number,
  count: () => Promise<number>,
  total: number,
  loopDelay: () => Promise<LoopDelay>,
): Promise<Round> {
  const reading = async (atLeast: number): Promise<{ pages: number; cpu: number; broker: number; at: number }> =>
    until(
      `storing ${atLeast} pages`,
      async () => {
        const pages = await count()
        return pages < atLeast ? undefined : { pages, cpu: cpuSeconds(pid), broker: cpuSeconds(broker.pid), at: performance.now() }
      },
      600_000,
    )
  const first = await reading(total * WARM_SHARE)
  await loopDelay()
  const last = await reading(total * 0.93)
  const loop = await loopDelay()
  await reading(total)
  const pages = last.pages - first.pages
  return {
    pagesPerCpuSecond: pages / (last.cpu - first.cpu),
    pagesPerSecond: (pages / (last.at - first.at)) * 1_000,
    brokerCpuMs: ((last.broker - first.broker) / pages) * 1_000,
    loop,
  }
}

/** Errors: where a page is missing, twice, or not what the site sent: the figure is void then. */
async function verify(
  deployment: FetchDeployment,
  topic: string,
  skipped: number,
  total: number,
  decode: (bytes: Buffer) => Page,
): Promise<void> {
  const pages = benchPages()
  const seen = new Map<string, number>()
  let count = 0
  for await (const { value } of deployment.messages(topic)) {
    count += 1
    if (value === null) continue
    const page = decode(value)
    const expected = pages[pageIndex(new URL(page.url).pathname, pages.length)]
    const body = await unpackPageBody({ ...page, bodySha256: expected?.sha256 ?? '' })
    if (!body.ok) throw new Error(`the page of ${page.url} is not what the site sent: ${body.detail}`)
    seen.set(page.url, (seen.get(page.url) ?? 0) + 1)
  }
  if (count !== skipped + total) throw new Error(`${topic} holds ${count} pages; expected ${skipped + total}`)
  if (seen.size !== total) throw new Error(`${topic} holds pages of ${seen.size} URLs; expected ${total}`)
}

function report(rounds: ReadonlyMap<string, readonly Round[]>, options: ThroughputOptions): Goal[] {
  const middle = (name: string, of: (round: Round) => number): number => median((rounds.get(name) ?? []).map(of))
  const ratio = (name: string, of: (round: Round) => number): number => middle('fetch stage', of) / middle(name, of)
  print(
    `\n${options.rounds} rounds of ${options.pages} pages of 61 KB over ${HOSTS} hosts, answers after ${options.latencyMs} ms, ` +
      `concurrency ${options.concurrency}; medians, load ${loadAverage()}`,
  )
  printTable(
    ['', 'pages/CPU-s', 'pages/s', 'CPU ms/page', 'broker CPU ms/page', 'stage/this, CPU', 'stage/this, wall'],
    [...rounds.keys()].map((name) => [
      name,
      Math.round(middle(name, (round) => round.pagesPerCpuSecond)),
      Math.round(middle(name, (round) => round.pagesPerSecond)),
      1_000 / middle(name, (round) => round.pagesPerCpuSecond),
      middle(name, (round) => round.brokerCpuMs),
      ratio(name, (round) => round.pagesPerCpuSecond),
      ratio(name, (round) => round.pagesPerSecond),
    ]),
  )
  const texts = (each: readonly Round[], of: (loop: LoopDelay) => number): string => each.map(({ loop }) => of(loop).toFixed(1)).join(', ')
  for (const [name, each] of rounds) {
    const [p50, p99, max] = [texts(each, ({ p50Ms }) => p50Ms), texts(each, ({ p99Ms }) => p99Ms), texts(each, ({ maxMs }) => maxMs)]
    print(`event loop of the ${name}: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`)
  }
  const label = options.latencyMs > 0 ? `answers after ${options.latencyMs} ms` : 'answers at once'
  const goals: Goal[] = [
    { name: `G13 event loop delay p99, ${label}, ms`, value: middle('fetch stage', ({ loop }) => loop.p99Ms), target: { atMost: 10 } },
  ]
  if (options.latencyMs > 0) {
    const wall = ratio('bare loop', ({ pagesPerSecond }) => pagesPerSecond)
    goals.push({ name: `G3 wall against the bare loop, ${label}`, value: wall, target: { atLeast: 0.95 } })
    return goals
  }
  const cpu = (round: Round): number => round.pagesPerCpuSecond
  goals.push({
    name: 'G3 pages per CPU second against the bare loop that stores packed bodies',
    value: ratio('bare loop', cpu),
    target: { atLeast: 0.8 },
  })
  if (rounds.has('bare loop, zstd'))
    goals.push({
      name: 'G3 the same, against the bare loop that packs by zstd',
      value: ratio('bare loop, zstd', cpu),
      target: { atLeast: 0.8 },
    })
  return goals
}
