/** Percent-encoding undone, once: `p%3Aw` is `p:w`. Undefined where a `%` begins no escape, which the platform throws at. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
