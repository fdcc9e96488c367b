import { partitionsOfKey } from '../../kafka/layout.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import { readTask } from '../../message/read-task.ts'
import { readable } from '../../message/readable.ts'
import { canonicalUrl } from '../../url/canonical-url.ts'
import { registrableDomain } from '../../url/registrable-domain.ts'
import { isTaskOf } from '../crawls/url-search.ts'
import { type ListedDeadLetter, listedDeadLetters } from '../dead-letters/dead-letters.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { mergeByTime } from './merge-by-time.ts'

/**
 * The dead letters of a URL, whatever became of them; oldest first. Its key is known, so those partitions are searched in which it can be.
 * `messages`: those of a partition that may be about the URL.
 */
export async function deadLettersOf(
  runtime: Runtime,
  url: URL,
  messages: (partition: number) => AsyncIterable<KafkaMessage>,
): Promise<ListedDeadLetter[]> {
  const canonical = canonicalUrl(url)
  const isAbout = (message: KafkaMessage): boolean => {
    if (message.key?.toString('utf8') === canonical) return true
    const task = readable(() => readTask(runtime, message))?.task
    return task !== undefined && isTaskOf(canonical, task)
  }
  const found = await Promise.all(
    [...(await partitionsOf(runtime, url))].map(async (partition) => {
      const own: KafkaMessage[] = []
      for await (const message of messages(partition)) if (isAbout(message)) own.push(message)
      return own
    }),
  )
  return listedDeadLetters(
    runtime,
    mergeByTime(found, ({ timestamp }) => timestamp),
  )
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
