import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { benchPages } from './bench-pages.ts'
import { BenchSite, hostNames } from './bench-site.ts'
import type { CrawleeOptions } from './crawlee-main.ts'
import { type BenchBroker, FetchDeployment, until } from './fetch-deployment.ts'
import { stageRound, WARM_SHARE } from './fetch-throughput.ts'
import { type Goal, median, print, printTable, short } from './figures.ts'
import { cpuSeconds, loadAverage } from './machine-usage.ts'

/** G5: pages per CPU second against Crawlee's HttpCrawler, which keeps nothing; the fetch stage stores every page. */
const CONCURRENCY = 32

export async function fetchCrawlee(broker: BenchBroker, { rounds, pages }: { rounds: number; pages: number }): Promise<Goal[]> {
  const folder = process.env.MILLRACE_BENCH_CRAWLEE
  if (folder === undefined || !existsSync(join(folder, 'node_modules', '@crawlee', 'http'))) {
    print('\nG5 skipped: MILLRACE_BENCH_CRAWLEE names no folder in which @crawlee/http is installed')
    return []
  }
  const site = await BenchSite.start({ latencyMs: 0, keepLog: false })
  const deployment = await FetchDeployment.open(broker, [
    `fetch.concurrency=${CONCURRENCY}`,
    'politeness.default.ratePerSecond=1000',
    'politeness.default.concurrency=4',
  ])
  const ours: number[] = []
  const theirs: number[] = []
  try {
    for (let round = 0; round < rounds; round += 1) {
      ours.push((await stageRound(deployment, broker, site, pages)).pagesPerCpuSecond)
      theirs.push(await crawleeRound(site, folder, pages))
    }
  } finally {
    await deployment.close()
    await site.stop()
  }
  print(`\n${rounds} rounds of ${pages} pages of 61 KB, concurrency ${CONCURRENCY}; medians, load ${short(loadAverage())}`)
  printTable(
    ['', 'pages/CPU-s', 'CPU ms/page'],
    [
      ['fetch stage, pages stored', Math.round(median(ours)), 1_000 / median(ours)],
      ['Crawlee HttpCrawler, nothing stored', Math.round(median(theirs)), 1_000 / median(theirs)],
    ],
  )
  return [{ name: 'G5 pages per CPU second against Crawlee HttpCrawler', value: median(ours) / median(theirs), target: { atLeast: 2 } }]
}

async function crawleeRound(site: BenchSite, folder: string, pages: number): Promise<number> {
  const hosts = hostNames(200)
  const options: CrawleeOptions = {
    folder,
    crawler: 'http',
    concurrency: CONCURRENCY,
    urls: { hosts, perHost: Math.ceil(pages / hosts.length), port: site.port },
    bodyLengths: benchPages().map(({ body }) => body.length),
  }
  const child = fork(fileURLToPath(new URL('./crawlee-main.ts', import.meta.url)), [JSON.stringify(options)], { stdio: 'inherit' })
  const pid = child.pid ?? 0
  const reading = (atLeast: number): Promise<{ done: number; cpu: number }> =>
    until(
      `${atLeast} pages of Crawlee`,
      async () => {
        if (child.exitCode !== null) throw new Error(`Crawlee ended with ${child.exitCode}`)
        child.send('count')
        const [done] = (await once(child, 'message')) as [number]
        return done >= atLeast ? { done, cpu: cpuSeconds(pid) } : undefined
      },
      600_000,
    )
  const first = await reading(pages * WARM_SHARE)
  const last = await reading(pages * 0.93)
  await reading(pages)
  const ended = once(child, 'exit')
  child.disconnect()
  await ended
  return (last.done - first.done) / (last.cpu - first.cpu)
}
