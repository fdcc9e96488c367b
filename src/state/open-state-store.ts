import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import type { StateStore, StoreHealth } from './state-store.ts'

export interface OpenStateStoreOptions {
  /** Redis for many machines; goes before `dataDir`. */
  readonly redisUrl?: string
  /** Data folder of this machine; the state lies in `state` within it. */
  readonly dataDir?: string
  /** One deployment: the Kafka cluster and the prefix of its topics. Two deployments never see each other's state. */
  readonly namespace: { readonly clusterId: string; readonly prefix: string }
  readonly clock: Clock
  readonly observer: Observer
  /**
   * Whether a store that is found empty keeps every key waiting for one crawl delay, since nobody knows when it was last asked. Where not
   * given: yes, but for a data folder that did not exist or was empty, whose deployment is new as a whole.
   */
  readonly warmUp?: boolean
}

/**
 * Opens the StateStore of a deployment. Errors: CONFIG_INVALID (neither given, bad URL), REDIS_UNREACHABLE, STATE_BROKEN, DISK_FULL,
 * CONFIG_UNREADABLE.
 */
export async function openStateStore(options: OpenStateStoreOptions): Promise<StateStore> {
  const { namespace, clock, observer } = options
  // Only the one that is used: a command has its answer sooner, and a worker is smaller.
  if (options.redisUrl !== undefined) {
    const { RedisStore } = await import('./redis/redis-store.ts')
    return RedisStore.open({ url: options.redisUrl, namespace, clock, observer, warmUp: options.warmUp ?? true })
  }
  if (options.dataDir === undefined) {
    throw new MillraceError('CONFIG_INVALID', 'there is no place for the state: neither `redis` nor a data folder (--data) is given')
  }
  const warmUp = options.warmUp ?? !isNewFolder(options.dataDir)
  const { LmdbStore } = await import('./lmdb/lmdb-store.ts')
  return LmdbStore.open({ folder: join(options.dataDir, 'state'), namespace, clock, observer, warmUp })
}

/**
 * Facts of the store while nobody knows the deployment, since its Kafka is away: it is looked at, and nothing is begun in it. Shape:
 * undefined where the data folder holds no state yet. Errors: as `openStateStore`.
 */
export async function stateStoreHealth({
  redisUrl,
  dataDir,
  clock,
  observer,
}: {
  readonly redisUrl: string | undefined
  readonly dataDir: string
  readonly clock: Clock
  readonly observer: Observer
}): Promise<StoreHealth | undefined> {
  if (redisUrl !== undefined) return (await import('./redis/redis-health.ts')).redisHealth(redisUrl, { clock, observer })
  const folder = join(dataDir, 'state')
  if (!existsSync(folder)) return undefined
  return (await import('./lmdb/lmdb-store.ts')).LmdbStore.healthOf({ folder, clock, observer })
}

function isNewFolder(folder: string): boolean {
  if (!existsSync(folder)) return true
  try {
    return readdirSync(folder).length === 0
  } catch {
    // No folder, or no right to look into it: opening the store says so in its own words.
    return false
  }
}
