import type { Outage } from '../kernel/outage.ts'
import type { BlobStore, StoredBlob } from './blob-store.ts'

/** A blob store whose reads and writes of bodies, which stages repeat until it answers, tell whether it is away. */
export class WatchedBlobs implements BlobStore {
  readonly location: string
  readonly #store: BlobStore
  readonly #outage: Pick<Outage, 'watch'>

  constructor(store: BlobStore, outage: Pick<Outage, 'watch'>) {
    this.location = store.location
    this.#store = store
    this.#outage = outage
  }

  put(ref: string, bytes: Buffer): Promise<void> {
    return this.#outage.watch(() => this.#store.put(ref, bytes), 'write')
  }

  get(ref: string, maxBytes: number): Promise<Buffer | undefined> {
    return this.#outage.watch(() => this.#store.get(ref, maxBytes))
  }

  check(): Promise<boolean> {
    return this.#store.check()
  }

  prepare(): Promise<void> {
    return this.#store.prepare()
  }

  list(): AsyncIterable<StoredBlob> {
    return this.#store.list()
  }

  deleteUntouched(ref: string, before: number): Promise<boolean> {
    return this.#store.deleteUntouched(ref, before)
  }
}
