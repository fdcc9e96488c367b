import type { WindowEntry } from '../kafka/window-entry.ts'
import { retried } from '../kernel/backoff.ts'
import type { Clock } from '../kernel/clock.ts'
import { isAway } from '../kernel/errors.ts'
import type { Lane } from '../message/generated/types.ts'
import { LANES } from '../message/topics.ts'
import type { IntakeVerdict } from './task-intake.ts'

/** Entries that are decoded, and that the store is asked about, in one go: the event loop must not be held for longer than some ms. */
const INTAKE_BATCH = 100
/** Of these, places that a lower lane is sure of while a higher one fills the rest. */
const LEAST_OF_LANE = 10
const INTAKE_RETRY = { firstMs: 200, maxMs: 5_000 } as const

export interface IntakeQueueOptions {
  readonly laneOf: (entry: WindowEntry) => Lane
  readonly sort: (entries: readonly WindowEntry[]) => Promise<readonly IntakeVerdict[]>
  /** `checkedMono`: monotonic ms at which the store was asked. Not called after `close`. */
  readonly onVerdicts: (verdicts: readonly IntakeVerdict[], checkedMono: number) => void
  /** Runs work that ends by itself. */
  readonly work: (run: () => Promise<void>) => void
  readonly clock: Clock
  readonly random: () => number
  readonly signal: AbortSignal
}

/**
 * What was read and not looked at yet. One batch is looked at at a time, so that tasks enter the queues in the order of their
 * partitions. A lane has partitions of its own, and a higher one goes first: thousands of entries of the low lane may wait here.
 */
export class IntakeQueue {
  readonly #options: IntakeQueueOptions
  #incoming: Record<Lane, WindowEntry[]> = { high: [], normal: [], low: [] }
  #isSorting = false
  #isOpen = true
  #isHeld = false

  constructor(options: IntakeQueueOptions) {
    this.#options = options
  }

  add(entries: readonly WindowEntry[]): void {
    if (!this.#isOpen) return
    for (const entry of entries) this.#incoming[this.#options.laneOf(entry)].push(entry)
    this.#go()
  }

  /** More was read than one look takes in: a backlog is read through. */
  get isBehind(): boolean {
    return LANES.reduce((sum, lane) => sum + this.#incoming[lane].length, 0) > INTAKE_BATCH
  }

  /** Nothing more is looked at until `release`; what is read waits here, and its windows fill. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    this.#go()
  }

  /** Nothing is taken from now on; what waits comes again for the next owner. */
  close(): void {
    this.#isOpen = false
    this.#incoming = { high: [], normal: [], low: [] }
  }

  #go(): void {
    if (this.#isSorting || this.#isHeld) return
    this.#isSorting = true
    this.#options.work(() => this.#sortAll())
  }

  async #sortAll(): Promise<void> {
    try {
      while (this.#isOpen && !this.#isHeld) {
        const taken = this.#nextBatch()
        if (taken.length === 0) return
        const batch = taken.filter((entry) => entry.isCurrent())
        const checkedMono = this.#options.clock.mono()
        const verdicts = await this.#sort(batch)
        if (this.#isOpen) this.#options.onVerdicts(verdicts, checkedMono)
      }
    } finally {
      this.#isSorting = false
    }
  }

  #nextBatch(): WindowEntry[] {
    const lanes = LANES.map((lane) => this.#incoming[lane])
    let room = INTAKE_BATCH
    return lanes.flatMap((entries, index) => {
      const owed = lanes.slice(index + 1).reduce((sum, { length }) => sum + Math.min(length, LEAST_OF_LANE), 0)
      const taken = entries.splice(0, Math.max(0, room - owed))
      room -= taken.length
      return taken
    })
  }

  /** What is away (a schema registry, the broker of the announcements) holds up the intake and loses nothing. */
  #sort(batch: readonly WindowEntry[]): Promise<readonly IntakeVerdict[]> {
    const { sort, clock, random, signal } = this.#options
    return retried(() => sort(batch), { policy: INTAKE_RETRY, again: isAway, clock, signal, random })
  }
}
