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
 * Aborted when the promise rejects, with its error. A race with a promise that lives long would keep the result of each race for as long.
 */
export function abortedBy(failed: Promise<never>): AbortSignal {
  const abort = new AbortController()
  failed.catch((error: unknown) => abort.abort(error))
  return abort.signal
}
