import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MULTIPLIER_WORDS } from '../../../src/extract/values/multipliers.ts'
import { compileConverter } from '../../../src/extract/values/value-type.ts'

const read = {
  money: compileConverter({ kind: 'money', scale: 2, currency: 'EUR' }),
  decimal: compileConverter({ kind: 'decimal', scale: 2 }),
  double: compileConverter({ kind: 'double' }),
}

const amounts = fc.oneof(
  fc.integer({ min: 1, max: 999 }).map(String),
  fc.tuple(fc.integer({ min: 0, max: 99 }), fc.constantFrom('.', ','), fc.integer({ min: 1, max: 9 })).map((parts) => parts.join('')),
  fc
    .tuple(fc.integer({ min: 1, max: 99 }), fc.constantFrom('.', ',', ' ', "'"), fc.constantFrom('250', '000'))
    .map((parts) => parts.join('')),
)
const cased = (word: string): fc.Arbitrary<string> =>
  fc.constantFrom(word, word.toUpperCase(), word.charAt(0).toUpperCase() + word.slice(1))
const words = fc.constantFrom(...MULTIPLIER_WORDS).chain(cased)
const eastAsian = fc.constantFrom(...'万萬만億亿억千천百백', '百万', '千万', '천만', '百億')
const currencies = fc.constantFrom('€', '£', '₹', 'USD', 'EUR')
const around = fc.constantFrom<(text: string, currency: string) => string>(
  (text) => text,
  (text, currency) => `${currency} ${text}`,
  (text, currency) => `${currency}${text}`,
  (text, currency) => `${text} ${currency}`,
  (text, currency) => `${text}. ${currency}`,
  (text, currency) => `from ${text} ${currency} a year`,
)

/** What is read of the text, beside what is read of it without its multiplier. */
function readings(text: string, bare: string): [unknown, unknown][] {
  return Object.values(read).flatMap((convert) => {
    const [whole, part] = [convert(text, false, ''), convert(bare, false, '')]
    return whole.kind === 'value' && part.kind === 'value' ? [[whole.value, part.value] as [unknown, unknown]] : []
  })
}

describe('a number before what multiplies it', () => {
  it('is never read as its digits alone', () => {
    fc.assert(
      fc.property(amounts, words, fc.constantFrom(' ', '\u00a0'), currencies, around, (amount, word, space, currency, place) => {
        for (const text of [`${amount}${space}${word}`, `1-${amount}${space}${word}`])
          expect(readings(place(text, currency), amount)).toEqual([])
      }),
      { numRuns: 3_000 },
    )
  })

  it('is read whole with the units of East Asia, or not at all', () => {
    fc.assert(
      // There a point is always the decimal point: `1.250千` is 1,250.
      fc.property(
        amounts.filter((amount) => !/\.\d{3}/.test(amount)),
        eastAsian,
        fc.constantFrom('', ' '),
        currencies,
        around,
        (amount, unit, space, currency, place) => {
          for (const [whole, part] of readings(place(`${amount}${space}${unit}`, currency), amount)) expect(whole).not.toEqual(part)
        },
      ),
      { numRuns: 3_000 },
    )
  })

  it('has in Japanese, Chinese and Korean the value that is written', () => {
    const numbers = fc.integer({ min: 10_000, max: 999_999_999_999 })
    const signs = fc.constantFrom(['億', '万', '円'], ['亿', '万', '元'], ['억', '만', '원'])
    fc.assert(
      fc.property(numbers, signs, fc.boolean(), (number, [oku = '', man = '', money = ''], grouped) => {
        const low = number % 10_000
        // One digit alone is said for thousands.
        fc.pre(low === 0 || low > 9)
        const part = (value: number, unit: string): string => (value === 0 ? '' : `${grouped ? value.toLocaleString('en') : value}${unit}`)
        const text = `${part(Math.floor(number / 1e8), oku)}${part(Math.floor((number % 1e8) / 1e4), man)}${part(low, '')}${money}`
        expect(read.money(text, false, '')).toMatchObject({ value: { amount: `${number}.00` } })
        expect(read.double(text, false, '')).toMatchObject({ value: number })
      }),
      { numRuns: 2_000 },
    )
  })
})
