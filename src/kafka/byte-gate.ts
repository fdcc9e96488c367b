import { AbortListeners } from '../kernel/abort.ts'
import { MillraceError } from '../kernel/errors.ts'

/**
 * Bounds the bytes that are held at once: whoever brings more waits in line. A single entry above the bound goes when it is alone,
 * so that nothing waits for ever.
 */
export class ByteGate {
  readonly #maxBytes: number
  readonly #waiting: { readonly bytes: number; readonly admit: () => void; readonly refuse: (error: unknown) => void }[] = []
  readonly #aborts = new AbortListeners()
  #heldBytes = 0
  #closedWith: { readonly error: unknown } | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Resolves when the bytes are admitted, in the order of the calls. Errors: ABORTED by the signal; what it was closed with. */
  enter(bytes: number, signal?: AbortSignal): Promise<void> {
    if (this.#closedWith !== undefined) return Promise.reject(this.#closedWith.error)
    if (signal?.aborted) return Promise.reject(stopped(signal))
    if (this.#waiting.length === 0 && this.#hasRoom(bytes)) {
      this.#heldBytes += bytes
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
        reject(stopped(signal))
        // The one behind it may be small enough.
        this.#admit()
      }
      const waiter = {
        bytes,
        admit: () => {
          leave?.()
          resolve()
        },
        refuse: (error: unknown) => {
          leave?.()
          reject(error)
        },
      }
      const leave = signal === undefined ? undefined : this.#aborts.add(signal, onAbort)
      this.#waiting.push(waiter)
    })
  }

  /** Whoever waits, or comes later, is refused. */
  close(error: unknown): void {
    this.#closedWith ??= { error }
    for (const waiter of this.#waiting.splice(0)) waiter.refuse(error)
  }

  /** Gives back bytes that were admitted. */
  leave(bytes: number): void {
    this.#heldBytes -= bytes
    this.#admit()
  }

  #hasRoom(bytes: number): boolean {
    return this.#heldBytes === 0 || this.#heldBytes + bytes <= this.#maxBytes
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#hasRoom(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#heldBytes += next.bytes
      next.admit()
    }
  }
}

function stopped(signal: AbortSignal | undefined): MillraceError {
  return new MillraceError('ABORTED', 'stopped while waiting for room', { cause: signal?.reason })
}
