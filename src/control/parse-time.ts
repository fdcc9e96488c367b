import { parseDuration } from '../config/units.ts'
import { MillraceError } from '../kernel/errors.ts'

/**
 * A point in time as people write it: ISO 8601 (UTC where it names no zone, as Kafka's own tools have it), epoch milliseconds, or a
 * duration, which means that long ago. Shape: epoch ms. Errors: USAGE naming the option.
 */
export function parseTime(text: string, option: string, now: number): number {
  const trimmed = text.trim()
  if (/^\d{12,14}$/.test(trimmed)) return Number(trimmed)
  const ago = parseDuration(trimmed)
  if (ago !== undefined) return now - ago
  if (/^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/.test(trimmed)) {
    const hasZone = /(Z|[+-]\d{2}:?\d{2})$/.test(trimmed) && trimmed.length > 10
    const parsed = Date.parse(trimmed.length === 10 || hasZone ? trimmed : `${trimmed.replace(' ', 'T')}Z`)
    if (!Number.isNaN(parsed)) return parsed
  }
  throw new MillraceError(
    'USAGE',
    `${option}: ${JSON.stringify(text)} is no time; write 2026-03-01T12:00:00Z, epoch milliseconds, or a duration like 2h (that long ago)`,
  )
}

/** An ISO 8601 duration as Kafka's tools take it (`P1DT2H`), or one like `36h`. Units: ms. Errors: USAGE. */
export function parseAnyDuration(text: string, option: string): number {
  const own = parseDuration(text)
  if (own !== undefined) return own
  const match = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(text.trim())
  if (match !== null && match[0].length > 1) {
    const [, days = '0', hours = '0', minutes = '0', seconds = '0'] = match
    return Number(days) * 86_400_000 + Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1000
  }
  throw new MillraceError('USAGE', `${option}: ${JSON.stringify(text)} is no duration; write 36h, 14d, or P1DT12H`)
}
