import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DelayWorker, type DelayWorkerOptions } from '../../src/delay/delay-worker.ts'
import type { FetchWorkerOptions } from '../../src/fetch/fetch-options.ts'
import { FetchWorker } from '../../src/fetch/fetch-worker.ts'
import type { HttpExchange, HttpRequest, HttpResult } from '../../src/fetch/http-exchange.ts'
import { LoopShare } from '../../src/fetch/loop-share.ts'
import { KafkaAdmin } from '../../src/kafka/admin.ts'
import type { KafkaClient } from '../../src/kafka/client.ts'
import type { PartitionLayout } from '../../src/kafka/layout.ts'
import type { KafkaMessage } from '../../src/kafka/message.ts'
import { DurableProducer } from '../../src/kafka/producer.ts'
import { TaskPublisher } from '../../src/kafka/task-publisher.ts'
import { batchLimits, gzipTopics, type TopicDefinition, topicDefinitions } from '../../src/kafka/topic-definitions.ts'
import { WindowedConsumer } from '../../src/kafka/windowed-consumer.ts'
import type { PolitenessKey } from '../../src/kernel/brand.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { ownProcess } from '../../src/machine/process-identity.ts'
import { createMessageCodec } from '../../src/message/codec.ts'
import type { Outcome, Page, UrlTask } from '../../src/message/generated/types.ts'
import { createSchemaStore } from '../../src/message/schema-store.ts'
import { groupNames, type TopicNames, topicNames } from '../../src/message/topics.ts'
import { newUrlTask } from '../../src/message/url-task.ts'
import type { SitePolicy } from '../../src/politeness/policy.ts'
import { openStateStore } from '../../src/state/open-state-store.ts'
import type { StateStore } from '../../src/state/state-store.ts'
import { readAll, testClient } from './kafka.ts'
import { QUICK_MEMBER, recordingObserver } from './kafka-fixture.ts'
import { uniqueName } from './services.ts'

const DRAIN = { mode: 'drain', timeoutMs: 10_000 } as const

/** One deployment for a test: topics of its own on the real broker, state on LMDB, and workers that are built like in production. */
export class FetchFixture {
  readonly client: KafkaClient
  readonly topics: TopicNames
  readonly codec = createMessageCodec({ schemaStore: createSchemaStore() })
  readonly seen = recordingObserver()
  readonly producer: DurableProducer
  readonly publisher: TaskPublisher
  readonly state: StateStore
  readonly layout: () => PartitionLayout
  readonly #groups: ReturnType<typeof groupNames>
  readonly #clusterId: string
  readonly #releases: (() => Promise<unknown> | unknown)[] = []

  private constructor(parts: {
    client: KafkaClient
    topics: TopicNames
    prefix: string
    state: StateStore
    clusterId: string
    definitions: readonly TopicDefinition[]
  }) {
    this.client = parts.client
    this.topics = parts.topics
    this.state = parts.state
    this.#clusterId = parts.clusterId
    this.#groups = groupNames(parts.prefix)
    const counts = new Map(parts.definitions.map(({ topic, partitions }) => [topic, partitions]))
    const partitionsOf = (topic: string): number => counts.get(topic) ?? 1
    this.layout = () => ({ version: 1, knows: (topic) => counts.has(topic), partitionsOf, countsOf: (topic) => [partitionsOf(topic)] })
    const { client } = this
    this.producer = new DurableProducer({
      client,
      clock: systemClock,
      observer: this.seen.observer,
      maxBatchBytes: batchLimits(parts.definitions),
      codec: gzipTopics(parts.definitions),
    })
    this.publisher = this.publisherBy(systemClock)
  }

  /** One whose machine has another time. */
  publisherBy(clock: Clock): TaskPublisher {
    const { topics, codec, producer, layout } = this
    return new TaskPublisher({ topics, codec, producer, layout, clock })
  }

  /** `delays`: of the delay topics, shortened so that a test need not wait. */
  static async open(
    options: { partitions?: number; delays?: readonly number[]; maxBodyBytes?: number; redisUrl?: string } = {},
  ): Promise<FetchFixture> {
    const client = testClient()
    const prefix = `${uniqueName('fetch')}.`
    const plain = topicNames(prefix)
    const { delays } = options
    const topics =
      delays === undefined
        ? plain
        : { ...plain, delays: plain.delays.map(({ topic }, index) => ({ topic, delayMs: delays[index] ?? 3_600_000 })) }
    const definitions = topicDefinitions({
      names: topics,
      replication: 1,
      partitions: { urls: options.partitions ?? 2, records: 1, deadLetters: 1 },
      retention: { htmlMs: 3_600_000 },
      maxBodyBytes: options.maxBodyBytes ?? 1_048_576,
      maxMessageBytes: 10_485_760,
    })
    const admin = new KafkaAdmin(client, systemClock)
    await admin.createTopics(definitions)
    const clusterId = await admin.clusterId()
    await admin.close()
    const folder = mkdtempSync(join(tmpdir(), 'millrace-fetch-'))
    const { observer } = recordingObserver()
    const place = options.redisUrl === undefined ? { dataDir: folder } : { redisUrl: options.redisUrl }
    const state = await openStateStore({ ...place, namespace: { clusterId, prefix }, clock: systemClock, observer, warmUp: false })
    const fixture = new FetchFixture({ client, topics, prefix, state, clusterId, definitions })
    fixture.#releases.push(() => rmSync(folder, { recursive: true, force: true }))
    fixture.#releases.push(() => state.close())
    await fixture.producer.start()
    fixture.#releases.push(() => fixture.producer.stop(DRAIN))
    return fixture
  }

  async close(): Promise<void> {
    for (const release of this.#releases.splice(0).reverse()) await release()
  }

  onClose(release: () => Promise<unknown> | unknown): void {
    this.#releases.push(release)
  }

  async produce(tasks: readonly (Partial<UrlTask> & { readonly url: string })[]): Promise<UrlTask[]> {
    const made = tasks.map((task, index) =>
      newUrlTask({ taskId: `task-${uniqueName(String(index))}`, enqueuedAt: Date.now(), lane: 'normal', ...task }),
    )
    await this.publisher.publish(made)
    return made
  }

  async fetchWorker(exchange: HttpExchange, options: Partial<FetchWorkerOptions> = {}): Promise<FetchWorker> {
    const worker = new FetchWorker({
      createConsumer: (handlers) =>
        new WindowedConsumer({
          client: this.client,
          groupId: this.#groups.fetch,
          topics: Object.values(this.topics.urls),
          settings: QUICK_MEMBER,
          commitIntervalMs: 100,
          observer: this.seen.observer,
          clock: systemClock,
          ...handlers,
        }),
      producer: this.producer,
      codec: this.codec,
      topics: this.topics,
      layout: this.layout,
      clusterId: this.#clusterId,
      state: this.state,
      exchange,
      share: new LoopShare(systemClock),
      paceOf: fastPace,
      addressOf: async () => '127.0.0.1',
      robots: 'ignore',
      budgetsOf: () => [],
      isCrawlStopped: () => false,
      isHopInScope: () => true,
      crawlDelayMaxMs: 30_000,
      owner: ownProcess(uniqueName('worker')),
      siteHealth: { isAdaptive: true, breakerFailures: 5, firstParkMs: 1_000, maxParkMs: 10_000 },
      giveUpMs: 0,
      userAgent: 'millrace-test/1.0',
      cookies: 'none',
      unchangedMs: 600_000,
      keptSince: async () => 0,
      limits: { connectMs: 2_000, headersMs: 5_000, idleMs: 5_000, totalMs: 10_000, maxBodyBytes: 1_048_576 },
      keptTypes: new Set(['text/html', 'text/plain']),
      concurrency: 20,
      maxBytesInFlight: 67_108_864,
      retry: { maxAttempts: 3, firstDelayMs: 300, maxDelayMs: 2_000 },
      deadLetterMaxBytes: 1_048_576,
      claimTtlMs: 60_000,
      clock: systemClock,
      observer: this.seen.observer,
      ...options,
    })
    await worker.start()
    this.#releases.push(() => worker.stop(DRAIN))
    return worker
  }

  async delayWorker(options: Partial<DelayWorkerOptions> = {}): Promise<DelayWorker> {
    const worker = new DelayWorker({
      createConsumer: (handlers) =>
        new WindowedConsumer({
          client: this.client,
          groupId: this.#groups.delay,
          topics: this.topics.delays.map(({ topic }) => topic),
          settings: QUICK_MEMBER,
          commitIntervalMs: 100,
          observer: this.seen.observer,
          clock: systemClock,
          ...handlers,
        }),
      producer: this.producer,
      codec: this.codec,
      topics: this.topics,
      layout: this.layout,
      clusterId: this.#clusterId,
      deadLetterMaxBytes: 1_048_576,
      clock: systemClock,
      observer: this.seen.observer,
      ...options,
    })
    await worker.start()
    this.#releases.push(() => worker.stop(DRAIN))
    return worker
  }

  async messages(topic: string): Promise<KafkaMessage[]> {
    return readAll(this.client, topic)
  }

  async outcomes(): Promise<Outcome[]> {
    return (await this.messages(this.topics.outcomes)).map(({ value }) => this.codec.decode('Outcome', value))
  }

  async pages(): Promise<Page[]> {
    return (await this.messages(this.topics.html)).map(({ value }) => this.codec.decode('Page', value))
  }

  /** Outcomes, once so many final ones are there. */
  finalOutcomes(count: number): Promise<Outcome[] | false> {
    return this.outcomes().then((all) => {
      const final = all.filter(({ kind }) => kind !== 'RETRY')
      return final.length >= count ? final : false
    })
  }
}

/** A pace that no test waits for. */
export function fastPace(url: URL): SitePolicy {
  return {
    key: url.hostname as PolitenessKey,
    ratePerSecond: 1_000,
    burst: 10,
    concurrency: 4,
    crawlDelayMs: 0,
    isPaused: false,
    resetAt: 0,
    fasterAt: 0,
    resumedAt: 0,
  }
}

export interface TestRequest {
  readonly host: string
  readonly path: string
  readonly startedAt: number
  readonly headers: IncomingMessage['headers']
}

/** A site on loopback that answers for any host, and keeps what it was asked. */
export class TestSite {
  readonly requests: TestRequest[] = []
  readonly #server: Server
  #port = 0

  constructor(answer: (request: TestRequest, response: ServerResponse) => void) {
    this.#server = createServer((incoming, response) => {
      const request = {
        host: (incoming.headers.host ?? '').replace(/:\d+$/, ''),
        path: incoming.url ?? '',
        startedAt: performance.now(),
        headers: incoming.headers,
      }
      this.requests.push(request)
      answer(request, response)
    })
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as AddressInfo).port
    return this
  }

  url(host: string, path: string): string {
    return `http://${host}:${this.#port}${path}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** An exchange that is a function; what it gives is an answer of 200 unless it says more. */
export function fakeExchange(
  answer: (request: HttpRequest, count: number) => Promise<FakeAnswer> | FakeAnswer,
): HttpExchange & { readonly requests: HttpRequest[] } {
  const requests: HttpRequest[] = []
  return {
    requests,
    proxiesBackInMs: () => 0,
    async request(request) {
      requests.push(request)
      const given = await answer(request, requests.length)
      if ('kind' in given) return given
      const body = Buffer.from(given.body ?? '')
      return {
        kind: 'response',
        status: given.status ?? 200,
        headers: Object.entries({ 'content-type': 'text/html', ...given.headers }).map(([name, value]) => ({ name, value })),
        contentType: 'text/html',
        body,
        encoding: 'identity',
        decoded: body,
        truncated: given.truncated ?? null,
        wireBytes: body.length,
        ttfbMs: 1,
        connectMs: 0,
        totalMs: 2,
        remoteAddress: '127.0.0.1',
      }
    },
  }
}

export type FakeAnswer =
  | HttpResult
  | {
      readonly status?: number
      readonly body?: string
      readonly headers?: Readonly<Record<string, string>>
      readonly truncated?: 'size' | 'network' | 'undecoded'
    }
