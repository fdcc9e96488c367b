import type { PolitenessKey } from '../../src/kernel/brand.ts'
import type { StateStore } from '../../src/state/state-store.ts'

/**
 * No request of the key starts for `forMs`, as a worker tells it that knows nothing else. `resetAt`: the last reset that it had heard of.
 */
export function backOff(store: StateStore, key: PolitenessKey, forMs: number, resetAt = 0): Promise<void> {
  const known = { backOffMs: forMs, isAsked: false, allowed: null, rateFactor: 1, trips: 0, parkedMs: 0 }
  return store.reassert(key, known, resetAt)
}
