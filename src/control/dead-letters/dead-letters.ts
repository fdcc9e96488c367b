import { type LogStart, readMessages, readOne } from '../../kafka/log-reader.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import { greatestOf, leastOf } from '../../kernel/bigint.ts'
import { partitionId } from '../../kernel/brand.ts'
import type { Resolved, ResolvedLetters } from '../../message/dead-letter-marks.ts'
import { messageUrl } from '../../message/message-url.ts'
import { type DeadLetterInfo, readDeadLetter } from '../../message/read-dead-letter.ts'
import { domainOfUrl, isOfDomain, registrableDomainOfHost } from '../../url/registrable-domain.ts'
import { type Runtime, requireTopics } from '../runtime/runtime.ts'

export interface DeadLetterFilter {
  readonly stage?: string
  readonly code?: string
  /** Registrable domain (of the key where that is a URL, else the key itself), or host of the URL. */
  readonly domain?: string
  /** Epoch ms. */
  readonly since?: number
  /** These alone, by `PARTITION:OFFSET`. */
  readonly places?: ReadonlySet<string>
  /** Those that are dealt with as well. */
  readonly withResolved?: boolean
  readonly limit?: number
}

export interface ListedDeadLetter {
  readonly partition: number
  readonly offset: bigint
  /** Epoch ms. */
  readonly timestamp: number
  readonly key: string | null
  readonly bytes: number
  readonly info: DeadLetterInfo
  /** What was done about it; undefined: it is open. */
  readonly resolved: Resolved | undefined
}

/** For people: with the URL that it is about; null: none can be read. */
export interface NamedDeadLetter extends ListedDeadLetter {
  readonly url: string | null
}

/** A dead letter with all that lies on the topic. */
export interface FoundDeadLetter {
  readonly message: KafkaMessage
  readonly listed: ListedDeadLetter
}

/** How many dead letters there are, by what they have in common; the most first. */
export interface DeadLetterStats {
  readonly open: number
  readonly requeued: number
  readonly dropped: number
  /** Of the open ones. */
  readonly byStage: Readonly<Record<string, number>>
  readonly byCode: Readonly<Record<string, number>>
  /** Of those that have one: as it stands in the outcome. */
  readonly byReason: Readonly<Record<string, number>>
  /** The domains with the most; the rest is in `otherDomains`. */
  readonly byDomain: Readonly<Record<string, number>>
  readonly otherDomains: number
  /** Epoch ms of the oldest and the newest open one; null where there is none. */
  readonly oldestAt: number | null
  readonly newestAt: number | null
}

/** Domains that statistics name, and those that are counted at all: the memory must not grow with the log. */
const DOMAINS_SHOWN = 20
const DOMAINS_COUNTED = 10_000

/** Dead letters that fit the filter, in the order of each partition. Errors: the signal's reason. */
export async function* listDeadLetters(runtime: Runtime, filter: DeadLetterFilter, signal?: AbortSignal): AsyncGenerator<NamedDeadLetter> {
  for await (const found of allDeadLetters(runtime, filter, signal)) yield { ...found.listed, url: await urlOf(runtime, found) }
}

async function* allDeadLetters(runtime: Runtime, filter: DeadLetterFilter, signal?: AbortSignal): AsyncGenerator<FoundDeadLetter> {
  await requireTopics(runtime, [runtime.topics.deadLetters])
  yield* findDeadLetters(runtime, await deadLetterPartitions(runtime, filter), filter, signal)
}

/** Those in which something may fit. */
export async function deadLetterPartitions({ admin, topics }: Runtime, { places }: DeadLetterFilter): Promise<readonly number[]> {
  const partitions = await admin.partitions(topics.deadLetters)
  if (places === undefined) return partitions
  const ranges = rangesOf(places)
  return partitions.filter((partition) => ranges.has(partition))
}

/** By partition, from the first to the last of these places. */
function rangesOf(places: ReadonlySet<string>): Map<number, { readonly first: bigint; readonly last: bigint }> {
  const ranges = new Map<number, { readonly first: bigint; readonly last: bigint }>()
  for (const place of places) {
    const { partition, offset } = placeAt(place)
    const { first, last } = ranges.get(partition) ?? { first: offset, last: offset }
    ranges.set(partition, { first: leastOf(offset, first), last: greatestOf(offset, last) })
  }
  return ranges
}

function placeAt(place: string): { readonly partition: number; readonly offset: bigint } {
  const [partition = '', offset = ''] = place.split(':')
  return { partition: Number(partition), offset: BigInt(offset) }
}

function urlOf({ codec }: Runtime, { message, listed: { key } }: FoundDeadLetter): Promise<string | null> {
  return messageUrl(codec, { key, value: message.value })
}

/** Counts what fits the filter. Errors: the signal's reason. */
export async function deadLetterStats(runtime: Runtime, filter: DeadLetterFilter, signal?: AbortSignal): Promise<DeadLetterStats> {
  const counts = { open: 0, requeued: 0, dropped: 0 }
  const stages = new Map<string, number>()
  const codes = new Map<string, number>()
  const reasons = new Map<string, number>()
  const domains = new Map<string, number>()
  let otherDomains = 0
  let oldestAt: number | null = null
  let newestAt: number | null = null
  for await (const { listed: letter } of allDeadLetters(runtime, { ...filter, withResolved: true }, signal)) {
    counts[letter.resolved?.action ?? 'open'] += 1
    if (letter.resolved !== undefined) continue
    increment(stages, letter.info.stage ?? 'unknown')
    increment(codes, letter.info.code ?? 'unknown')
    if (letter.info.reason !== undefined) increment(reasons, letter.info.reason)
    const domain = domainOf(letter) ?? 'unknown'
    if (domains.has(domain) || domains.size < DOMAINS_COUNTED) increment(domains, domain)
    else otherDomains += 1
    oldestAt = Math.min(oldestAt ?? letter.timestamp, letter.timestamp)
    newestAt = Math.max(newestAt ?? letter.timestamp, letter.timestamp)
  }
  const ranked = byCount(domains)
  return {
    ...counts,
    byStage: Object.fromEntries(byCount(stages)),
    byCode: Object.fromEntries(byCount(codes)),
    byReason: Object.fromEntries(byCount(reasons)),
    byDomain: Object.fromEntries(ranked.slice(0, DOMAINS_SHOWN)),
    otherDomains: ranked.slice(DOMAINS_SHOWN).reduce((sum, [, count]) => sum + count, otherDomains),
    oldestAt,
    newestAt,
  }
}

/** One dead letter with its bytes; undefined where there is none at that place. */
export async function showDeadLetter(
  runtime: Runtime,
  partition: number,
  offset: bigint,
): Promise<(NamedDeadLetter & { value: Buffer | null }) | undefined> {
  await requireTopics(runtime, [runtime.topics.deadLetters])
  const message = await messageAt(runtime, await runtime.admin.partitions(runtime.topics.deadLetters), { partition, offset })
  if (message === undefined) return undefined
  const letter = listed(message, await runtime.deadLetterMarks.now())
  return { ...letter, url: await urlOf(runtime, { message, listed: letter }), value: message.value }
}

async function messageAt(
  { admin, topics }: Runtime,
  partitions: readonly number[],
  { partition, offset }: { readonly partition: number; readonly offset: bigint },
): Promise<KafkaMessage | undefined> {
  return partitions.includes(partition) ? readOne(admin.session, { topic: topics.deadLetters, partition }, offset) : undefined
}

/** What was done about the dead letters at these places, `control` read once. Shape: in their order; undefined where none lies. */
export async function lookUpDeadLetters(
  runtime: Runtime,
  places: ReadonlySet<string>,
): Promise<readonly { readonly place: string; readonly letter: ListedDeadLetter | undefined }[]> {
  if (places.size === 0) return []
  const partitions = await runtime.admin.partitions(runtime.topics.deadLetters)
  const resolved = await runtime.deadLetterMarks.now()
  const found: { place: string; letter: ListedDeadLetter | undefined }[] = []
  for (const place of places) {
    const message = await messageAt(runtime, partitions, placeAt(place))
    found.push({ place, letter: message === undefined ? undefined : listed(message, resolved) })
  }
  return found
}

/**
 * What lies in these partitions and fits, with its bytes. Reads what is there now, and what is dealt with as `control` says now.
 * Shape: in the order of each partition. Errors: the signal's reason.
 */
export async function* findDeadLetters(
  runtime: Runtime,
  partitions: readonly number[],
  filter: DeadLetterFilter,
  signal?: AbortSignal,
): AsyncGenerator<FoundDeadLetter> {
  const topic = runtime.topics.deadLetters
  const since = filter.since === undefined ? undefined : await runtime.admin.offsetsForTime(topic, filter.since)
  const resolved = await runtime.deadLetterMarks.now()
  const named = rangesOf(filter.places ?? new Set())
  const startOf = (partition: number): LogStart => {
    const [from, first] = [since?.get(partition), named.get(partition)?.first]
    return from === undefined || (first !== undefined && first > from) ? (first ?? 'earliest') : from
  }
  const log = readMessages(runtime, {
    from: new Map([[topic, new Map(partitions.map((partition) => [partition, startOf(partition)]))]]),
    until: new Map([...named].map(([partition, { last }]) => [partitionId(topic, partition), last + 1n])),
    signal,
  })
  let given = 0
  for await (const messages of log) {
    for (const message of messages) {
      const letter = listed(message, resolved)
      const found = { message, listed: letter }
      if (!fits(letter, filter) || !(await isWithin(runtime, found, filter.domain))) continue
      yield found
      given += 1
      if (filter.limit !== undefined && given >= filter.limit) return
    }
  }
}

/** These messages of dead-letters, with what was done about them. */
export async function listedDeadLetters(runtime: Runtime, messages: readonly KafkaMessage[]): Promise<ListedDeadLetter[]> {
  if (messages.length === 0) return []
  const resolved = await runtime.deadLetterMarks.now()
  return messages.map((message) => listed(message, resolved))
}

/** Registrable domain that a dead letter is about; undefined where its key names none. */
export function domainOf({ key }: Pick<ListedDeadLetter, 'key'>): string | undefined {
  if (key === null || key === '') return undefined
  return domainOfUrl(key) ?? key
}

function listed(message: KafkaMessage, resolved: ResolvedLetters): ListedDeadLetter {
  const { partition, offset, timestamp, key, value } = message
  return {
    partition,
    offset,
    timestamp,
    key: key?.toString('utf8') ?? null,
    bytes: value?.length ?? 0,
    info: readDeadLetter(message.headers),
    resolved: resolved.get(message),
  }
}

function fits(letter: ListedDeadLetter, filter: DeadLetterFilter): boolean {
  if (filter.withResolved !== true && letter.resolved !== undefined) return false
  if (filter.places !== undefined && !filter.places.has(`${letter.partition}:${letter.offset}`)) return false
  if (filter.stage !== undefined && letter.info.stage !== filter.stage) return false
  if (filter.code !== undefined && letter.info.code !== filter.code) return false
  return filter.since === undefined || letter.timestamp >= filter.since
}

/** The key of a task is its registrable domain: which host it is about only the value tells. */
async function isWithin(runtime: Runtime, found: FoundDeadLetter, domain: string | undefined): Promise<boolean> {
  if (domain === undefined) return true
  const own = domainOf(found.listed)
  if (own === domain) return true
  if (own !== undefined && own !== registrableDomainOfHost(domain)) return false
  return isOfDomain((await urlOf(runtime, found)) ?? '', domain)
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

function byCount(counts: ReadonlyMap<string, number>): [string, number][] {
  return [...counts].sort(([a, left], [b, right]) => right - left || (a < b ? -1 : 1))
}
