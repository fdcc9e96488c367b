import { BenchSite, hostNames } from './bench-site.ts'
import { type BenchBroker, FetchDeployment, type NewTask, until } from './fetch-deployment.ts'
import { type Goal, print, printTable, short } from './figures.ts'
import { anonymousMiB, loadAverage } from './machine-usage.ts'

/** G10: resident memory of the fetch stage with a million URLs waiting, against a thousand. The site is slow, so that they wait. */
const HOSTS = 5_000

export async function fetchMemory(broker: BenchBroker, { many, seconds }: { many: number; seconds: number }): Promise<Goal[]> {
  const highest: { resident: number; anonymous: number }[] = []
  for (const count of [1_000, many]) {
    const site = await BenchSite.start({ latencyMs: 1_000, keepLog: false })
    const deployment = await FetchDeployment.open(broker)
    try {
      await deployment.produce(tasks(site, count))
      deployment.start('delay')
      const program = deployment.start('fetch')
      await until('the first page', async () => ((await deployment.pageCount()) > 0 ? true : undefined))
      const samples: { resident: number; anonymous: number }[] = []
      const end = performance.now() + seconds * 1_000
      await until(
        'the time',
        async () => {
          program.assertRunning()
          samples.push({ resident: program.residentMiB(), anonymous: anonymousMiB(program.pid) })
          return performance.now() > end ? true : undefined
        },
        (seconds + 30) * 1_000,
        1_000,
      )
      const most = (of: (sample: (typeof samples)[number]) => number): number => Math.max(...samples.map(of))
      highest.push({ resident: most(({ resident }) => resident), anonymous: most(({ anonymous }) => anonymous) })
    } finally {
      await deployment.close()
      await site.stop()
    }
  }
  const [few, all] = highest
  if (few === undefined || all === undefined) throw new Error('nothing was measured')
  print(`\n${many} URLs over ${HOSTS} sites that answer after 1 s, ${seconds} s; load ${short(loadAverage())}`)
  printTable(
    ['URLs waiting', 'highest RSS, MiB', 'of it without mapped files'],
    [
      ['1000', few.resident, few.anonymous],
      [String(many), all.resident, all.anonymous],
    ],
  )
  return [
    { name: `G10 RSS with ${many} URLs waiting, MiB`, value: all.resident, target: { atMost: 350 } },
    { name: 'G10 the same against a thousand', value: all.resident / few.resident, target: { atMost: 1.15 } },
  ]
}

function* tasks(site: BenchSite, count: number): Generator<NewTask> {
  const hosts = hostNames(HOSTS)
  for (let index = 0; index < count; index += 1) yield { url: site.url(hosts[index % HOSTS] ?? '', index), crawlId: 'bench' }
}
