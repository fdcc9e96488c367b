import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RecordReader } from '../../src/control/records/record-reader.ts'
import { readLog } from '../../src/kafka/log-reader.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { hasCorpus } from '../support/corpus.ts'
import { BenchSite, hostNames } from './bench-site.ts'
import { type BenchBroker, FetchDeployment, until } from './fetch-deployment.ts'
import { type Goal, print, printTable, quantile, short } from './figures.ts'
import { loadAverage } from './machine-usage.ts'
import { WIDE } from './replay-extractors.ts'

/**
 * G15: from the produce of a URL to its record in the hands of a reader, on a system that has nothing else to do, without the time that the
 * site took.
 */
const HOSTS = 20
const INTERVAL_MS = 200

export async function replayIdle(broker: BenchBroker, { urls }: { urls: number }): Promise<Goal[]> {
  if (!hasCorpus) {
    print('\nG15 skipped: there is no corpus of real pages')
    return []
  }
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-extractors-'))
  const file = join(folder, 'wide.yaml')
  writeFileSync(file, WIDE.text)
  const site = await BenchSite.start({ latencyMs: 0, keepLog: true, corpus: true })
  const deployment = await FetchDeployment.open(broker, ['politeness.default.ratePerSecond=1000', `extractors=${file}`])
  const stop = new AbortController()
  try {
    for (const command of ['fetch', 'extract', 'delay', 'frontier']) deployment.start(command)
    const arrivals = new Map<string, number>()
    const reading = collect(deployment, arrivals, stop.signal)
    // robots.txt of every host, and the compiler of both stages.
    const hosts = hostNames(HOSTS)
    const warm = hosts.flatMap((host) => Array.from({ length: 10 }, (_, index) => site.url(host, 10_000 + index)))
    await deployment.produce(warm.map((url) => ({ url })))
    await until('the records of the warm pages', async () => (arrivals.size >= warm.length ? true : undefined))
    await systemClock.sleep(3_000)
    await site.takeLog()

    const produced = new Map<string, number>()
    for (let index = 0; index < urls; index += 1) {
      const url = site.url(hosts[index % HOSTS] ?? '', index)
      produced.set(url, now())
      await deployment.produce([{ url }])
      await systemClock.sleep(Math.max(0, INTERVAL_MS - (now() - (produced.get(url) ?? 0))))
    }
    await until('the last record', async () => ([...produced.keys()].every((url) => arrivals.has(url)) ? true : undefined))
    stop.abort()
    await reading
    const served = new Map(
      (await site.takeLog()).map(({ host, path, at, endedAt }) => [`http://${host}:${site.port}${path}`, (endedAt ?? at) - at]),
    )
    return report(
      [...produced].map(([url, at]) => ({ totalMs: (arrivals.get(url) ?? Number.NaN) - at, serverMs: served.get(url) ?? Number.NaN })),
    )
  } finally {
    stop.abort()
    await deployment.close()
    await site.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function now(): number {
  return performance.timeOrigin + performance.now()
}

/** When each record could be read, by the URL of its page. */
async function collect({ runtime }: FetchDeployment, arrivals: Map<string, number>, signal: AbortSignal): Promise<void> {
  const { client, topics } = runtime
  const reader = new RecordReader(runtime)
  for await (const event of readLog({ client, clock: systemClock, from: new Map([[topics.records, 'earliest']]), follow: true, signal })) {
    if (event.kind !== 'batch') continue
    for (const message of event.messages) {
      const record = (await reader.read(message))?.value as { readonly url: string } | undefined
      if (record !== undefined) arrivals.set(record.url, now())
    }
  }
}

function report(times: readonly { readonly totalMs: number; readonly serverMs: number }[]): Goal[] {
  const own = times.map(({ totalMs, serverMs }) => totalMs - serverMs)
  const p50 = quantile(own, 0.5)
  const p99 = quantile(own, 0.99)
  print(`\n${times.length} URLs, one every ${INTERVAL_MS} ms over ${HOSTS} sites; load ${short(loadAverage())}`)
  printTable(
    ['ms', 'p50', 'p90', 'p99', 'max'],
    [
      ['produce to record, without the site', p50, quantile(own, 0.9), p99, Math.max(...own)],
      [
        'the site',
        ...[0.5, 0.9, 0.99, 1].map((q) =>
          quantile(
            times.map(({ serverMs }) => serverMs),
            q,
          ),
        ),
      ],
    ],
  )
  return [
    { name: 'G15 produce to record p50, ms', value: p50, target: { atMost: 100 } },
    { name: 'G15 produce to record p99, ms', value: p99, target: { atMost: 300 } },
  ]
}
