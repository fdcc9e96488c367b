import { partitionFor } from '../../src/url/partition.ts'
import { BenchSite, hostNames, type SiteRequestLog } from './bench-site.ts'
import { type BenchBroker, FetchDeployment, type NewTask, until } from './fetch-deployment.ts'
import { type Goal, jainIndex, print, printTable, short } from './figures.ts'
import { loadAverage } from './machine-usage.ts'

/**
 * G12: shares of eight crawls of equal weight over the same sites. The largest has `skew` times as many URLs as the others and stands
 * before them in the log.
 */
const CRAWLS = 8
const HOSTS = 25
const PARTITIONS = 4
const WINDOW_MS = 10_000
/**
 * Requests a second at most: 4 places and 250 ms. So few, that the small backlogs last while the huge one, as many times larger, is read
 * through.
 */
const RATE = 16
const READ_SECONDS = 150
/** Once the last crawl has been met, until shares are counted. */
const SETTLE_MS = 5_000

export async function fetchFairness(broker: BenchBroker, { seconds, skew }: { seconds: number; skew: number }): Promise<Goal[]> {
  const site = await BenchSite.start({ latencyMs: 250, pageBytes: 4_000, keepLog: true })
  const deployment = await FetchDeployment.open(broker, [
    `topics.partitions.urls=${PARTITIONS}`,
    'fetch.concurrency=4',
    'politeness.default.ratePerSecond=50',
    'politeness.default.concurrency=2',
  ])
  try {
    // The smallest backlog must outlast the run.
    const least = Math.ceil((RATE / CRAWLS) * (seconds + READ_SECONDS))
    const hosts = hostNames(HOSTS)
    await deployment.produce(tasks(site, hosts, least, skew))
    deployment.start('delay')
    const program = deployment.start('fetch')
    const log: SiteRequestLog[] = []
    const met = new Map<string, number>()
    // All crawls have been met in every partition, and then some time.
    await until(
      'the time',
      async () => {
        program.assertRunning()
        for (const request of await site.takeLog()) {
          log.push(request)
          const name = `${crawlOf(request)} ${partitionFor(request.host, PARTITIONS)}`
          if (!met.has(name)) met.set(name, request.at)
        }
        return met.size === CRAWLS * PARTITIONS && (log.at(-1)?.at ?? 0) > Math.max(...met.values()) + seconds * 1_000 ? true : undefined
      },
      (seconds + 240) * 1_000,
      500,
    )
    const from = Math.max(...met.values()) + SETTLE_MS
    const readMs = Math.max(...met.values()) - (log[0]?.at ?? 0)
    const rows: (string | number)[][] = []
    const end = Math.min(from - SETTLE_MS + seconds * 1_000, nearlyDone(log, least))
    for (let start = from; start + WINDOW_MS <= end; start += WINDOW_MS) {
      const shares = Array.from({ length: CRAWLS }, () => 0)
      for (const request of log) {
        const crawl = crawlOf(request)
        if (request.at >= start && request.at < start + WINDOW_MS) shares[crawl] = (shares[crawl] ?? 0) + 1
      }
      rows.push([`${(start - from) / 1_000} s`, shares.join(' '), jainIndex(shares), Math.max(...shares) / Math.min(...shares)])
    }
    const spilled = await deployment.messageCount(deployment.runtime.topics.urls.normal)
    const [small, huge] = [least, skew * least]
    print(`\n${CRAWLS} crawls over ${HOSTS} sites, backlogs of ${small} to ${huge} URLs; load ${short(loadAverage())}`)
    print(
      `the last crawl was met after ${short(readMs / 1_000)} s; ${spilled} messages on the lane, of ${huge + (CRAWLS - 1) * small} produced`,
    )
    printTable(['from', 'requests of each crawl', 'Jain', 'most/least'], rows)
    if (rows.length === 0) throw new Error('the small crawls ended before the large one was read: no figure')
    return [
      { name: 'G12 Jain index, the worst ten seconds', value: Math.min(...rows.map((row) => Number(row[2]))), target: { atLeast: 0.98 } },
      { name: 'G12 largest share over smallest', value: Math.max(...rows.map((row) => Number(row[3]))), target: { atMost: 1.1 } },
    ]
  } finally {
    await deployment.close()
    await site.stop()
  }
}

/** The largest crawl was there first; the number in the path tells the crawl. */
function* tasks(site: BenchSite, hosts: readonly string[], least: number, skew: number): Generator<NewTask> {
  for (let crawl = CRAWLS - 1; crawl >= 0; crawl -= 1) {
    const count = crawl === CRAWLS - 1 ? skew * least : least
    for (let index = 0; index < count; index += 1)
      yield { url: site.url(hosts[index % hosts.length] ?? '', index * CRAWLS + crawl), crawlId: `crawl-${crawl}` }
  }
}

function crawlOf({ path }: SiteRequestLog): number {
  return Number(path.slice(1)) % CRAWLS
}

/** When the first of the crawls had nine tenths of the smallest backlog behind it: what is left then lies with few sites. Epoch ms. */
function nearlyDone(log: readonly SiteRequestLog[], least: number): number {
  const counts = new Map<number, number>()
  for (const request of log) {
    const count = (counts.get(crawlOf(request)) ?? 0) + 1
    counts.set(crawlOf(request), count)
    if (crawlOf(request) < CRAWLS - 1 && count >= 0.9 * least) return request.at
  }
  return Number.POSITIVE_INFINITY
}
