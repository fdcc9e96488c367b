import { getEventListeners, setMaxListeners } from 'node:events'
import { HttpClient } from '../../src/fetch/http-client.ts'
import type { HttpResult } from '../../src/fetch/http-exchange.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { MisbehavingSite } from '../support/misbehaving-site.ts'

/** What is left of requests that are over. */
export interface Left {
  readonly sockets: number
  /** Sockets and timers of the process, against how many there were before. */
  readonly resources: number
  /** On the signal that outlives the requests. */
  readonly listeners: number
}

/**
 * Does the HTTP client keep anything? Requests at a concurrency of 200 to sites that are honest and that lie, some of them aborted, and
 * then a count of what is left: sockets, timers, listeners, heap. Tells its parent; needs `--expose-gc`.
 */
export interface LeaksReport {
  readonly requests: number
  readonly concurrency: number
  readonly seconds: number
  readonly made: { readonly response: number; readonly failure: number; readonly aborted: number }
  /** By a client that is open and has been idle for longer than it keeps a connection. */
  readonly leftIdle: Left
  readonly leftClosed: Left
  /** From a fifth of the way to the end. */
  readonly heapGrowthMiB: number
  readonly warnings: readonly string[]
}

const REQUESTS = Number(process.argv[2])
const CONCURRENCY = 200
const HOSTS = 100
const PATHS = [
  '/honest',
  '/gzip',
  '/br',
  '/chunks',
  '/no-length',
  '/less-than-promised',
  '/reset',
  '/garbage',
  '/gzip-cut',
  '/loop',
  '/not-modified',
  '/two-types',
]
/** Of a thousand requests, so many are stopped by their signal. */
const ABORTED_PER_1000 = 20
/** The client keeps an idle connection for ten seconds. */
const IDLE_MS = 12_000

const collect = (globalThis as { gc?: () => void }).gc
const resources = (): number => process.getActiveResourcesInfo().filter((name) => /^(?:TCPSocketWrap|TLSWrap|Timeout)$/.test(name)).length

async function main(): Promise<void> {
  const site = await MisbehavingSite.open()
  const warnings: string[] = []
  process.on('warning', (warning) => warnings.push(`${warning.name}: ${warning.message}`))
  const client = new HttpClient({ resolve: { '*.test': '127.0.0.1' }, allowAddresses: ['127.0.0.0/8'], clock: systemClock, maxOrigins: 64 })
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  const counts = { response: 0, failure: 0, aborted: 0 }
  const before = resources()

  const ask = async (index: number): Promise<void> => {
    const own = new AbortController()
    const isAborted = index % 1_000 < ABORTED_PER_1000
    const path = isAborted ? '/silent' : (PATHS[index % PATHS.length] ?? '')
    const asked: Promise<HttpResult> = client.request({
      url: new URL(site.url(path, `h${index % HOSTS}.test`)),
      method: 'GET',
      headers: { 'user-agent': 'leaks', 'accept-encoding': 'gzip, br' },
      // A deadline that is not taken back stays for longer than the count.
      limits: { connectMs: 5_000, headersMs: 5_000, idleMs: 5_000, totalMs: 600_000, maxBodyBytes: 100_000 },
      keepBody: () => true,
      signal: isAborted ? own.signal : stop.signal,
    })
    if (isAborted) setTimeout(() => own.abort(new Error('enough')), 5)
    try {
      counts[(await asked).kind] += 1
    } catch (error) {
      if (!own.signal.aborted) throw error
      counts.aborted += 1
    }
    // The site remembers what it was asked, which is no leak of the client.
    if (site.requests.length > 10_000) site.requests.length = 0
  }

  const heapAt: number[] = []
  let next = 0
  const started = performance.now()
  const work = async (): Promise<void> => {
    while (next < REQUESTS) {
      const index = next
      next += 1
      await ask(index)
      if (index === Math.floor(REQUESTS / 5) || index === REQUESTS - 1) {
        collect?.()
        heapAt.push(process.memoryUsage().heapUsed)
      }
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  const seconds = (performance.now() - started) / 1_000
  const left = (): Left => ({
    sockets: site.connections.open,
    resources: Math.max(0, resources() - before),
    listeners: getEventListeners(stop.signal, 'abort').length,
  })
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
  const leftIdle = left()
  await client.close()
  await new Promise((resolve) => setTimeout(resolve, 500))
  const [early = 0, late = 0] = heapAt
  const report: LeaksReport = {
    requests: REQUESTS,
    concurrency: CONCURRENCY,
    seconds,
    made: counts,
    leftIdle,
    leftClosed: left(),
    heapGrowthMiB: (late - early) / 1_048_576,
    warnings,
  }
  await site.close()
  await new Promise((resolve) => process.send?.(report, resolve))
  process.disconnect?.()
}

await main()
