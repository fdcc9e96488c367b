/** A stretch of the day; minutes from midnight on the wall clock of `timezone`. */
export interface DayWindow {
  readonly fromMinute: number
  /** Not above `fromMinute`: it ends on the next day. */
  readonly toMinute: number
  /** Days on which it begins, 0 for Sunday; undefined: every day. */
  readonly days?: readonly number[]
  readonly timezone: string
}

interface WallTime {
  readonly day: number
  readonly minute: number
}

/**
 * The first window that holds a moment, as the clock on the wall shows it: where clocks are put forward an hour of a window is left
 * out, where they are put back it comes twice. Shape: undefined where none does. Units: epoch ms.
 *
 * `reader` remembers what the clocks of each zone show in the present minute, since this is asked many times a second.
 */
export function windowAt<W extends DayWindow>(windows: readonly W[], now: number, reader: WallClock): W | undefined {
  return windows.find((window) => holds(window, reader.at(window.timezone, now)))
}

function holds({ fromMinute, toMinute, days }: DayWindow, { day, minute }: WallTime): boolean {
  const begins = (on: number): boolean => days === undefined || days.includes(on)
  if (fromMinute < toMinute) return minute >= fromMinute && minute < toMinute && begins(day)
  return (minute >= fromMinute && begins(day)) || (minute < toMinute && begins((day + 6) % 7))
}

const MINUTE_MS = 60_000
const WEEK_MS = 7 * 86_400_000

/**
 * The first full minute after a moment in which something does not hold any more of the window in force, through any number of them.
 * Shape: undefined where it holds for more than a week. Units: epoch ms.
 */
export function endOf<W extends DayWindow>(
  windows: readonly W[],
  now: number,
  holds: (window: W | undefined) => boolean,
): number | undefined {
  for (const { window, at } of coming(windows, now)) if (!holds(window)) return at
  return undefined
}

/**
 * What holds at some moment of the week from `now` on: each window, and `undefined` where none does, with the first of its moments; what
 * holds now comes first. Units: epoch ms.
 */
export function windowsOfWeek<W extends DayWindow>(windows: readonly W[], now: number): ReadonlyMap<W | undefined, number> {
  const found = new Map([[windowAt(windows, now, new WallClock()), now]])
  for (const { window, at } of coming(windows, now)) if (!found.has(window)) found.set(window, at)
  return found
}

/** The full minutes after a moment at which another window may hold than before, for a week. */
function* coming<W extends DayWindow>(
  windows: readonly W[],
  now: number,
): Generator<{ readonly window: W | undefined; readonly at: number }> {
  const reader = new WallClock()
  const lastAt = now + WEEK_MS + MINUTE_MS
  for (let at = now - (now % MINUTE_MS) + MINUTE_MS; at <= lastAt; at += unchangedMinutes(windows, at, reader) * MINUTE_MS)
    yield { window: windowAt(windows, at, reader), at }
}

const DAY_MINUTES = 1_440

/**
 * Minutes from a moment in which no window begins or ends: to the next edge of one, or a single one where clocks are put forward or back
 * before it.
 */
function unchangedMinutes(windows: readonly DayWindow[], at: number, reader: WallClock): number {
  const times = windows.map(({ timezone }) => reader.at(timezone, at))
  const toEdges = windows.flatMap(({ fromMinute, toMinute }, index) =>
    [0, fromMinute, toMinute].map((edge) => DAY_MINUTES - modulo((times[index]?.minute ?? 0) - edge, DAY_MINUTES)),
  )
  const minutes = Math.min(...toEdges)
  const isPlain = windows.every(({ timezone }, index) => {
    const [before, after] = [times[index], reader.at(timezone, at + minutes * MINUTE_MS)]
    return before !== undefined && modulo(weekMinute(after) - weekMinute(before) - minutes, 7 * DAY_MINUTES) === 0
  })
  return isPlain ? minutes : 1
}

function weekMinute({ day, minute }: WallTime): number {
  return day * DAY_MINUTES + minute
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by
}

const DAYS: Readonly<Record<string, number>> = { Sun: 0, Mon: 1, Tue: 2, Wed: 3, Thu: 4, Fri: 5, Sat: 6 }

/** Day and minute in any time zone. Offsets of zones are whole minutes since long before the epoch of this project. */
export class WallClock {
  readonly #zones = new Map<string, { readonly format: Intl.DateTimeFormat; minute: number; time: WallTime }>()

  /** Errors: RangeError for a zone that does not exist; the configuration has checked it. */
  at(timezone: string, now: number): WallTime {
    const minute = Math.floor(now / MINUTE_MS)
    let zone = this.#zones.get(timezone)
    if (zone === undefined) {
      const format = new Intl.DateTimeFormat('en-US', {
        timeZone: timezone,
        weekday: 'short',
        hour: '2-digit',
        minute: '2-digit',
        hourCycle: 'h23',
      })
      zone = { format, minute, time: wallTime(format, now) }
      this.#zones.set(timezone, zone)
    } else if (zone.minute !== minute) {
      zone.minute = minute
      zone.time = wallTime(zone.format, now)
    }
    return zone.time
  }
}

function wallTime(format: Intl.DateTimeFormat, now: number): WallTime {
  const parts = Object.fromEntries(format.formatToParts(now).map(({ type, value }) => [type, value]))
  return { day: DAYS[parts.weekday ?? ''] ?? 0, minute: Number(parts.hour) * 60 + Number(parts.minute) }
}
