/**
 * What the work gives, unless the signal comes first: then its reason is thrown at once, and nobody hears any more of what the work comes
 * to. Work is not begun under a signal that was aborted before. No listener is left on the signal.
 */
export async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  let onAbort = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([work(), aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Many calls that wait for one signal: one listener for all of them, where each of its own would cost the signal a look through all that it
 * has.
 */
export class AbortListeners {
  readonly #bySignal = new Map<AbortSignal, { readonly calls: Set<() => void>; readonly listener: () => void }>()

  /** `onAbort`: called once where the signal is aborted from now on. Shape: takes it back. */
  add(signal: AbortSignal, onAbort: () => void): () => void {
    const { calls } = this.#bySignal.get(signal) ?? this.#listen(signal)
    calls.add(onAbort)
    return () => {
      calls.delete(onAbort)
      if (calls.size === 0) this.#leave(signal, calls)
    }
  }

  #listen(signal: AbortSignal): { readonly calls: Set<() => void>; readonly listener: () => void } {
    const calls = new Set<() => void>()
    const listener = (): void => {
      this.#leave(signal, calls)
      for (const call of calls) call()
    }
    const entry = { calls, listener }
    this.#bySignal.set(signal, entry)
    signal.addEventListener('abort', listener, { once: true })
    return entry
  }

  #leave(signal: AbortSignal, calls: ReadonlySet<() => void>): void {
    const entry = this.#bySignal.get(signal)
    if (entry?.calls !== calls) return
    this.#bySignal.delete(signal)
    signal.removeEventListener('abort', entry.listener)
  }
}

/**
 * Aborted when the promise rejects, with its error. A race with a promise that lives long would keep the result of each race for as long.
 */
export function abortedBy(failed: Promise<never>): AbortSignal {
  const abort = new AbortController()
  failed.catch((error: unknown) => abort.abort(error))
  return abort.signal
}
