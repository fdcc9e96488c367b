import type { MessagePlace, TopicPartition } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ClusterSession } from './cluster-session.ts'
import type { CommitTrail } from './commit-trail.ts'
import type { CommittedOffset } from './committed-offsets.ts'
import type { LostEnd } from './end-again.ts'
import { transactionEnd } from './transaction-end.ts'

/** What the broker holds, and what it has lost of it. */
export interface Restored {
  /** The offset behind the last transaction whose messages are committed. */
  readonly held: CommittedOffset
  /** False where a later one may still commit, as far as the trail tells. */
  readonly isKnown: boolean
  /** The first transaction that is over, and whose messages lie in partitions that do not know it. */
  readonly lostEnd: LostEnd | undefined
}

export interface RestoredOptions {
  readonly session: ClusterSession
  readonly trail: CommitTrail
  readonly transactionalId: string
  readonly groupId: string
  readonly input: TopicPartition
  readonly committed: CommittedOffset
  /** Until when markers are waited for. */
  readonly limits: { readonly clock: Pick<Clock, 'mono' | 'sleep'>; readonly deadlineMono: number }
}

/** Only after a fence: nothing of the id is open at its coordinator then. Errors: those of the session. */
export async function restored(options: RestoredOptions): Promise<Restored> {
  const { trail, transactionalId, groupId, input, committed } = options
  let isKnown = true
  const lostEnds: LostEnd[] = []
  const lost = ({ open, producerId }: StepEnd, end: Pick<LostEnd, 'result' | 'offset'>): void => {
    if (open.length > 0 && producerId !== undefined) lostEnds.push({ transactionalId, producerId, open, ...end })
  }
  // Its offset is there; its messages may not be.
  const last = trail.lastOf(transactionalId, committed)
  if (last !== undefined) lost(await endOf(last.messages, options), { result: 'commit' })
  const held = await trail.follow(transactionalId, committed, async (step) => {
    const end = await endOf(step.messages, options)
    isKnown &&= end.hasHappened !== undefined
    // Where nobody knows it may be either: all of its messages are stored, and its offset goes with them.
    lost(end, { result: end.hasHappened === false ? 'abort' : 'commit', offset: { groupId, input, step } })
    return end.hasHappened
  })
  return { held, isKnown, lostEnd: lostEnds[0] }
}

interface StepEnd {
  /** By any marker: false where it was aborted, or its messages are gone; undefined where there is none. */
  readonly hasHappened: boolean | undefined
  /** Partitions without a marker, whose readers wait for one, and whose messages they are. */
  readonly open: readonly TopicPartition[]
  readonly producerId: string | undefined
}

async function endOf(messages: readonly MessagePlace[], { session, limits }: RestoredOptions): Promise<StepEnd> {
  const ends = await Promise.all(messages.map((message) => transactionEnd(session, message, limits)))
  const open = messages.filter((_, place) => ends[place]?.isCommitted === undefined)
  const known = ends.map(({ isCommitted }) => isCommitted)
  const hasHappened = known.includes(true) ? true : known.includes(false) ? false : undefined
  return { hasHappened, open, producerId: ends.find(({ isCommitted }) => isCommitted === undefined)?.producerId }
}
