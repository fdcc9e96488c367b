import { systemClock } from '../../src/kernel/clock.ts'
import { BenchSite, hostNames } from './bench-site.ts'
import { type BenchBroker, FetchDeployment, type NewTask, until } from './fetch-deployment.ts'
import { type Goal, print, printTable, quantile, short } from './figures.ts'
import { loadAverage } from './machine-usage.ts'

/** G8: from the produce of a URL of the high lane to its request, while the low lane has more than can be worked and holds every place. */
const LOW_TASKS = 100_000
const LOW_HOSTS = 2_000
const HIGH_PER_SECOND = 10
const CONCURRENCY = 64

export async function fetchLanes(broker: BenchBroker, seconds: number): Promise<Goal[]> {
  const site = await BenchSite.start({ latencyMs: 50, pageBytes: 4_000, keepLog: true })
  const rows: (string | number)[][] = []
  const waits: Record<string, number[]> = {}
  try {
    for (const load of ['an empty low lane', `${LOW_TASKS} URLs in the low lane`]) {
      const deployment = await FetchDeployment.open(broker, [
        `fetch.concurrency=${CONCURRENCY}`,
        'politeness.default.ratePerSecond=1000',
        'politeness.default.concurrency=4',
      ])
      try {
        if (load !== 'an empty low lane') await deployment.produce(lowTasks(site))
        deployment.start('delay')
        deployment.start('fetch')
        await deployment.produce([{ url: site.url('warm.example', 0), lane: 'high' }])
        await until('the first request', async () => ((await site.takeLog()).length > 0 ? true : undefined))
        waits[load] = await highWaits(deployment, site, seconds)
      } finally {
        await deployment.close()
      }
      const own = waits[load] ?? []
      rows.push([load, own.length, quantile(own, 0.5), quantile(own, 0.99), quantile(own, 0.999), Math.max(...own)])
    }
  } finally {
    await site.stop()
  }
  print(
    `\n${HIGH_PER_SECOND} high URLs a second for ${seconds} s, concurrency ${CONCURRENCY}, answers after 50 ms; load ${short(loadAverage())}`,
  )
  printTable(['beside', 'URLs', 'p50 ms', 'p99 ms', 'p99.9 ms', 'most ms'], rows)
  const loaded = waits[`${LOW_TASKS} URLs in the low lane`] ?? []
  return [
    { name: 'G8 high lane, produce to request, p99 ms', value: quantile(loaded, 0.99), target: { atMost: 500 } },
    { name: 'G8 high lane, produce to request, p99.9 ms', value: quantile(loaded, 0.999), target: { atMost: 1_000 } },
  ]
}

function* lowTasks(site: BenchSite): Generator<NewTask> {
  const hosts = hostNames(LOW_HOSTS, 'low')
  for (let index = 0; index < LOW_TASKS; index += 1) yield { url: site.url(hosts[index % LOW_HOSTS] ?? '', index), lane: 'low' }
}

/** Units: ms. Errors: where one of them was not asked for. */
async function highWaits(deployment: FetchDeployment, site: BenchSite, seconds: number): Promise<number[]> {
  const hosts = hostNames(50, 'high')
  const producedAt = new Map<string, number>()
  const sends: Promise<void>[] = []
  for (let index = 0; index < seconds * HIGH_PER_SECOND; index += 1) {
    const host = hosts[index % hosts.length] ?? ''
    producedAt.set(`${host}/${index}`, performance.timeOrigin + performance.now())
    sends.push(deployment.produce([{ url: site.url(host, index), lane: 'high' }]))
    await systemClock.sleep(1_000 / HIGH_PER_SECOND)
  }
  await Promise.all(sends)
  const waits: number[] = []
  await until(
    'the last high request',
    async () => {
      for (const { host, path, at } of await site.takeLog()) {
        const sentAt = producedAt.get(`${host}${path}`)
        if (sentAt !== undefined) waits.push(at - sentAt)
      }
      return waits.length >= producedAt.size ? true : undefined
    },
    60_000,
    200,
  )
  return waits
}
