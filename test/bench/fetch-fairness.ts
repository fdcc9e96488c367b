import { BenchSite, hostNames, type SiteRequestLog } from './bench-site.ts'
import { type BenchBroker, FetchDeployment, type NewTask, until } from './fetch-deployment.ts'
import { type Goal, jainIndex, print, printTable, short } from './figures.ts'
import { loadAverage } from './machine-usage.ts'

/** G12: shares of eight crawls of equal weight over the same sites, whose backlogs differ by a factor of up to a thousand. */
const CRAWLS = 8
const HOSTS = 100
const WINDOW_MS = 10_000

export async function fetchFairness(broker: BenchBroker, seconds: number): Promise<Goal[]> {
  const site = await BenchSite.start({ latencyMs: 40, pageBytes: 4_000, keepLog: true })
  const deployment = await FetchDeployment.open(broker, [
    'fetch.concurrency=16',
    'politeness.default.ratePerSecond=50',
    'politeness.default.concurrency=2',
  ])
  try {
    // 16 places and 40 ms make 400 requests a second at most: the smallest backlog must outlast the run.
    const least = Math.ceil((400 / CRAWLS) * (seconds + 10))
    const hosts = hostNames(HOSTS)
    await deployment.produce(tasks(site, hosts, least))
    deployment.start('delay')
    const program = deployment.start('fetch')
    const log: SiteRequestLog[] = []
    await until(
      'the time',
      async () => {
        program.assertRunning()
        log.push(...(await site.takeLog()))
        return log.length > 0 && (log.at(-1)?.at ?? 0) > (log[0]?.at ?? 0) + (seconds + 5) * 1_000 ? true : undefined
      },
      (seconds + 90) * 1_000,
      500,
    )
    const from = (log[0]?.at ?? 0) + 5_000
    const rows: (string | number)[][] = []
    for (let start = from; start + WINDOW_MS <= from + seconds * 1_000; start += WINDOW_MS) {
      const shares = Array.from({ length: CRAWLS }, () => 0)
      for (const { path, at } of log) {
        const crawl = Number(path.slice(1)) % CRAWLS
        if (at >= start && at < start + WINDOW_MS) shares[crawl] = (shares[crawl] ?? 0) + 1
      }
      rows.push([`${(start - from) / 1_000} s`, shares.join(' '), jainIndex(shares), Math.max(...shares) / Math.min(...shares)])
    }
    print(`\n${CRAWLS} crawls over ${HOSTS} sites, backlogs of ${least} to ${30 * least} URLs; load ${short(loadAverage())}`)
    printTable(['from', 'requests of each crawl', 'Jain', 'most/least'], rows)
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
function* tasks(site: BenchSite, hosts: readonly string[], least: number): Generator<NewTask> {
  for (let crawl = CRAWLS - 1; crawl >= 0; crawl -= 1) {
    const count = crawl === CRAWLS - 1 ? 30 * least : least
    for (let index = 0; index < count; index += 1)
      yield { url: site.url(hosts[index % hosts.length] ?? '', index * CRAWLS + crawl), crawlId: `crawl-${crawl}` }
  }
}
