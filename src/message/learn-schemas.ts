import { retried } from '../kernel/backoff.ts'
import type { Clock } from '../kernel/clock.ts'
import { isAway } from '../kernel/errors.ts'
import type { MessageCodec } from './codec.ts'

const RETRY = { firstMs: 200, maxMs: 5_000 } as const

/**
 * Learns the schemas that the values name and nobody here knows yet, for a reader that has nothing else to do meanwhile: a registry that is
 * away, or a broker with the announcements, is waited for, since its messages can be read later and must not be taken for broken.
 * Errors: REGISTRY_REFUSED; the reason of the signal.
 */
export async function learnSchemas(
  codec: Pick<MessageCodec, 'ensureSchemas'>,
  values: readonly (Buffer | null)[],
  options: { readonly clock: Pick<Clock, 'sleep'>; readonly signal?: AbortSignal },
): Promise<void> {
  await retried(async () => codec.ensureSchemas(values), { policy: RETRY, again: isAway, ...options })
}
