import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../src/kernel/clock.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import { LmdbStore, type LmdbStoreOptions } from '../../src/state/lmdb/lmdb-store.ts'
import { RedisStore } from '../../src/state/redis/redis-store.ts'
import type { StateStore } from '../../src/state/state-store.ts'
import { redisUrl, uniqueName } from './services.ts'

/** Folders and stores of one test, closed and removed at its end. */
export class StoreBench {
  readonly folder = mkdtempSync(join(tmpdir(), 'millrace-state-'))
  readonly clusterId = uniqueName('cluster')
  readonly #open: StateStore[] = []

  async lmdb(options: Partial<LmdbStoreOptions> & { prefix?: string } = {}): Promise<LmdbStore> {
    const { prefix = 'test.', ...rest } = options
    return this.#keep(
      await LmdbStore.open({
        folder: this.folder,
        namespace: { clusterId: this.clusterId, prefix },
        clock: systemClock,
        observer: silentObserver,
        warmUp: false,
        ...rest,
      }),
    )
  }

  async redis(options: { prefix?: string; warmUp?: boolean; url?: string; clock?: Clock } = {}): Promise<RedisStore> {
    return this.#keep(
      await RedisStore.open({
        url: options.url ?? redisUrl(),
        namespace: { clusterId: this.clusterId, prefix: options.prefix ?? 'test.' },
        clock: options.clock ?? systemClock,
        observer: silentObserver,
        warmUp: options.warmUp ?? false,
      }),
    )
  }

  async end(): Promise<void> {
    await Promise.all(this.#open.map((store) => store.close()))
    rmSync(this.folder, { recursive: true, force: true })
  }

  #keep<T extends StateStore>(store: T): T {
    this.#open.push(store)
    return store
  }
}
