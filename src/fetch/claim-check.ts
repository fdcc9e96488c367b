import type { BlobStore } from '../blobs/blob-store.ts'
import { unlessAborted } from '../kernel/abort.ts'
import { retried } from '../kernel/backoff.ts'
import type { Clock } from '../kernel/clock.ts'
import { errorText, isMillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import { bodyRefOf } from '../message/body-ref.ts'
import type { Page } from '../message/generated/types.ts'

export interface ClaimCheckOptions {
  readonly blobs: Pick<BlobStore, 'put' | 'location'>
  readonly clock: Clock
  readonly observer: Observer
  readonly random: () => number
  /** Ends the wait for a store that is away, or hangs. */
  readonly signal: AbortSignal
}

const RETRY = { firstMs: 500, maxMs: 30_000 } as const

/** Pages that are too large for a message: the body goes to the blob store, and the message names it. */
export class ClaimCheck {
  readonly #options: ClaimCheckOptions

  constructor(options: ClaimCheckOptions) {
    this.#options = options
  }

  /**
   * The page without its body, which lies in the store by then: the blob is written before any message names it, and anew each time, so
   * that it is young when the page is. While the store is away it is tried again, as a send to Kafka is. Errors: BLOBS_REFUSED;
   * `signal.reason`.
   */
  async store(page: Page): Promise<Page> {
    const { blobs, clock, observer, random, signal } = this.#options
    const bodyRef = bodyRefOf(page)
    const again = (error: unknown): boolean => {
      if (!isMillraceError(error, 'BLOBS_UNREACHABLE') && !isMillraceError(error, 'DISK_FULL')) return false
      observer.emit('BlobStoreRetried', { store: blobs.location, error: errorText(error) })
      return true
    }
    // One that hangs is left behind: its body is stored again with the page.
    const put = (): Promise<void> => unlessAborted(signal, () => blobs.put(bodyRef, page.body))
    await retried(put, { policy: RETRY, again, clock, signal, random })
    observer.emit('BlobWritten', { bytes: page.body.length })
    return { ...page, body: Buffer.alloc(0), bodyRef }
  }
}

/** None where no blob store is configured. */
export function claimCheckOf(
  options: Omit<ClaimCheckOptions, 'blobs'> & { readonly blobs?: ClaimCheckOptions['blobs'] },
): ClaimCheck | undefined {
  const { blobs } = options
  return blobs === undefined ? undefined : new ClaimCheck({ ...options, blobs })
}
