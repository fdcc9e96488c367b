/** Minutes east of UTC. Units: epoch ms in, minutes out. */
export interface Zone {
  /** At a local time, given as if it were UTC. */
  ofLocal(localMs: number): number
  ofInstant(ms: number): number
}

/** A fixed offset, or a zone by name, whose offset follows the date. Shape: undefined for anything else. */
export function compileZone(text: string): Zone | undefined {
  const fixed = zoneMinutes(text)
  if (fixed !== undefined) return { ofLocal: () => fixed, ofInstant: () => fixed }
  if (!/^[A-Za-z]+(\/[A-Za-z0-9_+-]+)+$/.test(text)) return undefined
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: text,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    return undefined
  }
  const ofInstant = (ms: number): number => offsetAt(format, ms)
  return {
    ofInstant,
    // An hour that the clocks pass over is read by the offset before it, one that comes twice by the first.
    ofLocal(localMs) {
      const first = ofInstant(localMs - ofInstant(localMs) * 60_000)
      const before = ofInstant(localMs - 86_400_000)
      const fits = (minutes: number): boolean => ofInstant(localMs - minutes * 60_000) === minutes
      return fits(before) ? before : fits(first) ? first : before
    },
  }
}

/** `UTC`, `Z`, `+02:00`, `-0530` or `+02` in minutes east of UTC; undefined for anything else. */
export function zoneMinutes(text: string): number | undefined {
  if (/^(z|utc|gmt)$/i.test(text)) return 0
  const match = /^([+-])(\d{2})(?::?(\d{2}))?$/.exec(text)
  if (match === null) return undefined
  const minutes = Number(match[2]) * 60 + Number(match[3] ?? 0)
  return minutes > 18 * 60 ? undefined : match[1] === '-' ? -minutes : minutes
}

function offsetAt(format: Intl.DateTimeFormat, ms: number): number {
  const parts: Record<string, number> = {}
  for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  return Math.round((Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1000) * 1000) / 60_000)
}
