import { digestOfParts } from '../../kernel/digest.ts'
import { memo } from '../../kernel/memo.ts'

/**
 * Keys of the file: 8 bytes of the namespace, one byte for the kind of thing, then hashes or names. Names that a caller chooses are
 * hashed where they only have to be found again, so that no name is too long for a key (1,978 bytes) and no two can run into each other.
 */
export const KIND = {
  meta: 'M',
  claim: 'C',
  timedClaim: 'c',
  finished: 'F',
  underWay: 'U',
  crawl: 'N',
  openCrawl: 'o',
  endedCrawl: 'e',
  openTask: 'O',
  finalTask: 'Z',
  budgetPlace: 'B',
  budgetTotals: 'T',
  /** Of an older version. */
  budget: 'b',
  crawlBudget: 'K',
  pace: 'L',
  spill: 'S',
  robots: 'R',
  validators: 'H',
  value: 'V',
  timedValue: 'v',
  worker: 'W',
} as const
export type Kind = keyof typeof KIND

const NAMESPACE_BYTES = 8
/** Sites and crawls come again with every request, and their digests take longer than all else about a key. */
const REMEMBERED_NAMES = 4096
const REMEMBERED_TASKS = 2048

/** The key of the file as a whole, outside of every namespace. */
export const FILE_KEY = Buffer.alloc(NAMESPACE_BYTES + 1)

export class Keys {
  readonly #kinds = new Map<Kind, Buffer>()

  constructor(clusterId: string, prefix: string) {
    const namespace = digest([clusterId, prefix], NAMESPACE_BYTES)
    for (const [kind, letter] of Object.entries(KIND))
      this.#kinds.set(kind as Kind, Buffer.concat([namespace, Buffer.from(letter, 'latin1')]))
  }

  /** All keys of a kind begin with this. */
  kind(kind: Kind): Buffer {
    return this.#kinds.get(kind) as Buffer
  }

  of(kind: Kind, ...parts: readonly Buffer[]): Buffer {
    return Buffer.concat([this.kind(kind), ...parts])
  }

  /** Key of one thing that is known by a name. */
  named(kind: Kind, name: string): Buffer {
    return this.of(kind, nameDigest(name))
  }
}

/** Short form of a crawl or a budget within keys: its things lie together and can be walked. */
export function groupDigest(id: string): Buffer {
  return nameDigest(id).subarray(0, 8)
}

const nameDigest = memo((name) => digest([name], 16), REMEMBERED_NAMES)

/** A task within keys where its time is not wanted. Asked for several times on the way of each. */
export const taskDigest = memo((taskId) => digest([taskId], 16), REMEMBERED_TASKS)

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/**
 * A task within keys, 16 bytes. A UUIDv7 stays what it is: it begins with the time, so tasks that were made together lie on the same pages
 * of the file, and so do those that end together. With digests each task touched pages of its own: of a million open tasks a worker had the
 * whole file resident, and wrote two pages for each that ended. Other ids are hashed.
 */
export function taskBytes(taskId: string): Buffer {
  return UUID_V7.test(taskId) ? Buffer.from(taskId.replaceAll('-', ''), 'hex') : taskDigest(taskId)
}

/** Epoch ms as bytes that sort by time. */
export function timeBytes(epochMs: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(Math.max(0, Math.floor(epochMs))))
  return bytes
}

/** First bytes of sha256 over the parts, each behind its length. */
export function digest(parts: readonly (string | number)[], bytes: number): Buffer {
  return Buffer.from(digestOfParts(parts).slice(0, 2 * bytes), 'hex')
}

/** The smallest key above all that begin with `prefix`. Shape: the last byte of our prefixes is never 255 for kinds; hashes may be. */
export function endOf(prefix: Buffer): Buffer {
  const end = Buffer.from(prefix)
  for (let index = end.length - 1; index >= 0; index -= 1) {
    const byte = end[index] ?? 0
    if (byte < 255) {
      end[index] = byte + 1
      return end.subarray(0, index + 1)
    }
  }
  return Buffer.concat([prefix, Buffer.alloc(64, 255)])
}
