import { access, constants } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { BlobStore } from '../../blobs/blob-store.ts'
import { configAdvice } from '../../config/advice.ts'
import type { Config } from '../../config/options.ts'
import { formatDuration, formatSize } from '../../config/units.ts'
import { freeDiskBytes, ROOM_TO_START_BYTES } from '../../embedded/disk-space.ts'
import { NATIVE_PACKAGE, NATIVE_VERSION, nativeParser } from '../../extract/native/native-parser.ts'
import { kafkajsModules } from '../../kafka/patches/kafkajs-modules.ts'
import { KAFKAJS_VERSION } from '../../kafka/patches/load-kafkajs.ts'
import type { TopicPlan } from '../../kafka/topic-plan.ts'
import type { Clock } from '../../kernel/clock.ts'
import { countText } from '../../kernel/count-text.ts'
import { ERRORS, type ErrorCode, errorText, isMillraceError } from '../../kernel/errors.ts'
import type { Observer } from '../../kernel/observe.ts'
import { makeFolder } from '../../machine/make-folder.ts'
import type { RegistryPort } from '../../message/registry.ts'
import { stateStoreHealth } from '../../state/open-state-store.ts'
import type { StoreHealth } from '../../state/state-store.ts'
import { blobStoreOf } from '../runtime/blob-stores.ts'
import { registryOf } from '../runtime/registry-client.ts'
import { embeddedOptions, Runtime } from '../runtime/runtime.ts'
import { certificateFindings } from '../runtime/tls-config.ts'
import { layoutDifferences } from '../runtime/topics.ts'
import { shadowedRules } from '../sites/shadowed-rules.ts'
import { leastFreeBytes } from '../stages/disk-guard.ts'
import { offlineTexts } from './stalls.ts'

export interface Finding {
  readonly check: string
  readonly level: 'ok' | 'warn' | 'fail'
  readonly text: string
  /** What to do; undefined where all is well. */
  readonly fix?: string
  /** A dependency that can't be reached. */
  readonly unreachable?: boolean
}

export interface DoctorOptions {
  readonly config: Config
  readonly clock: Clock
  readonly observer: Observer
  readonly signal: AbortSignal
}

const MIN_NODE = [20, 19] as const
/** More than a hundred years. */
const FOR_EVER_MINUTES = 52_560_000
/** A clock that is further off makes timestamps of messages lie. */
const MAX_SKEW_MS = 5_000

const ok = (check: string, text: string): Finding => ({ check, level: 'ok', text })
const warn = (check: string, text: string, fix: string): Finding => ({ check, level: 'warn', text, fix })
const fail = (check: string, text: string, fix: string): Finding => ({ check, level: 'fail', text, fix })

/** A dependency, or what is read of it, failed. `otherwise`: the code of an error that is none of ours. */
function failure(check: string, error: unknown, otherwise: ErrorCode): Finding {
  const { exitCode, hint } = ERRORS[isMillraceError(error) ? error.code : otherwise]
  return { ...fail(check, errorText(error), hint), unreachable: exitCode === 4 }
}

/** Loads what parses pages, which the commands beside `doctor` do without. */
async function* usable(config: Config): AsyncGenerator<Finding> {
  const { configurationFindings } = await import('./config-check.ts')
  const { faults, advice } = await configurationFindings(config)
  for (const { code, message } of faults) yield fail('configuration', message, ERRORS[code].hint)
  for (const text of advice) yield warn('configuration', text, 'Leave it where these files are on another machine.')
}

function* certificates(config: Config, now: number): Generator<Finding> {
  const renew = 'Have it renewed; processes read it when they start.'
  for (const { isOver, text } of certificateFindings(config, now)) yield (isOver ? fail : warn)('certificate', text, renew)
}

/** Looks at everything that a crawl needs, one finding per check, each with a fix. Starts our own Kafka where no brokers are given. */
export async function* doctor(options: DoctorOptions): AsyncGenerator<Finding> {
  const { config } = options
  yield nodeVersion()
  yield kafkajsVersion()
  yield htmlParser(config)
  for (const advice of [...configAdvice(config), ...shadowedRules(config)])
    yield warn('configuration', advice, 'See `millrace config print`.')
  yield* usable(config)
  yield await dataFolder(config)
  let runtime: Runtime
  try {
    yield* certificates(config, options.clock.now())
    runtime = await Runtime.open({ ...options, owner: 'millrace doctor' })
  } catch (error) {
    options.signal.throwIfAborted()
    const isOurs = isMillraceError(error) && error.code.startsWith('CONFIG_')
    yield failure(isOurs ? 'configuration' : 'Kafka', error, 'KAFKA_UNREACHABLE')
    yield* withoutKafka(options)
    return
  }
  try {
    const where = runtime.isEmbedded ? 'own, in the data folder' : 'given'
    yield ok('Kafka', `cluster ${runtime.clusterId} at ${runtime.brokers.join(', ')} (${where})`)
    yield* answered('offsets', brokerFindings(runtime))
    yield* answered('topics', topicFindings(runtime))
    yield* answered('layout', layoutFindings(runtime))
    yield* stateFindings(async () => (await runtime.state()).health())
    yield* blobFindings(() => runtime.blobs())
    yield* registryFindings(() => runtime.registry)
  } finally {
    await runtime.close()
  }
}

/** Whatever can be looked at while Kafka is away, and what can't. */
async function* withoutKafka({ config, clock, observer, signal }: DoctorOptions): AsyncGenerator<Finding> {
  for (const check of ['offsets', 'topics', 'layout'])
    yield warn(check, 'not checked, since Kafka was not reached', 'See to Kafka first, then run `millrace doctor` again.')
  yield* stateFindings(() => stateStoreHealth({ redisUrl: config.redis, dataDir: resolve(config.data), clock, observer }))
  signal.throwIfAborted()
  yield* blobFindings(() => blobStoreOf(config, clock))
  signal.throwIfAborted()
  yield* registryFindings(() => registryOf(config))
}

function nodeVersion(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isNew = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1])
  const text = `Node.js ${process.versions.node}`
  return isNew ? ok('Node.js', text) : fail('Node.js', text, `Install Node.js ${MIN_NODE.join('.')} or newer.`)
}

/** Our corrections reach into its files. */
function kafkajsVersion(): Finding {
  const version = kafkajsModules().version()
  return version === KAFKAJS_VERSION
    ? ok('kafkajs', `kafkajs ${version}`)
    : fail(
        'kafkajs',
        `kafkajs ${version} is installed, and ${KAFKAJS_VERSION} is needed`,
        `Run \`npm install kafkajs@${KAFKAJS_VERSION}\`.`,
      )
}

function htmlParser(config: Config): Finding {
  const choice = config['extract.parser']
  if (choice === 'parse5') return ok('HTML parser', 'parse5, as extract.parser says')
  const native = nativeParser()
  if (native.ok) return ok('HTML parser', `${NATIVE_PACKAGE} ${NATIVE_VERSION} for what it reads alike, parse5 for the rest`)
  if (choice === 'auto') return ok('HTML parser', `parse5 (no native parser: ${native.reason})`)
  return fail('HTML parser', `extract.parser is native: ${native.reason}`, `Run \`npm install ${NATIVE_PACKAGE}@${NATIVE_VERSION}\`.`)
}

async function dataFolder(config: Config): Promise<Finding> {
  const { dataDir } = embeddedOptions(config)
  try {
    makeFolder(dataDir)
    await access(dataDir, constants.W_OK)
    return roomFinding(config, dataDir, await freeDiskBytes(dataDir))
  } catch (error) {
    return fail(
      'data folder',
      `${dataDir} can not be written: ${errorText(error)}`,
      'Correct its permissions, or use another folder with --data.',
    )
  }
}

/** Pure. On given brokers little is written there, and nothing pauses for want of space. */
export function roomFinding(config: Config, dataDir: string, freeBytes: number): Finding {
  const text = `${dataDir} has ${(freeBytes / 1_073_741_824).toFixed(1)} GiB free`
  const isEmbedded = config.brokers.length === 0
  const needed = isEmbedded ? leastFreeBytes(config) : ROOM_TO_START_BYTES
  if (freeBytes >= needed) return ok('data folder', text)
  return isEmbedded
    ? fail('data folder', text, `Free space: fetching pauses below ${formatSize(needed)}.`)
    : warn('data folder', text, 'Free space, or use another folder with --data: what workers keep there could not be written.')
}

/** What a look could not be had for is a finding too. */
async function* answered(check: string, findings: AsyncGenerator<Finding>): AsyncGenerator<Finding> {
  try {
    yield* findings
  } catch (error) {
    if (!isMillraceError(error) || error.code === 'ABORTED') throw error
    yield failure(check, error, error.code)
  }
}

async function* brokerFindings(runtime: Runtime): AsyncGenerator<Finding> {
  const configs = await runtime.admin.brokerConfigs().catch((error: unknown): Readonly<Record<string, string>> => {
    // Of the cluster, not of its topics: nothing else needs it.
    if (!isMillraceError(error, 'KAFKA_DENIED')) throw error
    return {}
  })
  const minutes = Number(configs['offsets.retention.minutes'] ?? Number.NaN)
  const needed = Math.max(runtime.config['topics.retention.html'], runtime.config['topics.retention.urls'])
  if (Number.isNaN(minutes))
    yield warn(
      'offsets',
      'the broker does not tell offsets.retention.minutes',
      'Allow DescribeConfigs of the cluster for this user, or look yourself.',
    )
  else if (minutes * 60_000 < needed) {
    const text = `offsets of a stopped group expire after ${formatDuration(minutes * 60_000)}, before pages and tasks do (${formatDuration(needed)})`
    yield fail('offsets', text, `Set offsets.retention.minutes of the broker to at least ${Math.ceil(needed / 60_000)}.`)
  } else yield ok('offsets', `kept for ${minutes > FOR_EVER_MINUTES ? 'ever' : formatDuration(minutes * 60_000)} after a group has stopped`)
  if (configs['auto.create.topics.enable'] === 'true') {
    yield warn(
      'auto-creation',
      'the broker creates topics by itself, with settings that are not ours',
      'Set auto.create.topics.enable=false.',
    )
  }
}

async function* topicFindings(runtime: Runtime): AsyncGenerator<Finding> {
  const existing = new Set(await runtime.admin.listTopics())
  const wanted = runtime.wantedTopics().map(({ topic }) => topic)
  const missing = wanted.filter((topic) => !existing.has(topic))
  if (missing.length === wanted.length) {
    const fix = runtime.isEmbedded ? 'Nothing: `millrace run` makes them.' : 'Run `millrace topics apply`.'
    yield runtime.isEmbedded
      ? ok('topics', 'none yet; the first run makes them')
      : fail('topics', `no topic of the prefix ${runtime.config['topics.prefix']} is there`, fix)
    return
  }
  const plan = await runtime.admin.planTopics(runtime.wantedTopics())
  yield* planFindings(plan, wanted.length)
  for (const text of offlineTexts(await runtime.admin.offlinePartitions(wanted)))
    yield fail('topics', text, 'Start the brokers that hold them; `topics.replication: 3` lets others lead meanwhile.')
  if (await hasPagesOfTheFuture(runtime))
    yield warn(
      'clock',
      `the newest pages are more than ${formatDuration(MAX_SKEW_MS)} ahead of the clock of this machine`,
      'Run a time service on all machines.',
    )
}

/** Pure. `count`: of the topics that are wanted. */
export function planFindings({ refusals, notes, changes }: TopicPlan, count: number): readonly Finding[] {
  const findings = [
    ...refusals.map(({ message }) => fail('topics', message, 'Correct the configuration; `millrace topics plan` shows the rest.')),
    ...notes.map(({ message }) => warn('topics', message, 'Correct the configuration, or the topic by hand.')),
  ]
  if (changes.length > 0) {
    const text = `${countText(changes.length, 'difference')} from the configuration`
    findings.push(warn('topics', text, 'Run `millrace topics plan`, then `millrace topics apply`.'))
  }
  return findings.length > 0 ? findings : [ok('topics', `${countText(count, 'topic')} as the configuration wants them`)]
}

async function* layoutFindings(runtime: Runtime): AsyncGenerator<Finding> {
  for (const { topic, layout, partitions } of await layoutDifferences(runtime)) {
    const has = `${topic} has ${countText(partitions, 'partition')}, and all members go by ${layout}`
    yield partitions > layout
      ? warn('layout', `${has}: the others stay unused`, 'Set `topics.partitions` to what is there, then run `millrace topics apply`.')
      : fail('layout', `${has}: what belongs in the others can not be written`, 'Run `millrace topics apply`.')
  }
}

/** They give away a clock that is off. */
async function hasPagesOfTheFuture({ admin, clock, topics }: Runtime): Promise<boolean> {
  const future = await admin.offsetsForTime(topics.html, clock.now() + MAX_SKEW_MS)
  const end = await admin.endOffsets(topics.html, 'read_uncommitted')
  return [...end].some(([partition, offset]) => (future.get(partition) ?? offset) < offset)
}

async function* blobFindings(open: () => Promise<BlobStore | undefined>): AsyncGenerator<Finding> {
  try {
    const blobs = await open()
    if (blobs !== undefined) yield await blobFinding(blobs)
  } catch (error) {
    yield failure('blobs', error, 'BLOBS_UNREACHABLE')
  }
}

/** Errors: BLOBS_UNREACHABLE, DISK_FULL. */
export async function blobFinding(blobs: Pick<BlobStore, 'location' | 'check' | 'prepare'>): Promise<Finding> {
  const { location } = blobs
  if (!(await blobs.check()))
    return warn(
      'blobs',
      `${location} is not there`,
      'See whether `blobs.url` is that of the fetch workers: the first one makes the folder.',
    )
  try {
    await blobs.prepare()
    return ok('blobs', `${location} answers`)
  } catch (error) {
    if (!isMillraceError(error, 'BLOBS_REFUSED')) throw error
    return warn('blobs', `${location} can be read, and fetch can not work here: ${error.message}`, ERRORS.BLOBS_REFUSED.hint)
  }
}

async function* registryFindings(open: () => RegistryPort | undefined): AsyncGenerator<Finding> {
  try {
    const registry = open()
    if (registry === undefined) return
    // Any id will do: what counts is that it answers and lets us in.
    await registry.schemaById(1)
    yield ok('registry', `${registry.location} answers`)
  } catch (error) {
    yield failure('registry', error, 'REGISTRY_UNREACHABLE')
  }
}

/** Pure. What a managed server does not tell is for the operator to look up. */
export function storeFinding(health: StoreHealth): Finding {
  const version = health.version === 'unknown' ? 'of unknown version' : health.version
  const text = `${health.kind} ${version} at ${health.location}`
  const policy = health.maxmemoryPolicy ?? 'noeviction'
  if (policy !== 'noeviction' && policy !== 'unknown')
    return fail('state', `${text} evicts keys (${policy}): URLs would be fetched again`, 'Set maxmemory-policy noeviction.')
  if (health.persistence === 'none') return warn('state', `${text} keeps nothing over a restart`, 'Set appendonly yes.')
  if (health.persistence === 'rdb')
    return warn('state', `${text} loses what it has learnt since its last snapshot when it restarts`, 'Set appendonly yes.')
  if (policy === 'unknown')
    return warn(
      'state',
      `${text} does not tell its maxmemory-policy; where it evicts keys, URLs would be fetched again`,
      'Look whether it is noeviction where you manage the server.',
    )
  return ok('state', text)
}

/** `look`: gives nothing where there is no state yet. */
async function* stateFindings(look: () => Promise<StoreHealth | undefined>): AsyncGenerator<Finding> {
  try {
    const health = await look()
    yield health === undefined ? ok('state', 'none yet in the data folder; the first run begins it') : storeFinding(health)
  } catch (error) {
    yield failure('state', error, 'STATE_UNAVAILABLE')
  }
}
