/** Names of the months in a language. */
export interface MonthNames {
  /** Part of a regular expression, one group, case ignored. */
  readonly expression: string
  /** From 1; 0 for none. Shape: lower case, as the expression matched it. */
  numberOf(name: string): number
}

const ENGLISH = 'january february march april may june july august september october november december'.split(' ')

/** Whole names and their usual abbreviations alone: `Marketing` and `mars` are no March, though they begin as it does. */
export const MONTHS_IN_ENGLISH: MonthNames = {
  expression: `(${[...ENGLISH, 'febr', 'sept', ...ENGLISH.map((name) => name.slice(0, 3))].join('|')})\\.?`,
  numberOf: (name) => ENGLISH.findIndex((month) => month.startsWith(name.slice(0, 3))) + 1,
}

/** Names to look for in turn: those of the language, then the English ones. Errors: RangeError for no language tag. */
export function monthLanguages(locale: string | undefined): readonly MonthNames[] {
  return locale === undefined ? [MONTHS_IN_ENGLISH] : [monthNames(locale), MONTHS_IN_ENGLISH]
}

/** Long and short names, alone and within a date, which are other forms in many languages; Latin ones without accents as well (`FEVRIER`). */
function monthNames(locale: string): MonthNames {
  const numbers = new Map<string, number>()
  for (let month = 1; month <= 12; month += 1) {
    const date = new Date(Date.UTC(2024, month - 1, 15))
    for (const style of ['long', 'short'] as const) {
      for (const day of [undefined, 'numeric'] as const) {
        // Years and days are read as Gregorian ones, whatever calendar the language has.
        const options = { calendar: 'gregory', timeZone: 'UTC', month: style } as const
        const format = new Intl.DateTimeFormat(locale, day === undefined ? options : { ...options, day })
        const name = format.formatToParts(date).find(({ type }) => type === 'month')?.value
        // Where months are only numbered there is nothing to read.
        if (name !== undefined && /\p{L}/u.test(name)) numbers.set(bare(name), month)
      }
    }
  }
  for (const [name, month] of [...numbers]) if (!numbers.has(withoutAccents(name))) numbers.set(withoutAccents(name), month)
  const names = [...numbers.keys()].toSorted((a, b) => b.length - a.length)
  return {
    expression: names.length === 0 ? MONTHS_IN_ENGLISH.expression : `(${names.map(escaped).join('|')})\\.?`,
    numberOf: (name) => numbers.get(bare(name)) ?? 0,
  }
}

function bare(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

/** In other scripts a mark may part two names. */
function withoutAccents(name: string): string {
  return name
    .normalize('NFD')
    .replace(/(?<=\p{Script=Latin})\p{M}+/gu, '')
    .normalize('NFC')
}

function escaped(name: string): string {
  return name.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replace(/\s+/g, '\\s+')
}
