import { partitionsOfKey } from '../../kafka/layout.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import type { UrlTask } from '../../message/generated/types.ts'
import { readTask } from '../../message/read-task.ts'
import { readable } from '../../message/readable.ts'
import { canonicalUrl } from '../../url/canonical-url.ts'
import { registrableDomain } from '../../url/registrable-domain.ts'
import { searchTexts } from '../crawls/url-search.ts'
import { type ListedDeadLetter, listedDeadLetters } from '../dead-letters/dead-letters.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { mergeByTime } from './merge-by-time.ts'
import { searchMessages } from './search-messages.ts'

export interface UrlDeadLetters {
  /** Oldest first. */
  readonly letters: readonly ListedDeadLetter[]
  /** False where the topic was longer than is searched. */
  readonly isComplete: boolean
  /** Of the log, looked at. */
  readonly bytes: number
}

/** Of one partition: pages that failed lie whole among dead letters. */
const MAX_BYTES = 268_435_456

/** The dead letters of a URL, whatever became of them. Its key is known, so those partitions are searched in which it can be. */
export async function deadLettersOf(runtime: Runtime, url: URL, signal?: AbortSignal): Promise<UrlDeadLetters> {
  const topic = runtime.topics.deadLetters
  const canonical = canonicalUrl(url)
  let bytes = 0
  let isComplete = true
  const found = await Promise.all(
    [...(await partitionsOf(runtime, url))].map(async (partition) => {
      const own: KafkaMessage[] = []
      let left = MAX_BYTES
      const looked = (more: number): boolean => {
        bytes += more
        left -= more
        if (left <= 0) isComplete = false
        return left > 0
      }
      for await (const message of searchMessages(runtime, { topic, partition, texts: searchTexts(url), signal, looked })) {
        const task = message.key?.toString('utf8') === canonical ? undefined : readable(() => readTask(runtime, message))?.task
        if (message.key?.toString('utf8') === canonical || (task !== undefined && isTaskOf(canonical, task))) own.push(message)
      }
      return own
    }),
  )
  const letters = await listedDeadLetters(
    runtime,
    mergeByTime(found, ({ timestamp }) => timestamp),
  )
  return { letters, isComplete, bytes }
}

/** Whether a task is of the URL with that canonical form. */
export function isTaskOf(canonical: string, { canonicalUrl: own, url }: Pick<UrlTask, 'canonicalUrl' | 'url'>): boolean {
  return own === canonical || (URL.canParse(url) && canonicalUrl(new URL(url)) === canonical)
}

async function partitionsOf(runtime: Runtime, url: URL): Promise<Set<number>> {
  const { topics } = runtime
  const topic = topics.deadLetters
  const layout = (await runtime.layout())()
  const lane = partitionsOfKey(layout, topics.urls.normal, registrableDomain(url))
  return new Set([
    ...partitionsOfKey(layout, topic, registrableDomain(url)),
    ...partitionsOfKey(layout, topic, canonicalUrl(url)),
    // What came without a key goes by the partition in which it was.
    ...layout.countsOf(topic).flatMap((count) => lane.map((partition) => partition % count)),
  ])
}
