/** A body in the store. */
export interface StoredBlob {
  readonly ref: string
  readonly bytes: number
  /** Epoch ms by the clock of the store: when it was last written. */
  readonly touchedAt: number
}

/**
 * Where bodies lie that are too large for a message. Content addressed: whoever writes the same body again writes the same bytes, so
 * nobody has to ask first, and a repeat does no harm.
 *
 * Errors of all calls: BLOBS_UNREACHABLE when a repeat may help, BLOBS_REFUSED when it won't, DISK_FULL.
 */
export interface BlobStore {
  /** For people, without credentials. */
  readonly location: string
  /** Finds out at the start whether it can be read. Shape: false where it is not there yet, since nothing was ever written. */
  check(): Promise<boolean>
  /** Makes it where it is not there, and finds out whether it can be written to. */
  prepare(): Promise<void>
  /** Writes in any case: that is also what keeps a blob that is there already from being collected. Readers see all of it or nothing. */
  put(ref: string, bytes: Buffer): Promise<void>
  /** Undefined when there is none. Errors: BLOB_BROKEN for more than `maxBytes`; BLOBS_REFUSED where the store itself is not there. */
  get(ref: string, maxBytes: number): Promise<Buffer | undefined>
  /** All blobs, in no order, those included that a writer that was killed has left half written. What else lies there is not listed. */
  list(): AsyncIterable<StoredBlob>
  /** Looks again right before it deletes, at each try. Shape: false when it was touched since `before` (epoch ms), or is gone. */
  deleteUntouched(ref: string, before: number): Promise<boolean>
}

/** What readers need of it. */
export type BlobReader = Pick<BlobStore, 'get'>
