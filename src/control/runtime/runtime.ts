import { join, resolve } from 'node:path'
import type { BlobStore } from '../../blobs/blob-store.ts'
import { WatchedBlobs } from '../../blobs/watched-blobs.ts'
import { wholeEnvironment } from '../../config/load.ts'
import type { Config } from '../../config/options.ts'
import type { EmbeddedBroker } from '../../embedded/broker-options.ts'
import { noRoomError } from '../../embedded/disk-space.ts'
import { acquireBroker } from '../../embedded/embedded-broker.ts'
import { KafkaAdmin } from '../../kafka/admin.ts'
import { createKafkaClient, type KafkaClient } from '../../kafka/client.ts'
import { type ConsumerSettings, DEFAULT_CONSUMER_SETTINGS } from '../../kafka/consumer-settings.ts'
import { ControlLog } from '../../kafka/control-log.ts'
import type { LayoutSource } from '../../kafka/layout.ts'
import { DurableProducer } from '../../kafka/producer.ts'
import { TaskPublisher } from '../../kafka/task-publisher.ts'
import { batchLimits, gzipTopics, type TopicDefinition } from '../../kafka/topic-definitions.ts'
import type { Clock } from '../../kernel/clock.ts'
import { causesOf, type ErrorCode, isMillraceError, MillraceError } from '../../kernel/errors.ts'
import { Gauges } from '../../kernel/gauges.ts'
import { ReleaseStack } from '../../kernel/lifecycle.ts'
import type { Observer } from '../../kernel/observe.ts'
import { openedOnce } from '../../kernel/opened-once.ts'
import { type Dependency, Outage } from '../../kernel/outage.ts'
import { cacheHome } from '../../machine/cache-home.ts'
import { createMessageCodec, type MessageCodec } from '../../message/codec.ts'
import { commandPayload, isMarkSubject } from '../../message/command.ts'
import { learnSchemas } from '../../message/learn-schemas.ts'
import type { RegistryPort } from '../../message/registry.ts'
import { isBegunBefore } from '../../message/replay-request.ts'
import { createSchemaStore, type SchemaStore } from '../../message/schema-store.ts'
import { type GroupNames, groupNames, type TopicNames, topicNames } from '../../message/topics.ts'
import { openStateStore } from '../../state/open-state-store.ts'
import type { StateStore } from '../../state/state-store.ts'
import { announceSchema } from './announce.ts'
import { learnAnnouncedSchema, withAnnouncements } from './announced-schema.ts'
import { blobStoreOf } from './blob-stores.ts'
import { DeadLetterMarksLog } from './dead-letter-marks-log.ts'
import { layoutSource } from './layout-command.ts'
import { isNewDeployment } from './new-deployment.ts'
import { processClientId } from './process-client-id.ts'
import { registryOf, watchedRegistry } from './registry-client.ts'
import { tlsNames, tlsOf } from './tls-config.ts'
import { wantedTopics } from './topic-settings.ts'

const EMBEDDED_SESSION_MS = 10_000
/** What a broker gives that is not there. */
const BROKER_AWAY: ReadonlySet<ErrorCode> = new Set(['KAFKA_UNREACHABLE', 'KAFKA_LOST', 'KAFKA_REQUEST_FAILED'])

/**
 * How members behave in their groups. For our own broker they wait without end: it rests while its disk is full and comes back by itself,
 * and whoever looks after it says when it does not (`Runtime.failed`).
 */
export function consumerSettingsOf(config: Config, isEmbedded: boolean): ConsumerSettings & { readonly sessionTimeoutMs: number } {
  const usual = isEmbedded ? EMBEDDED_SESSION_MS : DEFAULT_CONSUMER_SETTINGS.sessionTimeoutMs
  return { sessionTimeoutMs: config['kafka.sessionTimeout'] ?? usual, ...(isEmbedded ? { awayBudgetMs: Number.POSITIVE_INFINITY } : {}) }
}

export interface RuntimeOptions {
  readonly config: Config
  /** The command, as people know it. */
  readonly owner: string
  readonly clock: Clock
  readonly observer: Observer
  readonly signal?: AbortSignal
}

/**
 * What every verb stands on: the broker (the given one, or our own), and over it client, admin, codec, and, when first asked for,
 * producer, state and control log. Whoever opened it closes it; what was opened last is closed first.
 */
export class Runtime {
  readonly config: Config
  readonly clock: Clock
  readonly observer: Observer
  readonly owner: string
  readonly dataDir: string
  readonly brokers: readonly string[]
  /** Our own broker in the data folder. */
  readonly isEmbedded: boolean
  readonly clusterId: string
  readonly topics: TopicNames
  readonly groups: GroupNames
  readonly client: KafkaClient
  readonly admin: KafkaAdmin
  readonly schemaStore: SchemaStore
  readonly codec: MessageCodec
  /** What can be measured here while stages run. */
  readonly gauges = new Gauges()
  /** Undefined where `registry.url` is not set. */
  readonly registry: RegistryPort | undefined
  /**
   * Rejects when what all work stands on is gone for good, so that whoever works on must end: the control log that was opened here has
   * failed (commands are no longer obeyed), or our own broker has ended and is not started again. Never resolves.
   */
  readonly failed: Promise<never>
  /** Of the control log itself, which can't wait for what stands further on in it. */
  readonly #commandCodec: MessageCodec
  readonly #releases: ReleaseStack
  readonly #outages: Readonly<Record<Dependency, Outage>>
  readonly #isNew: boolean
  #fail: (error: unknown) => void = () => undefined
  #scope: ReleaseStack | undefined

  private constructor(options: RuntimeOptions, opened: OpenedBroker, releases: ReleaseStack) {
    this.config = options.config
    this.clock = options.clock
    this.observer = options.observer
    this.owner = options.owner
    this.dataDir = resolve(options.config.data)
    this.brokers = opened.brokers
    this.isEmbedded = opened.isEmbedded
    this.clusterId = opened.clusterId
    this.client = opened.client
    this.admin = opened.admin
    this.topics = topicNames(options.config['topics.prefix'])
    this.groups = groupNames(options.config['topics.prefix'])
    this.schemaStore = createSchemaStore()
    this.#outages = { registry: new Outage('registry', options), blobs: new Outage('blobs', options) }
    const registry = registryOf(options.config)
    this.registry = registry && watchedRegistry(registry, this.#outages.registry)
    this.#commandCodec = createMessageCodec({
      schemaStore: this.schemaStore,
      ...(this.registry === undefined ? {} : { registry: this.registry }),
    })
    this.codec = withAnnouncements(this.#commandCodec, {
      announce: (schema) => announceSchema(this, schema, options.signal),
      control: () => this.control(),
      observer: this.observer,
    })
    this.#releases = releases
    this.#isNew = opened.isNew
    this.failed = new Promise<never>((_, reject) => {
      this.#fail = reject
    })
    // Nobody has to listen: `control()` and what it gave reject as well.
    this.failed.catch(() => undefined)
    opened.lost?.catch((error: unknown) => this.#fail(error))
  }

  /** Errors: KAFKA_UNREACHABLE, KAFKA_NOT_AVAILABLE, KAFKA_START_FAILED, DATA_DIR_BROKEN, DATA_DIR_UNUSABLE. */
  static async open(options: RuntimeOptions): Promise<Runtime> {
    const releases = new ReleaseStack()
    try {
      return new Runtime(options, await openBroker(options, releases), releases)
    } catch (error) {
      await releases.releaseAll()
      throw error
    }
  }

  /**
   * How its members behave in their groups. On our own broker nobody else waits for us: a process that was killed is forgotten soon,
   * so that the next one need not wait for it.
   */
  get consumerSettings(): ReturnType<typeof consumerSettingsOf> {
    return consumerSettingsOf(this.config, this.isEmbedded)
  }

  /** All topics as the configuration wants them, with those that extractors name for their records. */
  wantedTopics(recordTopics: readonly string[] = []): TopicDefinition[] {
    return wantedTopics(this.config, this.isEmbedded, recordTopics)
  }

  get maxBatchBytes(): (topic: string) => number {
    return batchLimits(this.wantedTopics())
  }

  readonly producer = openedOnce(() => this.#openProducer())

  readonly state = openedOnce(() => this.#openState())

  /** Read to what was its end, and followed. Errors: KAFKA_TOPIC_MISSING before `topics apply`. */
  readonly control = openedOnce(() => this.#openControl())

  /** Which dead letters are dealt with. */
  readonly deadLetterMarks = new DeadLetterMarksLog(this)

  /**
   * Where large bodies lie, once it was found to answer; undefined where `blobs.url` is not set. Errors: BLOBS_UNREACHABLE, BLOBS_REFUSED.
   */
  readonly blobs = openedOnce(() => this.#openBlobs())

  /** What the stages of this process wait for now, beside Kafka and the state store. */
  waitsFor(): readonly Dependency[] {
    return Object.values(this.#outages).flatMap(({ dependency, isAway }) => (isAway ? [dependency] : []))
  }

  async layout(): Promise<LayoutSource> {
    return layoutSource(await this.control())
  }

  async publisher(): Promise<TaskPublisher> {
    const publisher = new TaskPublisher({
      topics: this.topics,
      codec: this.codec,
      producer: await this.producer(),
      layout: await this.layout(),
      clock: this.clock,
    })
    await publisher.prepare()
    return publisher
  }

  /** Something of the caller's that is to be closed before what it stands on: with the scope that it was made in, else with the runtime. */
  onClose(name: string, release: () => Promise<void> | void): void {
    ;(this.#scope ?? this.#releases).add(name, release)
  }

  /** Work that gives back what it acquired when it ends, so that it can be done again on the same runtime. One at a time. */
  async scoped<T>(work: () => Promise<T>): Promise<T> {
    if (this.#scope !== undefined) throw new MillraceError('USAGE', 'another run is under way in this process: wait for its end')
    const scope = new ReleaseStack()
    this.#scope = scope
    try {
      return await work()
    } finally {
      this.#scope = undefined
      await scope.releaseAll()
    }
  }

  /** What to tell of a failure: of a broker of our own that is away for want of space, that. */
  async reasonOf(error: unknown): Promise<unknown> {
    const isAway = [...causesOf(error)].some((cause) => isMillraceError(cause) && BROKER_AWAY.has(cause.code))
    const full = this.isEmbedded && isAway ? await noRoomError(this.dataDir) : undefined
    return full === undefined ? error : new MillraceError(full.code, full.message, { cause: error, context: full.context })
  }

  close(): Promise<void> {
    return this.#releases.releaseAll()
  }

  async #openProducer(): Promise<DurableProducer> {
    const definitions = this.wantedTopics()
    const producer = new DurableProducer({
      client: this.client,
      clock: this.clock,
      observer: this.observer,
      maxBatchBytes: batchLimits(definitions),
      codec: gzipTopics(definitions),
    })
    await producer.start()
    this.#releases.add('producer', () => producer.stop({ mode: 'drain', timeoutMs: 10_000 }))
    return producer
  }

  async #openState(): Promise<StateStore> {
    const redisUrl = this.config.redis
    const state = await openStateStore({
      // Our own broker has written into the folder by now, so the store can't see whether it was new.
      ...(redisUrl === undefined ? { dataDir: this.dataDir, ...(this.isEmbedded ? { warmUp: !this.#isNew } : {}) } : { redisUrl }),
      namespace: { clusterId: this.clusterId, prefix: this.config['topics.prefix'] },
      clock: this.clock,
      observer: this.observer,
    })
    this.#releases.add('state store', () => state.close())
    return state
  }

  async #openBlobs(): Promise<BlobStore | undefined> {
    const store = await blobStoreOf(this.config, this.clock)
    return store && new WatchedBlobs(store, this.#outages.blobs)
  }

  async #openControl(): Promise<ControlLog> {
    const control = new ControlLog({
      client: this.client,
      clock: this.clock,
      observer: this.observer,
      topic: this.topics.control,
      learn: (values, signal) => learnSchemas(this.#commandCodec, values, { clock: this.clock, signal }),
      decode: (value) => {
        const command = this.#commandCodec.decode('Command', value)
        commandPayload(command)
        return command
      },
      passOver: isBegunBefore,
      isTransactional: isMarkSubject,
    })
    const { schemaStore, observer } = this
    control.subscribe((logged) => learnAnnouncedSchema(logged, { schemaStore, observer, topic: this.topics.control }))
    await control.start()
    this.#releases.add('control log', () => control.stop({ mode: 'abort', timeoutMs: 0 }))
    await control.ready
    // Not sooner: one that never came to its end is opened anew by whoever asks next.
    control.closed.catch((error: unknown) => this.#fail(error))
    return control
  }
}

interface OpenedBroker {
  readonly brokers: readonly string[]
  readonly isEmbedded: boolean
  /** Undefined for given brokers. */
  readonly lost: Promise<never> | undefined
  /** Our own broker, in a data folder that held nothing before. */
  readonly isNew: boolean
  readonly clusterId: string
  readonly client: KafkaClient
  readonly admin: KafkaAdmin
}

async function openBroker(options: RuntimeOptions, releases: ReleaseStack): Promise<OpenedBroker> {
  const { config, clock, observer, signal } = options
  const given = config.brokers
  const isEmbedded = given.length === 0
  const isNew = isEmbedded && isNewDeployment(resolve(config.data))
  const own = isEmbedded ? await acquire(options, releases) : undefined
  const brokers = own?.brokers ?? given
  const client = createKafkaClient(connectionOf(config, brokers, isEmbedded), observer)
  await client.verifyReachable({ timeoutMs: 10_000, ...(signal === undefined ? {} : { signal }) })
  const admin = new KafkaAdmin(client, clock)
  releases.add('admin connection', () => admin.close())
  return { brokers, isEmbedded, lost: own?.lost, isNew, client, admin, clusterId: await admin.clusterId() }
}

async function acquire(options: RuntimeOptions, releases: ReleaseStack): Promise<EmbeddedBroker> {
  const broker = await acquireBroker({ ...embeddedOptions(options.config), ...options })
  releases.add('embedded broker', () => broker.release())
  return broker
}

/** What the embedded broker needs to know of this machine and its user. */
export function embeddedOptions(config: Config): { dataDir: string; cacheDir: string; installMissing: boolean; javaHome?: string } {
  const environment = wholeEnvironment()
  const dataDir = resolve(config.data)
  return {
    dataDir,
    cacheDir: join(cacheHome(environment, dataDir), 'millrace'),
    installMissing: environment.MILLRACE_NO_INSTALL !== '1',
    ...(environment.JAVA_HOME === undefined ? {} : { javaHome: environment.JAVA_HOME }),
  }
}

function connectionOf(config: Config, brokers: readonly string[], isEmbedded: boolean): Parameters<typeof createKafkaClient>[0] {
  const mechanism = config['kafka.sasl.mechanism']
  return {
    brokers,
    clientId: isEmbedded ? processClientId(config['kafka.clientId']) : config['kafka.clientId'],
    ...(config['kafka.ssl'] ? { tls: { material: tlsOf(config, 'kafka'), names: tlsNames('kafka') } } : {}),
    ...(mechanism === undefined
      ? {}
      : { sasl: { mechanism, username: config['kafka.sasl.username'] ?? '', password: config['kafka.sasl.password'] ?? '' } }),
  }
}

/** Errors: KAFKA_TOPIC_MISSING naming those that are not there. */
export async function requireTopics(runtime: Runtime, topics: readonly string[]): Promise<void> {
  const existing = new Set(await runtime.admin.listTopics())
  const missing = topics.filter((topic) => !existing.has(topic))
  if (missing.length === 0) return
  const user = runtime.config['kafka.sasl.username']
  // A topic that a user may not see is answered like one that is not there.
  const unseen = user === undefined ? '' : `, or lets user ${user} see none`
  throw new MillraceError('KAFKA_TOPIC_MISSING', `the broker ${runtime.brokers.join(', ')} has no topic ${missing.join(', ')}${unseen}`)
}
