import type { MessagePlace } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { digestOfParts } from '../kernel/digest.ts'
import { randomBytes } from '../kernel/random-bytes.ts'

/**
 * Identities that any process, in any language, computes alike; vectors in schemas/vectors.json.
 *
 * h(parts): first 32 hex characters of the sha256 over the parts, each as UTF-8 behind its length in bytes as a 4-byte big-endian
 * integer. Numbers are written in decimal, so that `1` and `"1"` are the same part. The length makes ("ab", "c") differ from ("a", "bc").
 */
export function h(...parts: readonly (string | number | bigint)[]): string {
  return digestOfParts(parts).slice(0, 32)
}

/** UUIDv7 (RFC 9562 section 5.7): sorts by time of making to the millisecond, random beyond it. */
export function uuidV7(clock: Pick<Clock, 'now'>, random: (size: number) => Uint8Array = randomBytes): string {
  const bytes = Buffer.alloc(16)
  bytes.writeUIntBE(Math.max(0, Math.trunc(clock.now())), 0, 6)
  bytes.set(random(10).subarray(0, 10), 6)
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Task of a link: the same link found again is the same task. */
export function linkTaskId(crawlId: string, canonicalUrl: string, round: number): string {
  return h(crawlId, canonicalUrl, round)
}

/** Task that a foreign producer wrote without an id: named by where it lies. Units: timestamp is epoch ms, as the message has it. */
export function foreignTaskId(at: MessagePlace & { readonly clusterId: string; readonly timestamp: number }): string {
  return h(at.clusterId, at.topic, at.partition, at.offset, at.timestamp)
}

/** Task of a redirect hop to another registrable domain. Shape: hop counts from 1 within the chain; url is the target's. */
export function hopTaskId(parentTaskId: string, attempt: number, hop: number, url: string): string {
  return h(parentTaskId, attempt, hop, url)
}

/**
 * Task that a dead letter becomes when it is requeued: another one, since the first has its final outcome. The same dead letter is
 * always the same task.
 */
export function requeuedTaskId(taskId: string, deadLetter: { readonly partition: number; readonly offset: bigint }): string {
  return h(taskId, 'requeued', deadLetter.partition, deadLetter.offset)
}

/** One attempt of a task; a repeat of the same attempt has the same id. */
export function fetchId(taskId: string, attempt: number): string {
  return h(taskId, attempt)
}

/** The key by which a sink collapses repeats of a record. */
export function recordId(fetchId: string, extractor: string, version: number, itemIndex: number): string {
  return h(fetchId, extractor, version, itemIndex)
}
