/**
 * Time as an argument. The only file of the project that reads a clock or arms a timer, so that every rule about time can be
 * stepped in a test.
 *
 * Two clocks, never mixed: `now()` is epoch milliseconds, for people and for messages; `mono()` is monotonic milliseconds, for
 * all pacing, because the wall clock jumps.
 */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number
  /** Monotonic milliseconds from an arbitrary origin of this process. */
  mono(): number
  /** Monotonic milliseconds since this machine started, the same for all of its processes; another boot starts anew. */
  machineMono(): number
  /** Resolves after `ms`; rejects with `signal.reason` when aborted first. Its listener is removed either way. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Resolves in the next turn of the event loop. */
  nextTurn(): Promise<void>
  /** Arms one timer; the returned function disarms it. `unref` lets the process end while it is armed. */
  timer(ms: number, run: () => void, options?: { unref?: boolean }): () => void
}

/** The longest wait Node's timers take, 24.8 days; longer ones would fire at once. */
const MAX_TIMER_MS = 2_147_483_647

/** Aborted after `ms`, which may be no whole number and longer than a timer takes; it doesn't keep the process alive. */
export function abortAfter(ms: number): AbortSignal {
  return AbortSignal.timeout(Math.min(Math.max(0, Math.ceil(ms)), MAX_TIMER_MS))
}

/**
 * Resolves at `mono` of the clock, never before it: timers fire up to a millisecond early. The last part of a millisecond, which no timer
 * can wait for, goes by turn by turn. Rejects with the signal's reason.
 */
export async function sleepUntil(clock: Clock, mono: number, signal?: AbortSignal): Promise<void> {
  for (let left = mono - clock.mono(); left > 0; left = mono - clock.mono()) {
    if (left >= 1) await clock.sleep(Math.floor(left), signal)
    else await clock.nextTurn()
    signal?.throwIfAborted()
  }
}

/** Shape: false where the signal came first. */
export async function slept(clock: Pick<Clock, 'sleep'>, ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(ms, signal)
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return !signal.aborted
}

/**
 * What the work gives, or `late` after so long: it goes on then, and nobody hears any more of what it comes to. Errors: those of the work.
 */
export async function within<T>(
  clock: Pick<Clock, 'timer'>,
  ms: number,
  work: Promise<T>,
  options?: { unref?: boolean },
): Promise<T | 'late'> {
  let disarm = (): void => undefined
  const late = new Promise<'late'>((resolve) => {
    disarm = clock.timer(ms, () => resolve('late'), options)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    disarm()
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
  // CLOCK_MONOTONIC on Linux, mach_absolute_time on macOS: both count from the start of the machine, for every process alike.
  machineMono: () => Number(process.hrtime.bigint()) / 1e6,
  sleep(ms, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason)
        return
      }
      const onAbort = (): void => {
        disarm()
        reject(signal?.reason)
      }
      const disarm = systemClock.timer(ms, () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      })
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  },
  nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
  timer(ms, run, options) {
    let handle: NodeJS.Timeout
    const arm = (leftMs: number): void => {
      const partMs = Math.min(Math.max(0, leftMs), MAX_TIMER_MS)
      handle = setTimeout(() => (leftMs > partMs ? arm(leftMs - partMs) : run()), partMs)
      if (options?.unref) handle.unref()
    }
    arm(ms)
    return () => clearTimeout(handle)
  },
}

/** Runs something every `ms`, first after `ms`; what it throws ends it. Shape: the function that ends it. */
export function repeated(clock: Pick<Clock, 'timer'>, ms: number, run: () => void, options?: { unref?: boolean }): () => void {
  let disarm = (): void => undefined
  const arm = (): void => {
    const due = (): void => {
      run()
      arm()
    }
    disarm = clock.timer(ms, due, options)
  }
  arm()
  return () => disarm()
}
