/** A longer one is no wish that anybody could outwait. */
const MAX_RETRY_AFTER_MS = 365 * 86_400_000
/** Characters. Longer values are no date and no number that a site means; a header may hold 256 KiB. */
const MAX_VALUE = 512

/**
 * ms that a site asks for, the longest where it says several. Shape: seconds, with a fraction where a site is careless, or an HTTP date,
 * also as the seconds or ms of the epoch that some write in its place; undefined for anything else, and for a time that has passed; at most
 * a year. A date is counted from the `Date` of the same answer where it has one, since a site whose clock is wrong is wrong in both; else
 * from `now`, epoch ms. Source: RFC 9110 section 10.2.3.
 */
export function retryAfterMs(values: readonly string[], now: number, date?: string): number | undefined {
  const from = httpDate(date?.trim() ?? '', undefined) ?? now
  let longest = 0
  for (const part of values.flatMap(parts)) longest = Math.max(longest, delayMs(part.trim(), from))
  return longest > 0 ? Math.min(longest, MAX_RETRY_AFTER_MS) : undefined
}

/** Two fields that somebody on the way has joined, where both are seconds: a comma stands in every date. */
function parts(value: string): readonly string[] {
  if (value.length > MAX_VALUE) return []
  return /^[\d\s.,]+$/.test(value) ? value.split(',') : [value]
}

/** 0: nothing that can be read. */
function delayMs(text: string, from: number): number {
  if (!/^\d+(?:\.\d*)?$/.test(text)) return (httpDate(text, LAST_ZONE) ?? from) - from
  const seconds = Number(text)
  if (seconds < LEAST_EPOCH_SECONDS) return Math.ceil(seconds * 1_000)
  return Math.ceil(seconds < LEAST_EPOCH_MS ? seconds * 1_000 : seconds) - from
}

/** From September 2001 on; nobody asks to be left alone for thirty years. */
const LEAST_EPOCH_SECONDS = 1e9
/** In ms this is 1973, in seconds the year 5138. */
const LEAST_EPOCH_MS = 1e11

/** Hours ahead of GMT, by the names of RFC 2822 section 4.3. */
const ZONES: Readonly<Record<string, number>> = {
  '': 0,
  gmt: 0,
  utc: 0,
  ut: 0,
  z: 0,
  est: -5,
  edt: -4,
  cst: -6,
  cdt: -5,
  mst: -7,
  mdt: -6,
  pst: -8,
  pdt: -7,
}
/** Whatever zone a time is meant in, it is not later than in this one. */
const LAST_ZONE = -12
const MAX_ZONE = 14

/** With a weekday or without, and ISO 8601. */
const DATE = /^(?:[a-z]{3,9}[, ]|\d{1,2}[ -][a-z]{3,9}[ -]\d{2}|\d{4}-\d{2}-\d{2}[T ]\d)/i
const TIME_AND_ZONE = /(\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)\s*([a-z]*)\s*(?:([+-])(\d{1,2})(?::?(\d{2}))?)?/i

/**
 * Epoch ms of the three forms of RFC 9110 section 5.6.7, and of others that sites write. Shape: GMT where no zone is named;
 * `unknownZone`, in hours, where one is that nobody knows, and undefined without it.
 */
function httpDate(text: string, unknownZone: number | undefined): number | undefined {
  if (text.length > MAX_VALUE || !DATE.test(text)) return undefined
  let zone: number | undefined = 0
  const [withoutComment = ''] = text.split('(', 1)
  const local = withoutComment.replace(TIME_AND_ZONE, (_match, time, name, sign, hours, minutes) => {
    const offset = sign === undefined ? ZONES[name.toLowerCase()] : Number(`${sign}1`) * (Number(hours) + Number(minutes ?? 0) / 60)
    zone = offset === undefined || Math.abs(offset) > MAX_ZONE ? unknownZone : offset
    // In asctime's form the year follows, and the space before it was taken for a zone.
    return `${time} `
  })
  const at = Date.parse(`${local.replace(/(\d)T(?=\d)/, '$1 ')} GMT`)
  return Number.isNaN(at) || zone === undefined ? undefined : at - zone * 3_600_000
}
