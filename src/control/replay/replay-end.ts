import { isMillraceError } from '../../kernel/errors.ts'
import { subject } from '../../message/command.ts'
import { type ReplayRequest, rangeOffsets } from '../../message/replay-request.ts'
import { announce } from '../runtime/announce.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { knownRequest } from './replay-ledger.ts'
import { isThrough, type ReplayEnd, statusOf } from './replay-status.ts'

/**
 * Ends a replay where nothing of it is left to do; whoever is through last does it. Shape: true when it has ended, now or before. What
 * owners had taken when it was called off is counted: this comes after their last commit.
 */
export async function endIfThrough(runtime: Runtime, replayId: string): Promise<boolean> {
  const known = await knownRequest(runtime, replayId)
  if (known === undefined || known.isClosed) return true
  const status = await statusOf(runtime, known)
  if (!isThrough(status)) return false
  await announceEnd(runtime, known.request, status)
  return true
}

/** For a process that leaves the group of a shadow: the last one ends what was called off. Shape: whether it was. */
export async function endIfCancelled(runtime: Runtime, { groupId, replayId }: ReplayRequest): Promise<boolean> {
  if ((await knownRequest(runtime, replayId))?.request.cancelled !== true) return false
  await endIfThrough(runtime, replayId)
  await deleteUnlessActive(runtime, groupId)
  return true
}

/** Says on `control` how a replay stood when it ended. */
export async function announceEnd(
  runtime: Runtime,
  request: ReplayRequest,
  { doneOffsets, totals, gone, partitions, endedBy }: ReplayEnd,
): Promise<void> {
  const isCancelled = request.cancelled === true
  const end: ReplayEnd = {
    // What lies at the end of a range need not be a page, and is not committed then.
    doneOffsets: isCancelled ? doneOffsets : rangeOffsets(request),
    totals,
    ...(gone === undefined ? {} : { gone }),
    partitions: partitions.map((each) =>
      isCancelled ? { ...each, phase: 'cancelled' as const } : { ...each, phase: 'done' as const, position: each.until },
    ),
    ...(endedBy === undefined ? {} : { endedBy }),
  }
  await announce(runtime, { kind: 'close', subject: subject.replay(request.replayId), payload: { ...request, end } })
}

/** The group of a shadow that has ended. One that another process under the same id is still in is deleted by that one. */
export async function deleteUnlessActive({ admin }: Runtime, groupId: string): Promise<void> {
  await admin.deleteGroup(groupId).catch((error: unknown) => {
    if (!isMillraceError(error, 'KAFKA_GROUP_ACTIVE')) throw error
  })
}
