import type { MessagePlace } from '../kernel/brand.ts'
import { HEADER, type Headers, headerValue, type OriginalMessage, type OriginalPlace, readOrigin } from './header-names.ts'

type PlaceInTopic = Pick<MessagePlace, 'partition' | 'offset'>

type Located = Pick<OriginalMessage, 'topic' | 'partition' | 'offset' | 'headers'>

/**
 * Pages that `dead-letters requeue` has put back on html. Such a message is no page of its own: it is one that lies there already, written
 * once more for the extractor that failed on it, and whoever reads html as "the pages" counts it as that one.
 *
 * A copy says of which page it is (`millrace-orig-*`, as every copy of a message does, never overwritten: a copy of a copy names the page
 * that fetch wrote) and which message had failed (`millrace-copy-of`). The first is the source of its records, so that live work and a
 * replay give the same of the page. By both a reader of a range knows what it reads already. Each copy is of the page or of one copy more
 * before it, so that of a page that lies outside of the range, or is gone, the first copy within it is read and the others are passed over.
 *
 * Copies of before these headers name no page, and none of a page whose place is another's, since html was made anew; they are pages of
 * their own.
 */
export function isPutBack(headers: Headers): boolean {
  // A requeued task has no `only`.
  return headerValue(headers, HEADER.requeued) !== undefined && headerValue(headers, HEADER.only) !== undefined
}

/** The replay whose dead letter a page that was put back had been. */
export function putBackOfReplay(headers: Headers): string | undefined {
  return isPutBack(headers) ? headerValue(headers, HEADER.replay) : undefined
}

/** Where the page of a message lies that fetch wrote: of any other than a copy its own place. */
export function pageSource({ topic, partition, offset, headers }: Located): MessagePlace {
  const origin = originOnHtml(topic, headers)
  return origin === undefined ? { topic, partition, offset } : { topic, partition: origin.partition, offset: origin.offset }
}

/** Epoch ms: when the page was written that the message is, or is a copy of. */
export function pageTime(message: Located & Pick<OriginalMessage, 'timestamp'>): number {
  return originOnHtml(message.topic, message.headers)?.timestamp ?? message.timestamp
}

/**
 * True for a copy that a reader passes over, since it reads the page in another place. `reads` tells of a place whether it is one that
 * this reader has read, or will.
 */
export function isReadElsewhere(message: Located, reads: (place: MessagePlace) => boolean): boolean {
  return pagePlaces(message).some(reads)
}

/** Of a copy: where its page lies, and the message that it is a copy of. Shape: none where it is no copy. */
export function pagePlaces({ topic, headers }: Located): readonly MessagePlace[] {
  const origin = originOnHtml(topic, headers)
  if (origin === undefined) return []
  const copied = copiedPlace(headers)
  return copied === undefined ? [origin] : [origin, { topic, ...copied }]
}

/** Headers by which a copy of the message that a dead letter is about tells of its page. */
export function copyHeaders(original: OriginalPlace, copied: PlaceInTopic | undefined): Record<string, string> {
  const { topic, partition, offset, timestamp } = original
  return {
    [HEADER.origTopic]: topic,
    [HEADER.origPartition]: String(partition),
    [HEADER.origOffset]: String(offset),
    ...(timestamp === undefined ? {} : { [HEADER.origTimestamp]: String(timestamp) }),
    [HEADER.copyOf]: placeInTopic(copied ?? original),
  }
}

/** Header by which a dead letter of a copy tells where that lay; none where the message was the page itself. */
export function copiedHeaders({ topic, partition, offset, headers }: Located): Record<string, string> {
  return originOnHtml(topic, headers) === undefined ? {} : { [HEADER.copyOf]: placeInTopic({ partition, offset }) }
}

/** Of a copy, or a dead letter of one: where the message lies that it is a copy of. Shape: total. */
export function copiedPlace(headers: Headers): PlaceInTopic | undefined {
  const [, partition, offset] = /^(\d{1,9}):(\d{1,19})$/.exec(headerValue(headers, HEADER.copyOf) ?? '') ?? []
  return partition === undefined || offset === undefined ? undefined : { partition: Number(partition), offset: BigInt(offset) }
}

/** `partition:offset`: within its topic, as headers and commands have it. */
export function placeInTopic({ partition, offset }: PlaceInTopic): string {
  return `${partition}:${offset}`
}

function originOnHtml(topic: string, headers: Headers): OriginalPlace | undefined {
  if (!isPutBack(headers)) return undefined
  const origin = readOrigin(headers)
  return origin?.topic === topic ? origin : undefined
}
