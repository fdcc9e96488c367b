/** Years of the Buddhist era that are our own times: a Thai page may write Gregorian ones as well, and `9999` for no end. */
const [FIRST_BUDDHIST_YEAR, LAST_BUDDHIST_YEAR] = [2400, 2700]
const BUDDHIST_YEARS_BEFORE = 543

/**
 * Whether a language counts the years of its dates from the death of Buddha; its months and days are Gregorian ones. Errors: RangeError for a
 * locale that is none, and for one whose calendar is another altogether.
 */
export function countsBuddhistYears(locale: string | undefined): boolean {
  if (locale === undefined) return false
  const { calendar } = new Intl.DateTimeFormat(locale).resolvedOptions()
  if (calendar === 'gregory' || calendar === 'buddhist') return calendar === 'buddhist'
  throw new RangeError(
    `dates of ${locale} are in the calendar ${calendar}, which is not read; where a page has Gregorian ones, say ${locale.replace(/-u-.*/, '')}-u-ca-gregory`,
  )
}

/** The Gregorian year of one that a page in such a language writes. */
export function fromBuddhistYear(year: number): number {
  return year >= FIRST_BUDDHIST_YEAR && year <= LAST_BUDDHIST_YEAR ? year - BUDDHIST_YEARS_BEFORE : year
}
