import type { UrlTask } from '../../message/generated/types.ts'
import { canonicalUrl } from '../../url/canonical-url.ts'

/** A run of characters shorter than this lies in too many messages. */
const LEAST_RUN = 6
/** Characters that no spelling of a URL writes otherwise: not encoded, not escaped in JSON, not changed in canonical form. */
const RUNS = /[A-Za-z0-9_~.-]+/g

/**
 * Bytes by which messages about a URL are found before any of them is decoded: all of them hold one of these texts, and few others do.
 * The longest plain run of its path or query, so that other spellings of the URL are found too; where it has none that tells enough, the
 * whole URL as Avro and JSON write it, and other spellings are not found.
 */
export function searchTexts(url: URL): readonly Buffer[] {
  const canonical = canonicalUrl(url)
  const { pathname, search } = new URL(canonical)
  const runs = `${pathname}${search}`.match(RUNS) ?? []
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), '')
  if (longest.length >= LEAST_RUN) return [Buffer.from(longest)]
  const spellings = [...new Set([canonical, url.href])]
  return spellings.flatMap((text) => [avroString(text), Buffer.from(JSON.stringify(text))])
}

/** Whether a task is of the URL with that canonical form. */
export function isTaskOf(canonical: string, { canonicalUrl: own, url }: Pick<UrlTask, 'canonicalUrl' | 'url'>): boolean {
  return own === canonical || (URL.canParse(url) && canonicalUrl(new URL(url)) === canonical)
}

/** Lies in every message. */
export const EVERY_MESSAGE: readonly Buffer[] = [Buffer.alloc(0)]

/** What every encoder of JSON writes as it is. */
const PLAIN_NAME = /^[A-Za-z0-9_.~: -]+$/

/**
 * Texts of which each message of a crawl holds one. Anyone writes JSON to the lanes, and may write other than plain names in more ways than
 * can be looked for (`\/`, `\u00E9`): all JSON that names a crawl is looked at then.
 */
export function crawlTexts(crawlId: string, writtenBy: 'us' | 'anyone'): readonly Buffer[] {
  const texts = writtenAs(crawlId)
  return writtenBy === 'us' || PLAIN_NAME.test(crawlId) ? texts : [...texts, Buffer.from('"crawlId"')]
}

/** Bytes that every message of ours holds in which the text is a value: as Avro writes it, and as JSON does. */
export function writtenAs(text: string): readonly Buffer[] {
  const json = JSON.stringify(text)
  const ascii = json.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return [avroString(text), ...[...new Set([json, ascii])].map((spelling) => Buffer.from(spelling))]
}

/** Length as a zigzag varint, then the bytes: as Avro writes a string, and Kafka a key. */
function avroString(text: string): Buffer {
  const bytes = Buffer.from(text)
  const length: number[] = []
  let rest = bytes.length * 2
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) length.push((rest % 0x80) | 0x80)
  length.push(rest)
  return Buffer.concat([Buffer.from(length), bytes])
}
