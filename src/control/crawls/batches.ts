import type { Clock } from '../../kernel/clock.ts'

export interface BatchOptions {
  /** Most items of a batch. */
  readonly size: number
  /** ms after which a batch that has begun is given as it is, so that a slow input (`tail -f`) is not held back. */
  readonly lingerMs: number
  readonly clock: Clock
  /** Ends the reading: what was read is still given, nothing new is taken, and an input that is silent is not waited for. */
  readonly signal?: AbortSignal
}

/** Items of a source in batches. Shape: no batch is empty; the order is kept. Errors: those of the source. */
export async function* batches<T>(source: AsyncIterable<T> | Iterable<T>, options: BatchOptions): AsyncGenerator<readonly T[]> {
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
  let pending = nextOf(iterator)
  let ended = false
  try {
    while (!ended && options.signal?.aborted !== true) {
      const batch: T[] = []
      const wake = wakeUp(options)
      try {
        while (batch.length < options.size) {
          const result = await Promise.race([pending, wake.woken])
          if (result === 'stopped' || (result === 'lingered' && batch.length > 0)) break
          if (result === 'lingered') continue
          if (result.done === true) {
            ended = true
            break
          }
          // Only what has begun to wait is timed: a new promise per batch, since each race leaves a reaction on it.
          if (batch.length === 0) wake.arm()
          batch.push(result.value)
          pending = nextOf(iterator)
        }
      } finally {
        wake.disarm()
      }
      if (batch.length > 0) yield batch
    }
  } finally {
    if (!ended) giveUp(iterator)
  }
}

type Wake = 'lingered' | 'stopped'

function wakeUp({ clock, lingerMs, signal }: BatchOptions): { woken: Promise<Wake>; arm: () => void; disarm: () => void } {
  let wake: (reason: Wake) => void = () => undefined
  const woken = new Promise<Wake>((resolve) => {
    wake = resolve
  })
  const onAbort = (): void => wake('stopped')
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted === true) wake('stopped')
  let disarmTimer = (): void => undefined
  return {
    woken,
    arm: () => {
      disarmTimer = clock.timer(lingerMs, () => wake('lingered'))
    },
    disarm: () => {
      disarmTimer()
      signal?.removeEventListener('abort', onAbort)
    },
  }
}

/** A failure that comes before anybody waits for it must not end the process; whoever waits gets it all the same. */
function nextOf<T>(iterator: AsyncIterator<T> | Iterator<T>): Promise<IteratorResult<T>> {
  const next = new Promise<IteratorResult<T>>((resolve) => resolve(iterator.next()))
  next.catch(() => undefined)
  return next
}

/** Lets the source clean up, without waiting: one that stands in a read returns only when that read does. */
function giveUp(iterator: AsyncIterator<unknown> | Iterator<unknown>): void {
  const returned = new Promise((resolve) => resolve(iterator.return?.()))
  returned.catch(() => undefined)
}
