import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { BenchSite, hostNames } from './bench-site.ts'
import { type BenchBroker, FetchDeployment, type NewTask, programEnvironment, until } from './fetch-deployment.ts'
import { type Goal, median, print, printTable, short } from './figures.ts'
import { loadAverage } from './machine-usage.ts'

/** How long `millrace explain URL` takes, from the key press to the answer, while so many URLs wait and a worker is at them. */
const URLS = 10

export async function fetchExplain(broker: BenchBroker, { tasks }: { tasks: number }): Promise<Goal[]> {
  const spread = await explainTimes(broker, tasks, 5_000)
  const oneSite = await explainTimes(broker, tasks, 1)
  print(`\nexplain of ${URLS} URLs of ${tasks} that wait in 4 partitions, a worker at them; load ${short(loadAverage())}`)
  printTable(
    ['sites', 'median, ms', 'slowest, ms'],
    [
      ['5000', median(spread), Math.max(...spread)],
      ['1, so all in one partition', median(oneSite), Math.max(...oneSite)],
    ],
  )
  return [
    { name: `explain with ${tasks} URLs of 5000 sites waiting, slowest, ms`, value: Math.max(...spread), target: { atMost: 2_000 } },
    { name: `explain with ${tasks} URLs of one site waiting, slowest, ms`, value: Math.max(...oneSite), target: { atMost: 2_000 } },
  ]
}

async function explainTimes(broker: BenchBroker, tasks: number, hosts: number): Promise<number[]> {
  const site = await BenchSite.start({ latencyMs: 1_000, keepLog: false })
  const deployment = await FetchDeployment.open(broker)
  try {
    await deployment.produce(newTasks(site, tasks, hosts))
    deployment.start('delay')
    deployment.start('fetch')
    await until('the first page', async () => ((await deployment.pageCount()) > 0 ? true : undefined))
    const times: number[] = []
    for (let step = 1; step <= URLS; step += 1) {
      const index = Math.floor((tasks * step) / URLS) - 1
      times.push(await explain(deployment, site.url(hostNames(hosts)[index % hosts] ?? '', index)))
    }
    return times
  } finally {
    await deployment.close()
    await site.stop()
  }
}

/** Errors: where the answer is not that the URL waits: the figure is void then. */
async function explain(deployment: FetchDeployment, url: string): Promise<number> {
  const started = performance.now()
  const child = spawn(process.execPath, deployment.arguments('explain', [url, '--json']), {
    cwd: deployment.folder,
    env: programEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [answer] = await Promise.all([text(child.stdout), once(child, 'exit')])
  const ms = performance.now() - started
  const { state } = JSON.parse(answer) as { state?: string }
  if (state !== 'waiting' && state !== 'delayed' && state !== 'under-way') throw new Error(`explain ${url} says ${answer}`)
  return ms
}

function* newTasks(site: BenchSite, count: number, hosts: number): Generator<NewTask> {
  const names = hostNames(hosts)
  for (let index = 0; index < count; index += 1) yield { url: site.url(names[index % hosts] ?? '', index), crawlId: 'bench' }
}
