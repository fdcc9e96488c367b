import { fileURLToPath } from 'node:url'
import type { Comparison } from '../comparison/compare.ts'
import type { Config } from '../config/options.ts'
import { SHOP_HOST } from '../example/shop.ts'
import { type ShopServer, startShopServer } from '../example/shop-server.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Observer } from '../kernel/observe.ts'
import { loadConfigured } from './extractors/configured-extractors.ts'
import { recordsOf } from './records/stored-records.ts'
import { compareShadow } from './replay/shadow-comparison.ts'
import { type ReplayProgress, runShadow, type ShadowReport } from './replay/shadow-replay.ts'
import { run } from './run/run.ts'
import type { RunProgress, RunReport } from './run/run-report.ts'
import { Runtime } from './runtime/runtime.ts'
import { planRange } from './trials/plan-range.ts'

export interface ExampleOptions {
  readonly config: Config
  readonly version: string
  readonly clock: Clock
  readonly observer: Observer
  readonly draining: AbortSignal
  readonly aborting: AbortSignal
  readonly onStep: (step: ExampleStep) => Promise<void>
  readonly onRunProgress: (progress: RunProgress) => void
  readonly onReplayProgress: (progress: ReplayProgress) => void
}

/** What the example shows, one thing after the other. */
export type ExampleStep =
  | { readonly kind: 'kafka'; readonly brokers: readonly string[]; readonly startedMs: number; readonly dataDir: string }
  | { readonly kind: 'shop'; readonly port: number; readonly paces: Readonly<Record<string, number>> }
  | { readonly kind: 'crawled'; readonly report: RunReport; readonly requests: number }
  | { readonly kind: 'records'; readonly records: Awaited<ReturnType<typeof recordsOf>> }
  | { readonly kind: 'replayed'; readonly report: ShadowReport; readonly requests: number; readonly comparison: Comparison }
  | { readonly kind: 'interrupted' }

const EXTRACTORS = fileURLToPath(new URL('../../src/example/extractors/', import.meta.url))
/** Requests per second, so that each department shows a pace of its own. */
const PACES: Readonly<Record<string, number>> = {
  'www.millshop.example': 10,
  'tea.millshop.example': 25,
  'books.millshop.example': 20,
  'prints.millshop.example': 6,
}
const DRAIN_MS = 15_000

/** The configuration of the example: loopback is allowed for the shop alone, and each department has a pace of its own. */
export function exampleConfig(config: Config): Config {
  return {
    ...config,
    'fetch.allowAddresses': [...config['fetch.allowAddresses'], '127.0.0.1/32'],
    'fetch.resolve': { ...config['fetch.resolve'], '*.millshop.example': '127.0.0.1' },
    'politeness.rules': Object.entries(PACES).map(([match, ratePerSecond]) => ({ match, ratePerSecond, concurrency: 2 })),
    'crawl.maxDepth': 12,
  }
}

/** The main job on the built-in shop: crawl, look at the records, replay with a better extractor. */
export async function runExample(options: ExampleOptions): Promise<void> {
  const { clock, observer, draining, aborting, onStep } = options
  const config = exampleConfig(options.config)
  const startedMono = clock.mono()
  const runtime = await Runtime.open({ config, owner: 'millrace example', clock, observer, signal: draining })
  try {
    await onStep({ kind: 'kafka', brokers: runtime.brokers, startedMs: clock.mono() - startedMono, dataDir: runtime.dataDir })
    const shop = await startShopServer()
    runtime.onClose('example shop', () => shop.close())
    await onStep({ kind: 'shop', port: shop.port, paces: PACES })
    if (!(await crawl(runtime, shop, options))) return onStep({ kind: 'interrupted' })
    await onStep({ kind: 'records', records: await recordsOf(runtime, runtime.topics.records, 'article', 1) })
    if (!draining.aborted) await replay(runtime, shop, options)
  } finally {
    if (aborting.aborted) observer.emit('ServiceStopping')
    await runtime.close()
  }
}

async function crawl(runtime: Runtime, shop: ShopServer, options: ExampleOptions): Promise<boolean> {
  const report = await run(runtime, {
    seeds: [{ text: `http://${SHOP_HOST}:${shop.port}/`, line: undefined }],
    extractors: await exampleExtractor(1),
    maxWaitMs: 60_000,
    keepRunning: false,
    drainTimeoutMs: DRAIN_MS,
    version: options.version,
    onProgress: options.onRunProgress,
    draining: options.draining,
    aborting: options.aborting,
  })
  await options.onStep({ kind: 'crawled', report, requests: shop.requestCount() })
  return !report.interrupted
}

async function replay(runtime: Runtime, shop: ShopServer, options: ExampleOptions): Promise<void> {
  const before = shop.requestCount()
  const [extractor] = await exampleExtractor(2)
  if (extractor === undefined) return
  const scope = { start: { kind: 'earliest' }, filter: {} } as const
  const plan = await planRange(runtime, runtime.groups.extract(), scope, false)
  const report = await runShadow(runtime, {
    replayId: `example-${runtime.clock.now()}`,
    extractor,
    filter: {},
    plan,
    rate: undefined,
    out: undefined,
    drainTimeoutMs: DRAIN_MS,
    onProgress: options.onReplayProgress,
    draining: options.draining,
    aborting: options.aborting,
  })
  if (report.interrupted) return options.onStep({ kind: 'interrupted' })
  const comparison = await compareShadow(runtime, report, extractor, { plan, filter: {} })
  await options.onStep({ kind: 'replayed', report, requests: shop.requestCount() - before, comparison })
}

function exampleExtractor(version: 1 | 2): ReturnType<typeof loadConfigured> {
  return loadConfigured([exampleExtractorFile(version)])
}

/** Where the extractor of the example lies, for people who want to go on with it. */
export function exampleExtractorFile(version: 1 | 2): string {
  return `${EXTRACTORS}article.v${version}.yaml`
}
