import fc from 'fast-check'
import { expect, it } from 'vitest'
import { compileConverter } from '../../../src/extract/values/value-type.ts'

const grouped = (whole: number, mark: string): string => String(whole).replace(/(?<=\d)(?=(?:\d{3})+$)/g, mark)

/** How a language writes whole and hundredths; a price without hundredths has none of the mark. */
const WAYS = [
  { locale: 'de', group: '.', fraction: ',' },
  { locale: 'fr', group: ' ', fraction: ',' },
  { locale: 'sv', group: ' ', fraction: ':' },
  { locale: 'en', group: ',', fraction: '.' },
  { locale: 'cs', group: ' ', fraction: ',' },
  { locale: 'es', group: '', fraction: ',' },
] as const
const prices = fc.record({
  whole: fc.oneof(fc.integer({ min: 0, max: 99 }), fc.integer({ min: 100, max: 999 }), fc.integer({ min: 1_000, max: 9_999_999 })),
  hundredths: fc.option(fc.integer({ min: 0, max: 99 })),
  way: fc.constantFrom(...WAYS),
  stated: fc.boolean(),
})
const places = fc.constantFrom<(number: string) => string>(
  (number) => `${number} €`,
  (number) => `${number}€`,
  (number) => `${number} EUR`,
  (number) => `€ ${number}`,
  (number) => `€${number}`,
  (number) => `EUR ${number}`,
)
const foreign = fc.oneof(fc.integer({ min: 1, max: 99 }), fc.integer({ min: 100, max: 99_999 }))
const names = fc.constantFrom('iPhone ', 'Galaxy S', 'Größe ', 'Lot de ', 'Modell ', 'Nr. ', 'Art.', 'WH-', 'Skala 1:', 'x')
const counted = fc.constantFrom(' ml', ' Stück', 'g', ' left', ' avis', ' % Baumwolle', 'x')

it('a price with another number beside it is read as the price or as none', () => {
  let read = 0
  fc.assert(
    fc.property(prices, places, names, counted, foreign, fc.boolean(), (price, place, name, unit, number, isBefore) => {
      const { whole, hundredths, way, stated } = price
      const cents = hundredths === null ? undefined : String(hundredths).padStart(2, '0')
      const text = place(`${grouped(whole, way.group)}${cents === undefined ? '' : `${way.fraction}${cents}`}`)
      const convert = compileConverter({ kind: 'money', scale: 2, ...(stated ? { locale: way.locale } : {}) })
      const converted = convert(isBefore ? `${name}${number} ${text}` : `${text} ${number}${unit}`, false, '')
      if (converted.kind !== 'value') return
      read++
      expect(converted.value).toEqual({ amount: `${whole}.${cents ?? '00'}`, currency: 'EUR' })
    }),
    { numRuns: 5_000 },
  )
  // A reader that takes nothing is never wrong.
  expect(read).toBeGreaterThan(3_700)
})
