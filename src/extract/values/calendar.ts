/** Years of the Buddhist era that are our own times: a Thai page may write Gregorian ones as well, and `9999` for no end. */
const [FIRST_BUDDHIST_YEAR, LAST_BUDDHIST_YEAR] = [2400, 2700]
const BUDDHIST_YEARS_BEFORE = 543
/** Persian and Islamic calendars come to it in two centuries. */
const FIRST_SURELY_GREGORIAN_YEAR = 1600

/**
 * The calendar in which a language counts the years of its dates, named as CLDR names it; the months and days of `buddhist` are those of
 * `gregory`.
 * Errors: RangeError for a locale that is none.
 */
export function calendarOf(locale: string | undefined): string {
  return locale === undefined ? 'gregory' : new Intl.DateTimeFormat(locale).resolvedOptions().calendar
}

/** Whether its dates are read: those of another calendar are other days. */
export function isReadCalendar(calendar: string): boolean {
  return ['gregory', 'iso8601', 'buddhist'].includes(calendar)
}

/** A language with the calendar of its pages where they have Gregorian dates. */
export function inGregorian(locale: string): string {
  return `${locale.replace(/-u-.*/, '')}-u-ca-gregory`
}

/**
 * The Gregorian year of one that a page in a language of this calendar writes. Shape: undefined where it is likely one of a calendar whose
 * dates are not read: 1403 of a Persian page is our time, and none of the Middle Ages.
 */
export function gregorianYear(year: number, calendar: string): number | undefined {
  if (calendar === 'buddhist') return year >= FIRST_BUDDHIST_YEAR && year <= LAST_BUDDHIST_YEAR ? year - BUDDHIST_YEARS_BEFORE : year
  return isReadCalendar(calendar) || year >= FIRST_SURELY_GREGORIAN_YEAR ? year : undefined
}
