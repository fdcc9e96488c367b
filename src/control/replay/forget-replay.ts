import { MillraceError } from '../../kernel/errors.ts'
import { subject } from '../../message/command.ts'
import { shadowTopicOf } from '../../message/topics.ts'
import { evictDeadMembers } from '../groups/dead-members.ts'
import { announce } from '../runtime/announce.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { knownRequest, noReplay } from './replay-ledger.ts'

export interface ForgottenReplay {
  readonly replayId: string
  /** Where its records are, or were. */
  readonly topic: string
  /** The topic was its own, and is gone; one that `--out` named may hold records of others, and stays. */
  readonly isDeleted: boolean
}

/**
 * Removes what a shadow has left: its topic, its group and its line in `replay status`. Its id is not free again. Errors: USAGE where
 * there is none; REPLAY_REFUSED for a replay in place, one that has not ended, and one whose process still works. Cut short it is begun
 * again: the word on `control` comes last. The subject of its topic in a schema registry stays: deleting there is for its owners.
 */
export async function forgetReplay(runtime: Runtime, replayId: string): Promise<ForgottenReplay> {
  const { admin, topics } = runtime
  const known = await knownRequest(runtime, replayId)
  if (known === undefined || known.request.forgotten === true) throw noReplay(replayId)
  const { request, isClosed } = known
  const { shadow, groupId } = request
  if (shadow === undefined)
    throw new MillraceError('REPLAY_REFUSED', `replay ${replayId} was in place: it has left no topic and no group of its own`)
  // One that was called off and whose process was killed before it had left is closed by this.
  if (!isClosed && request.cancelled !== true)
    throw new MillraceError('REPLAY_REFUSED', `replay ${replayId} has not ended: end it with \`millrace replay cancel ${replayId}\` first`)
  await evictDeadMembers(runtime, [groupId])
  if ((await admin.describeGroup(groupId)).members.length > 0)
    throw new MillraceError('REPLAY_REFUSED', `replay ${replayId} still has a process at work in group ${groupId}: let it end first`)
  const isOwn = shadow.topic === shadowTopicOf(topics, replayId)
  if (isOwn) await admin.deleteTopic(shadow.topic)
  await admin.deleteGroup(groupId)
  await announce(runtime, { kind: 'close', subject: subject.replay(replayId), payload: { ...request, forgotten: true } })
  return { replayId, topic: shadow.topic, isDeleted: isOwn }
}
