import { BenchSite, hostNames, type SiteRequestLog } from './bench-site.ts'
import { type BenchBroker, FetchDeployment, type NewTask, until } from './fetch-deployment.ts'
import { type Goal, print, printTable, short } from './figures.ts'
import { loadAverage } from './machine-usage.ts'

/**
 * P4: a hundred quick sites in one partition, alone, and beside a site with a great many URLs, one that never answers and one that sends
 * a byte a second; and a site of one request a second among them, whose backlog is full.
 */
const QUICK_HOSTS = 100
const QUICK_RATE = 2
/** At least. */
const READ_PER_SECOND = 1_000

export async function fetchIsolation(broker: BenchBroker, { hugeTasks, seconds }: { hugeTasks: number; seconds: number }): Promise<Goal[]> {
  const quick = hostNames(QUICK_HOSTS, 'quick')
  const settings = ['topics.partitions.urls=1', 'fetch.timeouts.headers=20s', 'fetch.timeouts.idle=5s', 'fetch.timeouts.total=30s']
  const rules = [{ match: 'quick*.example', ratePerSecond: QUICK_RATE, concurrency: 2 }]
  const speeds: number[] = []
  let slotShare = Number.NaN
  for (const beside of [0, hugeTasks]) {
    const site = await BenchSite.start({
      latencyMs: 20,
      pageBytes: 4_000,
      keepLog: true,
      silentHosts: ['silent.example'],
      drippingHosts: ['dripping.example'],
    })
    const deployment = await FetchDeployment.open(broker, settings, { politeness: { rules } })
    try {
      const perHost = Math.ceil(QUICK_RATE * (seconds + 15) * 1.3)
      await deployment.produce(tasks(site, quick, perHost, beside))
      deployment.start('delay')
      const program = deployment.start('fetch')
      const log: SiteRequestLog[] = []
      await until(
        'the time',
        async () => {
          program.assertRunning()
          log.push(...(await site.takeLog()))
          const first = log.find(({ host }) => host.startsWith('quick'))?.at
          return first !== undefined && (log.at(-1)?.at ?? 0) > first + (seconds + 12) * 1_000 ? true : undefined
        },
        // What stands before the quick ones in the log is read first.
        (seconds + 180 + beside / READ_PER_SECOND) * 1_000,
        500,
      )
      const from = (log.find(({ host }) => host.startsWith('quick'))?.at ?? 0) + 10_000
      const timed = log.filter(({ at }) => at >= from && at < from + seconds * 1_000)
      speeds.push(timed.filter(({ host }) => host.startsWith('quick')).length / seconds)
      if (beside > 0)
        slotShare = perSecond(
          log.filter(({ host }) => host === 'huge.example').map(({ at }) => at),
          from,
          from + seconds * 1_000,
        )
    } finally {
      await deployment.close()
      await site.stop()
    }
  }
  const [alone = Number.NaN, disturbed = Number.NaN] = speeds
  print(
    `\n${QUICK_HOSTS} quick sites at ${QUICK_RATE}/s in one partition, beside a site of ${hugeTasks} URLs at 1/s, a silent and a dripping one; load ${short(loadAverage())}`,
  )
  printTable(
    ['', 'requests/s'],
    [
      ['quick sites alone', alone],
      ['quick sites beside the others', disturbed],
      ['the huge site', slotShare],
    ],
  )
  return [
    { name: 'P4 speed of quick sites beside the others', value: disturbed / alone, target: { atLeast: 0.9 } },
    { name: 'P4 seconds used by the site of 1/s with a full backlog', value: slotShare, target: { atLeast: 0.98 } },
  ]
}

/** From the first request of the time to the first one after it: counted by whole requests, a second more or less would be a fortieth. */
function perSecond(times: readonly number[], from: number, until: number): number {
  const first = times.findIndex((at) => at >= from)
  const behind = times.findIndex((at) => at >= until)
  const last = behind === -1 ? times.length - 1 : behind
  return first === -1 || last <= first ? 0 : ((last - first) * 1_000) / ((times[last] ?? 0) - (times[first] ?? 0))
}

/** The huge site first: what it has would be before everything else. */
function* tasks(site: BenchSite, quick: readonly string[], perHost: number, huge: number): Generator<NewTask> {
  for (let index = 0; index < huge; index += 1) yield { url: site.url('huge.example', index) }
  if (huge > 0) {
    for (let index = 0; index < 200; index += 1) {
      yield { url: site.url('silent.example', index) }
      yield { url: site.url('dripping.example', index) }
    }
  }
  for (let index = 0; index < perHost; index += 1) for (const host of quick) yield { url: site.url(host, index) }
}
