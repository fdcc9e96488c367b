import type { Clock } from '../kernel/clock.ts'
import { errorText } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import type { KafkaClient } from './client.ts'
import { ClusterSession } from './cluster-session.ts'
import { GroupAdmin } from './group-admin.ts'

export interface FormerMemberOptions {
  readonly client: KafkaClient
  readonly groupId: string
  readonly observer: Observer
  readonly clock: Clock
}

/**
 * The membership that a crashed consumer leaves behind. A broker that comes back knows its groups as they were; nobody speaks for the
 * old member any more, so its successor would wait for it until its session runs out, half a minute in which nobody of the group reads.
 */
export class FormerMember {
  readonly #options: FormerMemberOptions
  #memberId: string | undefined

  constructor(options: FormerMemberOptions) {
    this.#options = options
  }

  /** To be called when a consumer is gone for good. `undefined`: it had joined no group, and an older one may still be in it. */
  note(memberId: string | undefined): void {
    this.#memberId = memberId ?? this.#memberId
  }

  /** Takes it out of the group. Errors: none; where it could not be done the group waits, and the next call tries again. */
  async evict(signal: AbortSignal): Promise<void> {
    const { client, groupId, observer, clock } = this.#options
    const memberId = this.#memberId
    if (memberId === undefined) return
    const session = new ClusterSession({ client, clock })
    try {
      await new GroupAdmin(session, client, clock).evict(groupId, memberId, { signal })
      if (this.#memberId === memberId) this.#memberId = undefined
    } catch (error) {
      observer.emit('KafkaClientLogged', { text: `a former member of ${groupId} could not be taken out`, error: errorText(error) })
    } finally {
      await session.close()
    }
  }
}
