import type { LayoutSource } from '../kafka/layout.ts'
import { backoffMs } from '../kernel/backoff.ts'
import { type Clock, slept } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'

/** A broker that has not heard of `topics apply` yet knows within a second or so; one that was made anew by hand stays as it is. */
const ASK_AGAIN = { firstMs: 500, maxMs: 60_000 } as const

export interface PartitionCountsOptions {
  readonly layout: LayoutSource
  /** Partitions of a topic as the cluster has it now. */
  readonly partitions: (topic: string) => Promise<readonly number[]>
  readonly clock: Clock
}

/**
 * How many partitions the topics have that are written to: as the layout says, for all processes must agree. Of one that the layout does
 * not know, as many as there were at the start; of one that has fewer than the layout says, as many as it has, until it has them all.
 */
export class PartitionCounts {
  readonly #options: PartitionCountsOptions
  /** Of topics that the layout did not tell of: those of shadows, and what was made by hand. */
  readonly #atStart = new Map<string, number>()
  /** Of topics that have fewer than the layout says. */
  readonly #fewer = new Map<string, number>()

  constructor(options: PartitionCountsOptions) {
    this.#options = options
  }

  /** Once for all topics, before anything is written. */
  async look(topics: Iterable<string>): Promise<void> {
    for (const topic of topics) await this.#look(topic)
  }

  /** Asks again for those that have fewer, sooner at first, until there is none or the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    for (let tries = 1; this.#fewer.size > 0; tries += 1) {
      if (!(await slept(clock, backoffMs(ASK_AGAIN, tries, 1), signal))) return
      try {
        for (const topic of [...this.#fewer.keys()]) await this.#look(topic)
      } catch (error) {
        // Who writes hears of that by itself, and decides.
        if (!(error instanceof MillraceError)) throw error
      }
    }
  }

  /** Asked for each message: partitions may be added while it runs. Errors: KAFKA_TOPIC_MISSING for one that was not looked at. */
  of(topic: string): number {
    const layout = this.#options.layout()
    const atStart = layout.knows(topic) ? undefined : this.#atStart.get(topic)
    return atStart ?? Math.min(layout.partitionsOf(topic), this.#fewer.get(topic) ?? Number.POSITIVE_INFINITY)
  }

  async #look(topic: string): Promise<void> {
    const { layout, partitions } = this.#options
    const { length } = await partitions(topic)
    // Deleted for a moment, to be made anew.
    if (length === 0 && this.#fewer.has(topic)) return
    if (!layout().knows(topic)) this.#atStart.set(topic, length)
    else if (length < layout().partitionsOf(topic)) this.#fewer.set(topic, length)
    else this.#fewer.delete(topic)
  }
}
