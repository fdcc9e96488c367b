import { isClientGone } from '../runtime/process-client-id.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { extractGroupsOf } from './extract-groups.ts'

/**
 * A process that was killed stays a member of its groups until its session runs out, and whoever starts in its place waits for it:
 * half a minute in which nothing is read. On our own broker every member is a process of this machine and says which one in its client
 * id, so the dead can be told from the living and taken out at once.
 *
 * Takes members whose processes have ended out of our groups, and out of others that are named; does nothing on a given broker.
 * Errors: as of the admin client.
 */
export async function evictDeadMembers(
  runtime: Pick<Runtime, 'isEmbedded' | 'groups' | 'admin' | 'config' | 'observer'>,
  others: readonly string[] = [],
): Promise<void> {
  if (!runtime.isEmbedded) return
  const { groups, admin, observer } = runtime
  for (const groupId of [groups.fetch, groups.delay, groups.frontier, ...extractGroupsOf(runtime), ...others]) {
    const { members } = await admin.describeGroup(groupId)
    for (const { memberId, clientId } of members) {
      if (!isClientGone(clientId)) continue
      await admin.evictMember(groupId, memberId)
      observer.emit('GroupMemberEvicted', { group: groupId, member: memberId })
    }
  }
}
