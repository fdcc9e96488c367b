import type { MessagePlace } from '../kernel/brand.ts'
import type { CommittedOffset } from './committed-offsets.ts'

/** A transaction with messages, from when they are stored on. Whether it commits is not known then. */
export interface CommitStep {
  /** What the broker held before it. */
  readonly before: CommittedOffset
  readonly offset: bigint
  readonly metadata: string
  /** One of each partition that it wrote to, at least one. */
  readonly messages: readonly MessagePlace[]
}

/**
 * Of a transactional id, since it was followed last. One is enough as long as the broker forgets one offset; it may forget several in a
 * row.
 */
export const MOST_KEPT = 4

/**
 * The last transactions of each transactional id, of one worker. A broker can lose the offset of a transaction whose messages are
 * committed: one that ends in the middle of a commit may hold the offset as pending for ever (seen with Apache Kafka 4.4, once in some
 * hundred times). The messages tell the truth then. Those whose commit was acknowledged are kept as well: the broker does that when it has
 * decided to commit, and writes the end to messages and offset afterwards. So are those under way, for whoever takes the partition over
 * while its former owner still waits for an answer.
 */
export class CommitTrail {
  readonly #steps = new Map<string, readonly CommitStep[]>()

  add(id: string, step: CommitStep): void {
    this.#steps.set(id, [...this.of(id), step].slice(-MOST_KEPT))
  }

  /** Shape: oldest first. */
  of(id: string): readonly CommitStep[] {
    return this.#steps.get(id) ?? []
  }

  /** The one that has led to what the broker holds. */
  lastOf(id: string, committed: CommittedOffset): CommitStep | undefined {
    return this.of(id).findLast(({ offset, metadata }) => offset === committed.offset && metadata === committed.metadata)
  }

  /**
   * Where the transactions lead to from what the broker holds: over each that stands on it, or on the one before, and has happened. The
   * same as `committed` where nothing was lost. Steps that lead nowhere, or have not happened, are forgotten: many that fail one after the
   * other must not push out the one that is needed. `hasHappened` says undefined where nobody knows; such a step is kept.
   */
  async follow(
    id: string,
    committed: CommittedOffset,
    hasHappened: (step: CommitStep) => Promise<boolean | undefined>,
  ): Promise<CommittedOffset> {
    let held = committed
    const useless = new Set<CommitStep>()
    for (const step of this.of(id)) {
      const { before, offset, metadata } = step
      const standsHere = before.offset === held.offset && before.metadata === held.metadata
      const happened = standsHere ? await hasHappened(step) : false
      if (happened === true) held = { offset, metadata }
      else if (happened === false) useless.add(step)
    }
    this.#steps.set(
      id,
      this.of(id).filter((step) => !useless.has(step)),
    )
    return held
  }
}
