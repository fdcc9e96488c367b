import { type Clock, within } from '../kernel/clock.ts'

/** How long closing may wait: kafkajs waits for the answers to what is on the wire, which a broker that hangs never sends. */
const CLOSE_LIMIT_MS = 3_000

/**
 * Resolves when it is closed, or when it has taken too long. A failure to close is passed over: the broker is away, and kafkajs has
 * dropped its sockets all the same.
 */
export async function closeWithin(clock: Clock, close: () => Promise<void>): Promise<void> {
  const closed = close().catch(() => undefined)
  await within(clock, CLOSE_LIMIT_MS, closed)
}

/**
 * One connection that many calls use at once and that can be replaced under them. Guarantees: a replaced connection is closed
 * when its last user has finished, never before; opening happens once for all who wait for it.
 */
export class SharedConnection<T> {
  readonly #clock: Clock
  readonly #open: () => Promise<T>
  readonly #close: (connection: T) => Promise<void>
  #current: Holder<T> | undefined
  #closed = false

  constructor(clock: Clock, open: () => Promise<T>, close: (connection: T) => Promise<void>) {
    this.#clock = clock
    this.#open = open
    this.#close = close
  }

  /** Errors: whatever opening or `run` throws; a connection that failed to open is opened again next time. */
  async use<R>(run: (connection: T) => Promise<R>): Promise<R> {
    this.#current ??= { opening: this.#open(), uses: 0, retired: this.#closed }
    const holder = this.#current
    holder.uses += 1
    try {
      let connection: T
      try {
        connection = await holder.opening
      } catch (error) {
        if (this.#current === holder) this.#current = undefined
        throw error
      }
      return await run(connection)
    } finally {
      holder.uses -= 1
      if (holder.retired && holder.uses === 0) await this.#release(holder)
    }
  }

  /** The next use opens a new connection. */
  renew(): void {
    const holder = this.#current
    if (holder === undefined) return
    this.#current = undefined
    holder.retired = true
    // Closing what is given up: nobody waits for it, and a broker that is away can't be told.
    if (holder.uses === 0) void this.#release(holder)
  }

  /** Closes now, also under those who use it: their calls fail. */
  async close(): Promise<void> {
    this.#closed = true
    const holder = this.#current
    this.#current = undefined
    if (holder !== undefined) await this.#release(holder)
  }

  async #release(holder: Holder<T>): Promise<void> {
    let connection: T
    try {
      connection = await holder.opening
    } catch {
      // It never opened: there is nothing to close, and whoever waited for it has the error.
      return
    }
    if (holder.released === true) return
    holder.released = true
    await closeWithin(this.#clock, () => this.#close(connection))
  }
}

interface Holder<T> {
  readonly opening: Promise<T>
  uses: number
  retired: boolean
  released?: boolean
}
