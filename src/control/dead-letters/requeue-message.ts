import { createHash } from 'node:crypto'
import type { LayoutSource } from '../../kafka/layout.ts'
import type { KafkaMessage, OutgoingMessage } from '../../kafka/message.ts'
import { BATCH_OVERHEAD_BYTES, messageBytes } from '../../kafka/outgoing.ts'
import type { TaskPublisher } from '../../kafka/task-publisher.ts'
import type { MessagePlace } from '../../kernel/brand.ts'
import { errorText, isMillraceError } from '../../kernel/errors.ts'
import { shellWord } from '../../kernel/shell-word.ts'
import { askedLane } from '../../message/asked-lane.ts'
import type { MessageCodec } from '../../message/codec.ts'
import type { CompletedTask } from '../../message/complete-task.ts'
import type { Page, UrlTask } from '../../message/generated/types.ts'
import { HEADER, ONLY_STAGE } from '../../message/header-names.ts'
import { requeuedTaskId } from '../../message/ids.ts'
import { copyHeaders, placeInTopic } from '../../message/put-back.ts'
import type { DeadLetterInfo } from '../../message/read-dead-letter.ts'
import { readTask } from '../../message/read-task.ts'
import { chainBefore } from '../../message/redirect-chain.ts'
import type { TopicNames } from '../../message/topics.ts'
import { partitionFor } from '../../url/partition.ts'
import type { FoundDeadLetter } from './dead-letters.ts'

/** Why a dead letter can't be put back. */
export type NotRequeued =
  /** The task is not to be fetched after a time that has passed. */
  | 'expired'
  /** Its URL can't be fetched, now or ever. */
  | 'bad-url'
  /** It can't be read now either. */
  | 'unreadable'
  /** Its bytes are cut, and the original has left its topic. */
  | 'original-gone'
  /** It would not fit the topic. */
  | 'too-large'
  /** Its body was to lie in the blob store, and does not. */
  | 'body-missing'
  /** A shadow or a candidate wrote it: the page would go to the version that is live, which has read it. */
  | 'of-trial'
  /** Its crawl is stopped: as a task it would be refused at once, and no link of it would be followed as a page. */
  | 'crawl-stopped'

export type Requeue =
  | { readonly kind: 'task'; readonly message: OutgoingMessage; readonly task: UrlTask }
  /**
   * bodyRef: where its body lies, if not in the message. copy: the page and whom it is for, whichever of its copies was given up on; one
   * message serves all dead letters that have it in common. Two pages of one fetch may differ in their bytes: each is a page of its own.
   * Undefined where nothing tells the page from others, since its writer gave it no id. isOwn: it is written as a page of its own, since no
   * place that its dead letter names on html is that of its page.
   */
  | {
      readonly kind: 'page'
      readonly message: OutgoingMessage
      readonly bodyRef: string | null
      readonly copy: string | undefined
      readonly isOwn: boolean
    }
  | { readonly kind: 'not'; readonly reason: NotRequeued; readonly detail: string }

export interface RequeueParts {
  readonly codec: MessageCodec
  readonly publisher: Pick<TaskPublisher, 'laneMessage'>
  readonly layout: LayoutSource
  readonly topics: TopicNames
  readonly clusterId: string
  readonly maxBatchBytes: (topic: string) => number
  readonly now: number
  /** What it was that wrote a dead letter beside live work; undefined for live work and replays in place. */
  readonly writtenBeside: (info: DeadLetterInfo) => string | undefined
  readonly isCrawlStopped: (crawlId: string) => boolean
  /** A message that lay there, or lies there now; undefined where there is none. */
  readonly readAt: (place: MessagePlace) => Promise<KafkaMessage | undefined>
  /** The same for a place on html. deleted: it lies before what is left of its partition. */
  readonly pageAt: (place: MessagePlace) => Promise<KafkaMessage | 'deleted' | undefined>
}

const EXTRACT = 'extract'

/**
 * What a dead letter becomes when it is tried again. One of a stage that reads pages is its page once more, for the extractor or the stage
 * that failed; any other is a task of its own, from its first attempt on, since the first task has its final outcome already.
 */
export async function requeueOf(found: FoundDeadLetter, parts: RequeueParts): Promise<Requeue> {
  const beside = parts.writtenBeside(found.listed.info)
  if (beside !== undefined) return not('of-trial', `it is of ${beside}: run that again, or drop it`)
  const value = await wholeValue(found, parts)
  if (value === undefined) return not('original-gone', 'its bytes are cut, and the original message is no longer on its topic')
  const { info } = found.listed
  const isPage = info.stage === EXTRACT || info.original?.topic === parts.topics.html
  await parts.codec.ensureSchemas([value])
  const requeue = isPage ? await pageAgain(found, value, parts) : taskAgain(found, value, parts)
  if (requeue.kind === 'not') return requeue
  const bytes = messageBytes(requeue.message) + BATCH_OVERHEAD_BYTES
  const limit = parts.maxBatchBytes(requeue.message.topic)
  return bytes <= limit ? requeue : not('too-large', `it takes ${bytes} bytes, and ${requeue.message.topic} takes ${limit}`)
}

async function wholeValue({ message, listed }: FoundDeadLetter, parts: RequeueParts): Promise<Buffer | null | undefined> {
  const { truncated } = listed.info
  if (truncated === undefined || !truncated.parts.includes('value')) return message.value
  for (const place of placesOf(listed.info)) {
    const value = (await parts.readAt(place))?.value ?? null
    // A topic that was made anew has another message there.
    if (value !== null && createHash('sha256').update(value).digest('hex') === truncated.fullSha256) return value
  }
  return undefined
}

/** Where the message lay that failed, as it was written first and, of a page, as it was put back; that lives longer. */
function placesOf({ original, copy }: DeadLetterInfo): readonly MessagePlace[] {
  if (original === undefined) return []
  return copy === undefined ? [original] : [original, { ...original, ...copy }]
}

function taskAgain(found: FoundDeadLetter, value: Buffer | null, parts: RequeueParts): Requeue {
  const { message, listed } = found
  const { publisher, now } = parts
  const { original } = listed.info
  let completed: CompletedTask
  try {
    completed = readTask(parts, { ...message, ...original, value, timestamp: original?.timestamp ?? message.timestamp })
  } catch (error) {
    if (isMillraceError(error) && error.disposition === 'dead-letter') return not('unreadable', errorText(error))
    throw error
  }
  const { task } = completed
  if (!completed.ok) return not('bad-url', completed.detail)
  if (task.expiresAt !== null && task.expiresAt <= now)
    return not('expired', `its expiresAt was ${new Date(task.expiresAt).toISOString()}: produce the URL anew`)
  const stopped = ofStopped(task, parts)
  if (stopped !== undefined) return stopped
  const again: UrlTask = {
    ...task,
    taskId: requeuedTaskId(task.taskId, message),
    attempt: 1,
    redirects: chainBefore(task),
    lane: askedLane(message.headers, task),
    // The first task holds the claim of the URL, and would make a duplicate of this one.
    dedup: 'none',
    enqueuedAt: now,
  }
  return { kind: 'task', task: again, message: publisher.laneMessage(again, { [HEADER.requeued]: placeInTopic(message) }) }
}

async function pageAgain({ message, listed }: FoundDeadLetter, value: Buffer | null, parts: RequeueParts): Promise<Requeue> {
  const { codec, layout, topics, now } = parts
  let page: Page
  try {
    page = codec.decode('Page', value)
  } catch (error) {
    if (isMillraceError(error) && error.disposition === 'dead-letter') return not('unreadable', errorText(error))
    throw error
  }
  const { stage, extractor, original, copy, replay } = listed.info
  const only = stage === 'frontier' ? ONLY_STAGE.frontier : (extractor?.split(':')[0] ?? ONLY_STAGE.extract)
  // Extraction goes on in a crawl that is stopped.
  const stopped = only === ONLY_STAGE.frontier ? ofStopped(page, parts) : undefined
  if (stopped !== undefined) return stopped
  const isOwn = original?.topic !== topics.html || !(await isStillAt(placesOf(listed.info), value, parts))
  const count = layout().partitionsOf(topics.html)
  return {
    kind: 'page',
    bodyRef: page.bodyRef,
    copy: page.fetchId === '' ? undefined : `${page.fetchId} ${page.bodySha256} ${only}`,
    isOwn,
    message: {
      topic: topics.html,
      partition: message.key === null ? message.partition % count : partitionFor(message.key, count),
      key: message.key,
      value,
      headers: {
        ...carriedHeaders(message),
        ...(isOwn ? {} : copyHeaders(original, copy)),
        [HEADER.only]: only,
        [HEADER.requeued]: placeInTopic(message),
        ...(replay === undefined ? {} : { [HEADER.replay]: replay }),
      },
      // Not that of the page: html may be about to drop what was fetched then.
      timestamp: now,
    },
  }
}

/**
 * Whether a page still lies in these places on html, or did when retention deleted what was there. Where html was made anew since, others
 * lie there, or will: readers would take a copy that names such a place for one of theirs. Each copy has the bytes of its page.
 */
async function isStillAt(places: readonly MessagePlace[], value: Buffer | null, { pageAt }: RequeueParts): Promise<boolean> {
  for (const place of places) {
    const there = await pageAt(place)
    if (there === 'deleted') continue
    if (there === undefined || there.value === null || value?.equals(there.value) !== true) return false
  }
  return true
}

/**
 * `pageAt` of a command's run. Low offsets only rise, so they are remembered: what lies below them is not read, and they are looked up
 * again only where nothing lies at a place above.
 */
export function pageReader(lowOffsets: () => Promise<ReadonlyMap<number, bigint>>, readAt: RequeueParts['readAt']): RequeueParts['pageAt'] {
  let low: ReadonlyMap<number, bigint> | undefined
  return async (place) => {
    const isBelow = (offsets: ReadonlyMap<number, bigint>): boolean => place.offset < (offsets.get(place.partition) ?? 0n)
    low ??= await lowOffsets()
    if (isBelow(low)) return 'deleted'
    const there = await readAt(place)
    if (there !== undefined) return there
    // Retention may have come to it meanwhile.
    low = await lowOffsets()
    return isBelow(low) ? 'deleted' : undefined
  }
}

/** Of the dead letter only what the message had before it was one. */
const OF_ITS_MESSAGE: readonly string[] = [HEADER.traceparent, HEADER.contentType, HEADER.schema, HEADER.only]

function carriedHeaders(message: KafkaMessage): Record<string, Buffer> {
  return Object.fromEntries(
    Object.entries(message.headers).filter(([name]) => OF_ITS_MESSAGE.includes(name) || !name.startsWith('millrace-')),
  )
}

function ofStopped({ crawlId }: Pick<UrlTask, 'crawlId'>, { isCrawlStopped }: RequeueParts): Requeue | undefined {
  if (crawlId === null || !isCrawlStopped(crawlId)) return undefined
  return not('crawl-stopped', `its crawl ${crawlId} is stopped; \`millrace crawls resume ${shellWord(crawlId)}\` lifts that`)
}

function not(reason: NotRequeued, detail: string): Requeue {
  return { kind: 'not', reason, detail }
}
