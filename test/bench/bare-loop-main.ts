import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzipSync, gunzip as gunzipWithCallback } from 'node:zlib'
import avsc from 'avsc'
import kafkajs from 'kafkajs'
import { Pool } from 'undici'
import { registerZstdCodec } from './zstd-codec.ts'

/**
 * What one writes in an afternoon, with nothing in it that could be left out: requests by undici, gunzip, avsc, kafkajs in sends of 16.
 * No queue, no pace, no robots.txt, no repeats, no outcome, no commit. It fetches its list once and ends.
 */
export interface BareLoopOptions {
  readonly brokers: readonly string[]
  readonly topic: string
  readonly partitions: number
  readonly urls: { readonly hosts: readonly string[]; readonly perHost: number; readonly port: number }
  readonly concurrency: number
  /**
   * `packed`: the body as it came, as Millrace stores it. `zstd`: the decoded body, packed by Kafka's client with the codec that this
   * folder has.
   */
  readonly store: 'packed' | 'zstd'
  readonly zstdFolder?: string
}

const options = JSON.parse(process.argv[2] ?? '{}') as BareLoopOptions
const { CompressionTypes, Kafka, logLevel } = kafkajs
const PAGES_PER_SEND = 16

if (options.store === 'zstd' && options.zstdFolder !== undefined) registerZstdCodec(options.zstdFolder, kafkajs)

const schema = readFileSync(fileURLToPath(new URL('../../schemas/Page.avsc', import.meta.url)), 'utf8')
const pageType = avsc.Type.forSchema(JSON.parse(schema) as avsc.Schema)
const gunzip = promisify(gunzipWithCallback)
const producer = new Kafka({ brokers: [...options.brokers], clientId: 'bare-loop', logLevel: logLevel.ERROR }).producer()
const pools = new Map<string, Pool>()
const sends = new Set<Promise<unknown>>()
let pending: { key: string; value: Buffer }[] = []
let sendCount = 0

const { hosts, perHost, port } = options.urls
let next = 0
/** Host after host, so that no host waits for itself. */
function nextUrl(): { host: string; path: string } | undefined {
  if (next >= hosts.length * perHost) return undefined
  const index = next++
  return { host: hosts[index % hosts.length] ?? '', path: `/${Math.floor(index / hosts.length)}` }
}

function poolOf(host: string): Pool {
  let pool = pools.get(host)
  if (pool === undefined) {
    const lookup = (_: string, __: unknown, done: (error: null, found: { address: string; family: number }[]) => void): void =>
      done(null, [{ address: '127.0.0.1', family: 4 }])
    pool = new Pool(`http://${host}:${port}`, { connections: 4, pipelining: 1, connect: { lookup: lookup as never } })
    pools.set(host, pool)
  }
  return pool
}

async function fetchPage({ host, path }: { host: string; path: string }): Promise<void> {
  const url = `http://${host}:${port}${path}`
  const { statusCode, headers, body } = await poolOf(host).request({
    path,
    method: 'GET',
    headers: { 'accept-encoding': 'gzip, deflate, br' },
  })
  const wire = Buffer.from(await body.arrayBuffer())
  // As large pieces would be: small ones are quicker on the thread that has them.
  const decoded = wire.length > 1_048_576 ? await gunzip(wire) : gunzipSync(wire)
  const value = pageType.toBuffer({
    ...EMPTY_PAGE,
    url,
    canonicalUrl: url,
    finalUrl: url,
    status: statusCode,
    headers: Object.entries(headers).map(([name, text]) => ({ name, value: String(text) })),
    contentType: 'text/html',
    body: options.store === 'packed' ? wire : decoded,
    bodyEncoding: options.store === 'packed' ? 'gzip' : 'identity',
    bodyLength: decoded.length,
    fetchedAt: Date.now(),
  })
  pending.push({ key: url, value })
  if (pending.length >= PAGES_PER_SEND) await send()
}

async function send(): Promise<void> {
  const partition = sendCount++ % options.partitions
  const messages = pending.map((message) => ({ ...message, partition }))
  pending = []
  const compression = options.store === 'zstd' ? CompressionTypes.ZSTD : CompressionTypes.None
  const sending = producer.send({ topic: options.topic, acks: -1, compression, messages }).finally(() => sends.delete(sending))
  sends.add(sending)
  // As much in flight as the fetch stage has.
  if (sends.size > 4) await Promise.race(sends)
}

const EMPTY_PAGE = {
  fetchId: createHash('sha256').update('none').digest('hex').slice(0, 32),
  taskId: '00000000-0000-7000-8000-000000000000',
  redirects: [],
  charset: 'UTF-8',
  charsetSource: 'header',
  bodyRef: null,
  bodySha256: '',
  truncated: null,
  ttfbMs: 1,
  totalMs: 2,
  remoteAddress: '127.0.0.1',
  robots: { verdict: 'none', rule: null },
  policy: { key: 'none', ratePerSecond: 0, concurrency: 0, crawlDelayMs: 0 },
  attempt: 1,
  crawlId: null,
  jobId: null,
  round: 0,
  lane: 'normal',
  depth: 0,
  maxDepth: 0,
  seedUrl: null,
  parentUrl: null,
  extractors: [],
  dedup: 'none',
  meta: {},
  traceId: null,
  enqueuedAt: null,
}

await producer.connect()
await Promise.all(
  Array.from({ length: options.concurrency }, async () => {
    for (let url = nextUrl(); url !== undefined; url = nextUrl()) await fetchPage(url)
  }),
)
if (pending.length > 0) await send()
await Promise.all(sends)
await producer.disconnect()
for (const pool of pools.values()) await pool.close()
process.disconnect?.()
