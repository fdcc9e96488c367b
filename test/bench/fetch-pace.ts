import { BenchSite, hostNames, type SiteRequestLog } from './bench-site.ts'
import { type BenchBroker, FetchDeployment, until } from './fetch-deployment.ts'
import { type Goal, print, printTable, short } from './figures.ts'
import { loadAverage } from './machine-usage.ts'

/** G9: how much of its allowance a site is asked for, and whether ever more. By the site's own log. */
const RATES = [1, 5, 20]
const HOSTS_PER_RATE = 20
/** Before this the backlog is read through: what stands far behind in the lane comes late to its site. */
const SETTLE_MS = 45_000

/** Each rate for itself, then all at once: what the limiter loses, and what a process loses that is asked for all it can do. */
export async function fetchPace(broker: BenchBroker, seconds: number): Promise<Goal[]> {
  const goals: Goal[] = []
  for (const rates of [...RATES.map((rate) => [rate]), RATES]) goals.push(...(await paceOf(broker, rates, seconds)))
  return goals
}

async function paceOf(broker: BenchBroker, rates: readonly number[], seconds: number): Promise<Goal[]> {
  const site = await BenchSite.start({ latencyMs: 5, pageBytes: 4_000, keepLog: true })
  const hosts = rates.map((rate) => ({ rate, names: hostNames(HOSTS_PER_RATE, `rate${rate}-`) }))
  const rules = hosts.flatMap(({ rate, names }) => names.map((match) => ({ match, ratePerSecond: rate, concurrency: 2 })))
  const deployment = await FetchDeployment.open(broker, ['politeness.default.ratePerSecond=1'], { politeness: { rules } })
  try {
    // A full backlog: more than can be asked for.
    await deployment.produce(
      hosts.flatMap(({ rate, names }) =>
        Array.from({ length: Math.ceil(rate * (seconds + SETTLE_MS / 1_000) * 1.2) }, (_, index) =>
          names.map((host) => ({ url: site.url(host, index) })),
        ).flat(),
      ),
    )
    deployment.start('delay')
    const program = deployment.start('fetch')
    const first = await until('the first request', async () => (await site.takeLog())[0]?.at)
    const log: SiteRequestLog[] = []
    await until(
      'the time',
      async () => {
        program.assertRunning()
        log.push(...(await site.takeLog()))
        return (log.at(-1)?.at ?? 0) > first + SETTLE_MS + seconds * 1_000 ? true : undefined
      },
      (seconds + SETTLE_MS / 1_000 + 60) * 1_000,
      500,
    )
    const from = first + SETTLE_MS
    const beside = rates.length === 1 ? '' : ', all rates at once'
    const goals: Goal[] = []
    const rows = hosts.map(({ rate, names }) => {
      const perHost = names.map((host) => timesOf(log, host, from, from + seconds * 1_000))
      const used = perHost.map((times) => times.length / (rate * seconds))
      const violations = perHost.reduce((sum, times) => sum + violationsOf(times, rate), 0)
      const tooShort = perHost.reduce((sum, times) => sum + shortGaps(times, rate), 0)
      const utilisation = used.reduce((sum, share) => sum + share, 0) / used.length
      const target = rate <= 5 ? 0.98 : 0.95
      goals.push({ name: `G9 utilisation at ${rate}/s${beside}`, value: utilisation, target: { atLeast: target } })
      goals.push({ name: `G9 violations at ${rate}/s${beside}`, value: violations, target: { atMost: 0 } })
      return [`${rate}/s`, utilisation, Math.min(...used), Math.max(...used), violations, tooShort]
    })
    print(
      `\n${HOSTS_PER_RATE} sites at each rate${beside}, ${seconds} s with a full backlog, from ${SETTLE_MS / 1_000} s on; load ${short(loadAverage())}`,
    )
    printTable(['rate', 'used of the allowance', 'least', 'most', 'violations', `gaps over ${LATENESS_MS} ms too short`], rows)
    return goals
  } finally {
    await deployment.close()
    await site.stop()
  }
}

function timesOf(log: readonly SiteRequestLog[], host: string, from: number, until: number): number[] {
  return log.filter((entry) => entry.host === host && entry.at >= from && entry.at < until).map(({ at }) => at)
}

/** How much later one request may come to the site than the next, on a machine that is busy with both ends of them. */
const LATENESS_MS = 20

function shortGaps(times: readonly number[], rate: number): number {
  return times.filter((at, index) => index > 0 && at - (times[index - 1] ?? 0) < 1_000 / rate - LATENESS_MS).length
}

/** Ten seconds with more than ten times the rate and one. Single gaps are those of the network and of this machine as well. */
function violationsOf(times: readonly number[], rate: number): number {
  let violations = 0
  for (const [index, at] of times.entries()) {
    const end = times.findIndex((other, later) => later >= index && other >= at + 10_000)
    const within = (end === -1 ? times.length : end) - index
    if (within > 10 * rate + 1) violations += 1
  }
  return violations
}
