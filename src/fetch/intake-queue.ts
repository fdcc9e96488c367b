import type { WindowEntry } from '../kafka/windowed-consumer.ts'
import { backoffMs } from '../kernel/backoff.ts'
import type { Clock } from '../kernel/clock.ts'
import { isMillraceError } from '../kernel/errors.ts'
import type { IntakeVerdict } from './task-intake.ts'

/** Entries that are decoded, and that the store is asked about, in one go: the event loop must not be held for longer than some ms. */
const INTAKE_BATCH = 100
const INTAKE_RETRY = { firstMs: 200, maxMs: 5_000 } as const

export interface IntakeQueueOptions {
  readonly sort: (entries: readonly WindowEntry[]) => Promise<readonly IntakeVerdict[]>
  /** `checkedMono`: monotonic ms at which the store was asked. Not called after `close`. */
  readonly onVerdicts: (verdicts: readonly IntakeVerdict[], checkedMono: number) => void
  /** Runs work that ends by itself. */
  readonly work: (run: () => Promise<void>) => void
  readonly clock: Clock
  readonly random: () => number
  readonly signal: AbortSignal
}

/** What was read and not looked at yet. One batch is looked at at a time, so that tasks enter the queues in the order of their partitions. */
export class IntakeQueue {
  readonly #options: IntakeQueueOptions
  #incoming: WindowEntry[] = []
  #isSorting = false
  #isOpen = true

  constructor(options: IntakeQueueOptions) {
    this.#options = options
  }

  add(entries: readonly WindowEntry[]): void {
    if (!this.#isOpen) return
    for (const entry of entries) this.#incoming.push(entry)
    if (this.#isSorting) return
    this.#isSorting = true
    this.#options.work(() => this.#sortAll())
  }

  /** Nothing is taken from now on; what waits comes again for the next owner. */
  close(): void {
    this.#isOpen = false
    this.#incoming = []
  }

  async #sortAll(): Promise<void> {
    try {
      while (this.#incoming.length > 0 && this.#isOpen) {
        const batch = this.#incoming.splice(0, INTAKE_BATCH).filter((entry) => entry.isCurrent())
        const checkedMono = this.#options.clock.mono()
        const verdicts = await this.#sort(batch)
        if (this.#isOpen) this.#options.onVerdicts(verdicts, checkedMono)
      }
    } finally {
      this.#isSorting = false
    }
  }

  /** What is away (a schema registry) holds up the intake and loses nothing. */
  async #sort(batch: readonly WindowEntry[]): Promise<readonly IntakeVerdict[]> {
    const { sort, clock, random, signal } = this.#options
    for (let failures = 1; ; failures += 1) {
      try {
        return await sort(batch)
      } catch (error) {
        if (!isMillraceError(error) || error.disposition !== 'retry') throw error
        await clock.sleep(backoffMs(INTAKE_RETRY, failures, random()), signal)
      }
    }
  }
}
