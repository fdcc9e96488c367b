import { loadBody } from '../blobs/load-body.ts'
import { type LogStart, type ReadLogOptions, readLog } from '../kafka/log-reader.ts'
import type { KafkaMessage } from '../kafka/message.ts'
import { type MessagePlace, type PartitionId, partitionId } from '../kernel/brand.ts'
import { isMillraceError, MillraceError } from '../kernel/errors.ts'
import { nearestName } from '../kernel/nearest.ts'
import { decodeTask } from '../message/decode-task.ts'
import type { Page } from '../message/generated/types.ts'
import { unpackPageBody } from '../message/page-body.ts'
import { isOfDomain } from '../url/registrable-domain.ts'
import { type Runtime, requireTopics } from './runtime/runtime.ts'

export type ConsumeStart =
  | { readonly kind: 'beginning' }
  | { readonly kind: 'end' }
  /** Epoch ms. */
  | { readonly kind: 'time'; readonly at: number }
  | { readonly kind: 'offset'; readonly partition: number; readonly offset: bigint }

export interface ConsumeOptions {
  /** A word of ours (`records`, `html`, `urls`, …) or the name of a topic. */
  readonly what: string
  readonly start: ConsumeStart
  /** Epoch ms; messages from then on are not given. */
  readonly until?: number
  readonly max?: number
  readonly follow: boolean
  readonly crawlId?: string
  readonly domain?: string
  /** Bodies of pages, unpacked; base64 in JSON. Without it they are left out. */
  readonly body: boolean
  readonly signal?: AbortSignal
}

/** A message as `consume` shows it. */
export interface ConsumedMessage extends MessagePlace {
  /** Epoch ms. */
  readonly timestamp: number
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  /** Decoded; null for a tombstone. */
  readonly value: unknown
  /** Full name of the schema that wrote it. */
  readonly schema?: string
  /** Why the value could not be decoded; then it is the bytes, base64. */
  readonly undecodable?: string
  /** Why the body of a page, which was asked for, can't be shown; then it is null. */
  readonly bodyProblem?: string
}

/**
 * A word of ours for topics, the name of a topic, or one without its prefix. Errors: KAFKA_TOPIC_MISSING where a word's topic is not
 * there; USAGE naming the nearest for anything else.
 */
async function topicsOf(runtime: Runtime, { what, start }: ConsumeOptions): Promise<readonly string[]> {
  const { topics, config } = runtime
  const words: Readonly<Record<string, readonly string[]>> = {
    records: [topics.records],
    html: [topics.html],
    // An offset is of one topic: then of the one that has the name.
    urls: start.kind === 'offset' ? [topics.urls.normal] : [topics.urls.high, topics.urls.normal, topics.urls.low],
    outcomes: [topics.outcomes],
    'dead-letters': [topics.deadLetters],
    control: [topics.control],
  }
  const meant = Object.hasOwn(words, what) ? words[what] : undefined
  if (meant !== undefined) {
    await requireTopics(runtime, meant)
    return meant
  }
  const existing = await runtime.admin.listTopics()
  const prefix = config['topics.prefix']
  for (const topic of [what, `${prefix}${what}`]) if (existing.includes(topic)) return [topic]
  const nearest = nearestName(what, [...Object.keys(words), ...existing])
  throw new MillraceError(
    'USAGE',
    `there is no topic ${JSON.stringify(what)}${nearest === undefined ? '.' : `; did you mean ${nearest}?`} Words for topics: ${Object.keys(words).join(', ')}`,
  )
}

/**
 * Committed messages, decoded. Without `follow` it ends at the end that it saw at the start, and the signal's reason is thrown where that
 * comes first.
 */
export async function* consume(runtime: Runtime, options: ConsumeOptions): AsyncGenerator<ConsumedMessage> {
  const topics = await topicsOf(runtime, options)
  const { html, deadLetters } = runtime.topics
  if (options.body && !topics.some((topic) => topic === html || topic === deadLetters))
    throw new MillraceError(
      'USAGE',
      `--body goes with html and dead-letters: messages of ${topics.join(', ')} are shown with all that they hold`,
    )
  const from = new Map<string, LogStart | ReadonlyMap<number, LogStart>>()
  for (const topic of topics) from.set(topic, await startOf(runtime, topic, options.start))
  const end = await endOf(runtime, topics, options)
  try {
    const { client, clock, observer } = runtime
    let given = 0
    for await (const event of readLog({
      client,
      clock,
      observer,
      from,
      follow: options.follow,
      withAdded: options.start.kind !== 'offset',
      ...end.bounds,
    })) {
      if (event.kind !== 'batch') continue
      await runtime.codec.ensureSchemas(event.messages.map(({ value }) => value))
      for (const message of event.messages) {
        if (options.max !== undefined && given >= options.max) return
        if (end.isBehind(message)) continue
        const shown = await show(runtime, message, options)
        if (!isWanted(shown, options)) continue
        given += 1
        yield shown
      }
      if (options.max !== undefined && given >= options.max) return
    }
  } finally {
    end.disarm()
  }
}

interface ConsumeEnd {
  readonly bounds: Pick<ReadLogOptions, 'until' | 'signal'>
  readonly isBehind: (message: KafkaMessage) => boolean
  readonly disarm: () => void
}

/** What was written before the end may come to us a little later. */
const LATE_MS = 1_000

/** Of a time ahead Kafka knows no offset: where the log is followed, it is followed until then. */
async function endOf(runtime: Runtime, topics: readonly string[], { until, follow, signal }: ConsumeOptions): Promise<ConsumeEnd> {
  const given = signal === undefined ? {} : { signal }
  const everything = { isBehind: () => false, disarm: () => undefined }
  if (until === undefined) return { bounds: given, ...everything }
  const aheadMs = until - runtime.clock.now()
  if (!follow || aheadMs <= 0) return { bounds: { ...given, until: await offsetsBefore(runtime, topics, until) }, ...everything }
  const reached = new AbortController()
  const signals = signal === undefined ? [reached.signal] : [reached.signal, signal]
  const disarm = runtime.clock.timer(aheadMs + LATE_MS, () => reached.abort())
  return { bounds: { signal: AbortSignal.any(signals) }, isBehind: ({ timestamp }) => timestamp >= until, disarm }
}

async function startOf(runtime: Runtime, topic: string, start: ConsumeStart): Promise<LogStart | ReadonlyMap<number, LogStart>> {
  switch (start.kind) {
    case 'beginning':
      return 'earliest'
    case 'end':
      return 'end'
    case 'time':
      return runtime.admin.offsetsForTime(topic, start.at)
    case 'offset':
      return new Map([[start.partition, await checkedOffset(runtime, topic, start)]])
  }
}

/** Errors: USAGE where nothing is at this place, since another place would be another answer. */
async function checkedOffset(
  runtime: Runtime,
  topic: string,
  { partition, offset }: { partition: number; offset: bigint },
): Promise<bigint> {
  const [lows, ends] = await Promise.all([runtime.admin.earliestOffsets(topic), runtime.admin.endOffsets(topic, 'read_uncommitted')])
  const low = lows.get(partition)
  const end = ends.get(partition)
  if (low === undefined || end === undefined)
    throw new MillraceError('USAGE', `topic ${topic} has no partition ${partition}; it has ${ends.size}, from 0`)
  if (offset >= low && offset <= end) return offset
  const held = low === end ? `is empty; its next offset is ${end}` : `has the offsets ${low} to ${end - 1n}`
  throw new MillraceError('USAGE', `--offset: ${offset} is not in partition ${partition} of ${topic}, which ${held}`)
}

async function offsetsBefore(runtime: Runtime, topics: readonly string[], at: number): Promise<Map<PartitionId, bigint>> {
  const until = new Map<PartitionId, bigint>()
  for (const topic of topics) {
    for (const [partition, offset] of await runtime.admin.offsetsForTime(topic, at)) until.set(partitionId(topic, partition), offset)
  }
  return until
}

const PAGE = 'io.millrace.v1.Page'

async function show(runtime: Runtime, message: KafkaMessage, options: ConsumeOptions): Promise<ConsumedMessage> {
  const { topic, partition, offset, timestamp } = message
  const key = message.key === null ? null : message.key.toString('utf8')
  const headers = Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, value.toString('utf8')]))
  const place = { topic, partition, offset, timestamp, key, headers }
  if (message.value === null) return { ...place, value: null }
  try {
    const isTask = Object.values(runtime.topics.urls).includes(topic) || runtime.topics.delays.some((delay) => delay.topic === topic)
    if (isTask) return { ...place, schema: 'io.millrace.v1.UrlTask', value: decodeTask(runtime.codec, message.value) }
    const any = topic === runtime.topics.html ? undefined : runtime.codec.decodeAny(message.value)
    if (any !== undefined && any.schemaName !== PAGE) return { ...place, schema: any.schemaName, value: any.value }
    // Pages lie among dead letters too, and are as large there.
    const page = runtime.codec.decode('Page', message.value)
    return { ...place, schema: PAGE, ...(await shownPage(runtime, page, options.body)) }
  } catch (error) {
    // Dead letters hold whatever came; a reader must be able to look at it. A blob store that is away says nothing of the message.
    if (!isMillraceError(error) || error.disposition !== 'dead-letter') throw error
    return { ...place, value: message.value.toString('base64'), undecodable: error.code }
  }
}

/** The body unpacked, as the bytes that the site meant; left out where it was not asked for. */
async function shownPage(runtime: Runtime, page: Page, withBody: boolean): Promise<Pick<ConsumedMessage, 'value' | 'bodyProblem'>> {
  const { body: _, ...rest } = page
  if (!withBody) return { value: rest }
  const loaded = await loadBody(page, page.bodyRef === null ? undefined : await runtime.blobs())
  const unpacked = loaded.ok ? await unpackPageBody(loaded.page) : loaded
  if (unpacked.ok) return { value: { ...rest, body: unpacked.bytes.toString('base64') } }
  return { value: { ...rest, body: null }, bodyProblem: unpacked.detail }
}

function isWanted(message: ConsumedMessage, { crawlId, domain }: ConsumeOptions): boolean {
  if (crawlId === undefined && domain === undefined) return true
  const value = (typeof message.value === 'object' && message.value !== null ? message.value : {}) as { crawlId?: unknown; url?: unknown }
  if (crawlId !== undefined && value.crawlId !== crawlId) return false
  if (domain === undefined) return true
  return typeof value.url === 'string' && isOfDomain(value.url, domain)
}
