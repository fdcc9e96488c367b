import { endExpiredLeases, isIdle } from '../limiter-rules.ts'
import type { Timed } from './file-time.ts'
import type { Keys, Kind } from './keys.ts'
import type { LmdbFile } from './lmdb-file.ts'
import { decodePace, type StoredPace } from './pace-codec.ts'

/** Kinds of entries whose time ends. */
export type TimedKind = Extract<
  Kind,
  'timedClaim' | 'finished' | 'underWay' | 'robots' | 'validators' | 'timedValue' | 'worker' | 'spill' | 'pace'
>

/**
 * Takes away what has expired, a few entries per new one. Keys are hashes, so the cursor meets old and new entries alike: with four
 * looked at for each one added, the expired ones that still lie there stay below a third of the living. Nothing is ever scanned whole.
 */
const LOOKED_AT_PER_NEW = 4
/** Opening a cursor costs as much as looking at some: a few new ones wait for more. */
const LEAST_NEW = 16
const MOST_PER_STEP = 400

export class Sweep {
  readonly #file: LmdbFile
  readonly #keys: Keys
  /** Last key looked at, by kind. Each process has its own. */
  readonly #cursors = new Map<TimedKind, Buffer>()
  /** Added and not looked for yet, by kind. */
  readonly #owed = new Map<TimedKind, number>()

  constructor(file: LmdbFile, keys: Keys) {
    this.#file = file
    this.#keys = keys
  }

  /** Called within a step that has added `added` entries of the kind. */
  afterAdding(kind: TimedKind, added: number, now: number): void {
    if (added === 0) return
    // Of these there are few, each by a process that ends soon: none would ever see enough new ones.
    const isRare = kind === 'timedValue'
    const owed = (this.#owed.get(kind) ?? 0) + added
    const isDue = isRare || owed >= LEAST_NEW
    this.#owed.set(kind, isDue ? 0 : owed)
    if (!isDue) return
    const limit = isRare ? MOST_PER_STEP : Math.min(MOST_PER_STEP, owed * LOOKED_AT_PER_NEW)
    const entries = this.#file.entries(this.#keys.kind(kind), limit, this.#cursors.get(kind))
    for (const { key, value } of entries) if (this.#isOver(kind, value, now)) this.#file.remove(key)
    const last = entries.at(-1)
    if (last === undefined || entries.length < limit) this.#cursors.delete(kind)
    else this.#cursors.set(kind, last.key)
  }

  #isOver(kind: TimedKind, value: unknown, now: number): boolean {
    if (kind === 'pace') {
      const pace = decodePace(value as StoredPace, this.#file.time)
      endExpiredLeases(pace, now)
      return isIdle(pace, now)
    }
    // Every other timed entry begins with its time.
    return this.#file.time.until((value as readonly [Timed, ...unknown[]])[0]) <= now
  }
}
