import { EMPTY_OFFSET_MAP, encodeOffsetMap, MAX_MAP_CHARS, mapUntil, type OffsetMap, SURE_SPAN } from './offset-map.ts'

/**
 * When a window is full. It then takes no more until half of its places are free, and an eighth of the span: that grows shorter in steps as
 * large as what was read between two of its oldest, and with half of it a backlog would be read only as fast as those end.
 */
export interface TrackerLimits {
  /** Offsets taken and not completed. */
  readonly maxIncomplete: number
  /** From the committable offset to the position: what a restart reads again to find its place. */
  readonly maxSpan: number
  /** Length of the encoded map. */
  readonly maxMapChars: number
}

export const DEFAULT_TRACKER_LIMITS: TrackerLimits = { maxIncomplete: 1_000, maxSpan: 131_072, maxMapChars: 3_072 }

/** What to commit for the partition, and a mark to say later that it was stored. */
export interface Committable {
  readonly offset: bigint
  readonly metadata: string
  readonly version: number
}

/** Why an offset was or was not taken: `seen` is a repeat of this assignment, `completed` was finished before this assignment. */
export type Take = 'taken' | 'seen' | 'completed'

/**
 * Offsets of one assignment of one partition: which were taken, which are completed, what may be committed.
 *
 * Guarantee: the committable offset is never above an incomplete offset, and what is called completed above it was completed, or
 * does not exist. It knows nothing of time, of Kafka's calls, or of who does the work. A new assignment gets a new tracker.
 *
 * Offsets are bigint outside and numbers relative to `#origin` inside: a partition's window spans far less than 2^53.
 */
export class OffsetTracker {
  readonly #limits: TrackerLimits

  /** The committed offset this assignment began with. Never moves: moving it with the base would renumber every entry. */
  readonly #origin: bigint

  /**
   * Next offset to come from the log: everything below was taken, skipped or does not exist. Not "highest taken + 1": compaction and
   * transaction markers leave offsets that are never delivered, and a partition that ends in them would never be shown as read.
   */
  #position = 0

  /**
   * Taken and not completed, in ascending order of insertion, since offsets come ascending: the first is the lowest. Completed ones
   * are not kept: below the position, what is not in here is done. (Keeping the completed ones instead would grow with the span.)
   */
  readonly #incomplete = new Set<number>()

  /** One more than the highest completed offset; bounds the map, since offsets above it say nothing. Never below the loaded map's. */
  #completedEnd: number

  /** Offsets that the loaded map calls incomplete, ascending; those below the position have been dealt with. */
  readonly #loadedIncomplete: readonly number[]

  /** First index of `#loadedIncomplete` at or above the position. */
  #loadedNext = 0

  /** End of the loaded map. Until the position has passed it, offsets below it that are not incomplete are skipped. */
  readonly #loadedEnd: number

  /** Counts changes of what would be committed. Comparing offset and metadata instead would encode the map to find no change. */
  #version = 1

  /** The version that is known to be stored; 0 = none, so that a first commit overwrites whatever is there. */
  #storedVersion: number

  /** Length of the map when it was last encoded; encoding on every completion would cost more than the work it guards. */
  #mapChars = 0

  /**
   * Shape: `committed` is where the group stands and `loaded` the map stored with it. `stored` says that exactly this is what the
   * broker holds, so that an idle partition needs no commit.
   */
  constructor(
    committed: bigint,
    loaded: OffsetMap = EMPTY_OFFSET_MAP,
    options: { limits?: Partial<TrackerLimits>; stored?: boolean } = {},
  ) {
    this.#limits = { ...DEFAULT_TRACKER_LIMITS, ...options.limits }
    this.#origin = committed
    this.#loadedIncomplete = loaded.incomplete
    this.#loadedEnd = loaded.span
    this.#completedEnd = loaded.span
    this.#storedVersion = options.stored ? this.#version : 0
  }

  /** Next offset to come. */
  get position(): bigint {
    return this.#origin + BigInt(this.#position)
  }

  /** Taken and not completed. */
  get incompleteCount(): number {
    return this.#incomplete.size
  }

  /** From the committable offset to the position. */
  get span(): number {
    return Math.max(0, this.#position - this.#base())
  }

  /** The lowest incomplete offset, or the end of what is done. */
  get committableOffset(): bigint {
    return this.#origin + BigInt(this.#base())
  }

  /** True when the partition should be paused. Never while nothing is taken: what would end the pause could not come. */
  get isFull(): boolean {
    if (this.#incomplete.size === 0) return false
    const { maxIncomplete, maxSpan, maxMapChars } = this.#limits
    return this.#incomplete.size >= maxIncomplete || this.span >= maxSpan || this.#mapChars >= maxMapChars
  }

  /** True when so many offsets are incomplete that the rest of a batch should not be taken either. */
  get isOverfull(): boolean {
    return this.#incomplete.size >= 2 * this.#limits.maxIncomplete || (this.#incomplete.size > 0 && this.span >= 2 * this.#limits.maxSpan)
  }

  /** True when a paused partition may go on. */
  get hasRoom(): boolean {
    if (this.#incomplete.size === 0) return true
    const { maxIncomplete, maxSpan, maxMapChars } = this.#limits
    return this.#incomplete.size <= maxIncomplete / 2 && this.span <= (maxSpan * 7) / 8 && this.#mapChars < maxMapChars
  }

  /** Takes the next offset from the log. Shape: offsets come ascending; lower ones than the position are repeats. */
  take(offset: bigint): Take {
    const relative = Number(offset - this.#origin)
    if (relative < this.#position) return 'seen'
    this.#moveTo(relative)
    const completed = relative < this.#loadedEnd && this.#loadedIncomplete[this.#loadedNext] !== relative
    if (!completed) this.#incomplete.add(relative)
    this.#moveTo(relative + 1)
    return completed ? 'completed' : 'taken'
  }

  /** Nothing more will come below `position`: offsets that did not come do not exist. A lower one than before changes nothing. */
  advanceTo(position: bigint): void {
    this.#moveTo(Number(position - this.#origin))
  }

  /** Shape: true when the offset was incomplete and now is not. */
  complete(offset: bigint): boolean {
    const relative = Number(offset - this.#origin)
    if (!this.#incomplete.delete(relative)) return false
    this.#completedEnd = Math.max(this.#completedEnd, relative + 1)
    this.#version += 1
    return true
  }

  /** True when something else should be committed than what is stored. */
  get isChanged(): boolean {
    return this.#storedVersion !== this.#version
  }

  /** What should be committed; undefined when just that is stored. */
  committable(options: { withoutMap?: boolean } = {}): Committable | undefined {
    if (!this.isChanged) return undefined
    const base = this.#base()
    const offset = this.#origin + BigInt(base)
    const map = options.withoutMap ? EMPTY_OFFSET_MAP : this.#mapAbove(base)
    let encoded = encodeOffsetMap(map, offset, MAX_MAP_CHARS)
    this.#mapChars = encoded.kind === 'map' ? encoded.text.length : encoded.chars
    // What is completed above is repeated after a restart.
    if (encoded.kind === 'too-large') encoded = encodeOffsetMap(mapUntil(map, SURE_SPAN), offset, MAX_MAP_CHARS)
    return { offset, metadata: encoded.kind === 'map' ? encoded.text : '', version: this.#version }
  }

  /** Says that `committable` is stored. An older one than the last changes nothing. */
  stored(committable: Committable): void {
    this.#storedVersion = Math.max(this.#storedVersion, committable.version)
  }

  #moveTo(relative: number): void {
    if (relative <= this.#position) return
    const base = this.#base()
    const loadedNext = this.#loadedNext
    this.#position = relative
    while (this.#loadedNext < this.#loadedIncomplete.length && (this.#loadedIncomplete[this.#loadedNext] ?? 0) < relative) {
      this.#loadedNext += 1
    }
    // Taking more above an incomplete offset changes nothing that would be committed.
    if (this.#base() !== base || this.#loadedNext !== loadedNext) this.#version += 1
  }

  #base(): number {
    const [lowest] = this.#incomplete
    if (lowest !== undefined) return lowest
    // Incomplete by the loaded map and not delivered yet, or else all is done up to the position or the end of the loaded map.
    return this.#loadedIncomplete[this.#loadedNext] ?? Math.max(this.#position, this.#loadedEnd)
  }

  /** The map relative to `base`: what was taken here, and what the loaded map says of offsets that have not come again yet. */
  #mapAbove(base: number): OffsetMap {
    const span = this.#completedEnd - base
    if (span <= 0) return EMPTY_OFFSET_MAP
    const incomplete: number[] = []
    for (const offset of this.#incomplete) if (offset < this.#completedEnd) incomplete.push(offset - base)
    for (let index = this.#loadedNext; index < this.#loadedIncomplete.length; index += 1) {
      incomplete.push((this.#loadedIncomplete[index] ?? 0) - base)
    }
    // Offsets from the position up to the end of the loaded map that it calls completed stay completed; there are none above it.
    return { span, incomplete }
  }
}
