import { readLog, readOne } from '../kafka/log-reader.ts'
import type { KafkaMessage } from '../kafka/message.ts'
import { type DeadLetterInfo, readDeadLetter } from '../message/read-dead-letter.ts'
import { registrableDomain } from '../url/registrable-domain.ts'
import { type Runtime, requireTopics } from './runtime.ts'

export interface DeadLetterFilter {
  readonly stage?: string
  readonly code?: string
  /** Registrable domain: of the key where that is a URL, else the key itself. */
  readonly domain?: string
  /** Epoch ms. */
  readonly since?: number
  readonly max?: number
}

export interface ListedDeadLetter {
  readonly partition: number
  readonly offset: bigint
  /** Epoch ms. */
  readonly timestamp: number
  readonly key: string | null
  readonly bytes: number
  readonly info: DeadLetterInfo
}

/** Dead letters that fit the filter, in the order of each partition. */
export async function* listDeadLetters(runtime: Runtime, filter: DeadLetterFilter, signal?: AbortSignal): AsyncGenerator<ListedDeadLetter> {
  const topic = runtime.topics.deadLetters
  await requireTopics(runtime, [topic])
  const start = filter.since === undefined ? ('earliest' as const) : await runtime.admin.offsetsForTime(topic, filter.since)
  const log = readLog({
    client: runtime.client,
    clock: runtime.clock,
    observer: runtime.observer,
    from: new Map([[topic, start]]),
    ...(signal === undefined ? {} : { signal }),
  })
  let given = 0
  for await (const event of log) {
    if (event.kind !== 'batch') continue
    for (const message of event.messages) {
      const letter = listed(message)
      if (!fits(letter, filter)) continue
      yield letter
      given += 1
      if (filter.max !== undefined && given >= filter.max) return
    }
  }
}

/** One dead letter with its bytes; undefined where there is none at that place. */
export async function showDeadLetter(
  runtime: Runtime,
  partition: number,
  offset: bigint,
): Promise<(ListedDeadLetter & { value: Buffer | null }) | undefined> {
  await requireTopics(runtime, [runtime.topics.deadLetters])
  const partitions = await runtime.admin.partitions(runtime.topics.deadLetters)
  if (!partitions.includes(partition)) return undefined
  const message = await readOne(runtime.admin.session, { topic: runtime.topics.deadLetters, partition }, offset)
  return message === undefined ? undefined : { ...listed(message), value: message.value }
}

function listed(message: KafkaMessage): ListedDeadLetter {
  const { partition, offset, timestamp, key, value } = message
  return {
    partition,
    offset,
    timestamp,
    key: key?.toString('utf8') ?? null,
    bytes: value?.length ?? 0,
    info: readDeadLetter(message.headers),
  }
}

function fits(letter: ListedDeadLetter, filter: DeadLetterFilter): boolean {
  if (filter.stage !== undefined && letter.info.stage !== filter.stage) return false
  if (filter.code !== undefined && letter.info.code !== filter.code) return false
  if (filter.since !== undefined && letter.timestamp < filter.since) return false
  if (filter.domain === undefined) return true
  const { key } = letter
  return key !== null && (key === filter.domain || (URL.canParse(key) && registrableDomain(key) === filter.domain))
}
