/**
 * Waits until `check` gives a value that is neither undefined nor false, or throws saying what was waited for. A deadline on every
 * wait: a test that hangs must say why. It is far from what a quiet machine needs, since a busy one takes several times that.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  options: { timeoutMs?: number; everyMs?: number; what?: string } = {},
): Promise<Exclude<T, undefined | false>> {
  const timeoutMs = options.timeoutMs ?? 60_000
  const deadline = performance.now() + timeoutMs
  let last: unknown
  for (;;) {
    try {
      const value = await check()
      if (value !== undefined && value !== false) return value as Exclude<T, undefined | false>
      last = value
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) {
      throw new Error(`waited ${timeoutMs} ms for ${options.what ?? check.toString()}`, { cause: last })
    }
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 20))
  }
}
