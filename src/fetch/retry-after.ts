/** A longer one is no wish that anybody could outwait. */
const MAX_RETRY_AFTER_MS = 365 * 86_400_000

/**
 * ms that a site asks for, the longest where it says several. Shape: seconds, with a fraction where a site is careless, or an HTTP date,
 * also as the seconds or ms of the epoch that some write in its place; undefined for anything else, and for a time that has passed; at most
 * a year. A date is counted from the `Date` of the same answer where it has one, since a site whose clock is wrong is wrong in both; else
 * from `now`, epoch ms. Source: RFC 9110 section 10.2.3.
 */
export function retryAfterMs(values: readonly string[], now: number, date?: string): number | undefined {
  const from = httpDate(date?.trim() ?? '') ?? now
  const longest = Math.max(0, ...values.flatMap(parts).map((value) => delayMs(value.trim(), from)))
  return longest > 0 ? Math.min(longest, MAX_RETRY_AFTER_MS) : undefined
}

/** Two fields that somebody on the way has joined, where both are seconds: a comma stands in every date. */
function parts(value: string): readonly string[] {
  return /^[\d\s.,]+$/.test(value) ? value.split(',') : [value]
}

/** 0: nothing that can be read. */
function delayMs(text: string, from: number): number {
  if (!/^\d+(?:\.\d*)?$/.test(text)) return (httpDate(text) ?? from) - from
  const seconds = Number(text)
  if (seconds < LEAST_EPOCH_SECONDS) return Math.ceil(seconds * 1_000)
  return Math.ceil(seconds < LEAST_EPOCH_MS ? seconds * 1_000 : seconds) - from
}

/** From September 2001 on; nobody asks to be left alone for thirty years. */
const LEAST_EPOCH_SECONDS = 1e9
/** In ms this is 1973, in seconds the year 5138. */
const LEAST_EPOCH_MS = 1e11

/** Epoch ms of the three forms of RFC 9110 section 5.6.7, all of them in GMT, whether they say so (the third does not) or not. */
function httpDate(text: string): number | undefined {
  if (!/^[A-Za-z]{3,9}[, ]/.test(text)) return undefined
  const at = Date.parse(/(?:GMT|UTC|Z|[+-]\d{2}:?\d{2})$/i.test(text) ? text : `${text} GMT`)
  return Number.isNaN(at) ? undefined : at
}
