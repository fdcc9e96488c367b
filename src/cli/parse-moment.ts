import { parseDuration } from '../config/units.ts'
import { MillraceError } from '../kernel/errors.ts'

/**
 * A point in time as people write it: ISO 8601 (UTC where it names no zone, as Kafka's own tools have it), epoch milliseconds, or a
 * duration, which means that long ago, or ahead where the option is about what is to come. Shape: epoch ms. Errors: USAGE naming the
 * option.
 */
export function parseMoment(text: string, option: string, now: number, direction: 'ago' | 'ahead' = 'ago'): number {
  const trimmed = text.trim()
  // Of 14 digits it would be 20260301120000, which means a date and would be taken as the year 2612.
  if (/^\d{12,13}$/.test(trimmed)) return Number(trimmed)
  const duration = parseDuration(trimmed)
  if (duration !== undefined) return direction === 'ago' ? now - duration : now + duration
  const parsed = parseIso(trimmed)
  if (parsed !== undefined) return parsed
  const meaning = direction === 'ago' ? 'that long ago' : 'from now'
  throw new MillraceError(
    'USAGE',
    `${option}: ${JSON.stringify(text)} is no time; write 2026-03-01T12:00:00Z, epoch milliseconds, or a duration like 2h (${meaning})`,
  )
}

const ISO = /^(\d{4}-\d{2}-(\d{2}))(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i

/** Put together anew, since Date.parse takes 30 February for 2 March and reads other spellings in the zone of this machine. */
function parseIso(text: string): number | undefined {
  const match = ISO.exec(text)
  if (match === null) return undefined
  const [, date = '', day = '', time = '00:00', seconds = '00', fraction = '', zone = 'Z'] = match
  if (new Date(`${date}T00:00:00Z`).getUTCDate() !== Number(day)) return undefined
  const [, sign, hours = '', minutes = '00'] = /^([+-])(\d{2}):?(\d{2})?$/.exec(zone) ?? []
  const offset = sign === undefined ? 'Z' : `${sign}${hours}:${minutes}`
  const parsed = Date.parse(`${date}T${time}:${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}${offset}`)
  return Number.isNaN(parsed) ? undefined : parsed
}

/** An ISO 8601 duration as Kafka's tools take it (`P1DT2H`), or one like `36h`. Units: ms. Errors: USAGE. */
export function parseAnyDuration(text: string, option: string): number {
  const own = parseDuration(text)
  if (own !== undefined) return own
  const match = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(text.trim())
  if (match !== null && /\d[DHMS]$/.test(match[0])) {
    const [, days = '0', hours = '0', minutes = '0', seconds = '0'] = match
    return Math.round(Number(days) * 86_400_000 + Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1000)
  }
  throw new MillraceError('USAGE', `${option}: ${JSON.stringify(text)} is no duration; write 36h, 14d, or P1DT12H`)
}

/** Errors: USAGE where a range of times ends before it begins, which holds nothing whatever is stored. */
export function refuseEmptySpan(
  from: readonly [option: string, at: number | undefined],
  until: readonly [option: string, at: number | undefined],
): void {
  if (from[1] === undefined || until[1] === undefined || from[1] < until[1]) return
  const [begin, end] = [from[1], until[1]].map((at) => new Date(at).toISOString())
  throw new MillraceError('USAGE', `${until[0]} (${end}) is not after ${from[0]} (${begin}): nothing lies between them`)
}
