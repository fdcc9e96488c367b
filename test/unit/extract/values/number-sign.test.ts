import { describe, expect, it } from 'vitest'
import { compileConverter } from '../../../../src/extract/values/value-type.ts'

const decimal = compileConverter({ kind: 'decimal', scale: 2 })
const converters = {
  EUR: compileConverter({ kind: 'money', scale: 2, currency: 'EUR' }),
  USD: compileConverter({ kind: 'money', scale: 2, currency: 'USD' }),
  NOK: compileConverter({ kind: 'money', scale: 2, currency: 'NOK' }),
}

const number = (text: string): unknown => {
  const read = decimal(text, false, '')
  return read.kind === 'value' ? read.value : read
}
const price = (text: string): unknown => {
  const read = converters[text.includes('$') ? 'USD' : text.includes('kr') ? 'NOK' : 'EUR'](text, false, '')
  return read.kind === 'value' ? (read.value as { amount: string }).amount : read
}
const UNCLEAR = { kind: 'problem', problem: expect.stringContaining('is no number with one reading') }

describe('a number below zero', () => {
  it.each(['he', 'ar', 'ur', 'ar-EG', 'fa', 'de-CH', 'sv', 'nl', 'fr', 'ja'])('is read as %s writes it', (locale) => {
    const euros = new Intl.NumberFormat(locale, { style: 'currency', currency: 'EUR' })
    expect(number(new Intl.NumberFormat(locale).format(-5))).toBe('-5.00')
    expect(price(new Intl.NumberFormat(locale).format(-5))).toBe('-5.00')
    expect(price(euros.format(-5))).toBe('-5.00')
    expect(price(euros.format(-12.5))).toBe('-12.50')
  })

  it.each(['\u2212 5 €', '\u2212\u00a05,00 €', '\u20115 €', '€ \u22125', '-CN¥5', '-US$5', '-kr 5', '-C$ 5', '(-5 €)', '-5 €'])(
    'has a minus that is written to it, or nothing but a minus: %s',
    (text) => {
      expect(price(text)).toBe('-5.00')
    },
  )

  it.each(['- 5 €', '-\u00a05,00 €', '– 5 €', '–5 €', '- €5', '€ - 5', 'Rabatt: - 5 €', '-.95 €'])(
    'is not told from an item of a list, or a price without its whole part: %s',
    (text) => {
      expect(price(text)).toEqual(UNCLEAR)
    },
  )

  it('is none behind a dash between words, at the other end of a range, or within a name', () => {
    expect(price('tips - $178,000 worth')).toBe('178000.00')
    expect(number('Price - 5')).toBe('5.00')
    for (const text of ['10 \u2212 20 €', '10\u201120 €', '10 - 20 €']) expect(price(text)).toBe('10.00')
    expect(price('A\u20115 €')).toBe('5.00')
  })

  it('is none where a list of other numbers begins', () => {
    expect(number('- 8:57 pm')).toBe('8.00')
    expect(number('– 12 reviews')).toBe('12.00')
    expect(number('–5 °C')).toEqual(UNCLEAR)
    expect(number('-.5')).toBe('-0.50')
  })
})

it.each(['-,99 €', '–,99 €', '--,99 €', '€ -,99', 'ab -,99 €', 'nur €-,99'])(
  'a dash in place of the whole part is none of the price: %s',
  (text) => {
    expect(price(text)).toBe('0.99')
    expect(number(text)).toBe('0.99')
  },
)
