import { describe, expect, it } from 'vitest'
import { closesPrice, endsPrice, isCounted, isNamedBefore, mayOwnDigits } from '../../../../src/extract/values/price-words.ts'

describe('a word before a number', () => {
  it.each([
    ...[
      'Preis',
      'Prix',
      'price',
      'PRIS',
      'Cena',
      'Цена',
      'ár',
      'Hinta',
      'à partir de',
      'Au lieu de',
      'ab',
      'nur',
      'TTC',
      'Total',
      'Prix de',
    ],
    ...[
      'Kampanjpris',
      'Ordinariepriset',
      'Stückpreis',
      'Adviesprijs',
      'Gesamtbetrag',
      'Sonderangebot',
      'Totalbelopp',
      'Tarjoushinta',
      'TOP-Angebot',
    ],
  ])('that says that a price comes has it not as its own: %s', (word) => {
    expect(isNamedBefore(`${word} `)).toBe(false)
    expect(mayOwnDigits(`${word} `)).toBe(false)
  })

  it.each([
    ...['Prisma', 'Centrum', 'Summer', 'Costa', 'Nettoyant', 'Offerman', 'Totally', 'Caprice', 'Vatertag', 'Hintabox'],
    ...['PlayStation', 'iPhone', 'Lot de', 'Size', 'size', 'Modell', 'modell', 'Nr.', 'iPad'],
  ])('that is a name, or begins as a label does, may have it: %s', (word) => {
    expect(mayOwnDigits(`${word} `)).toBe(true)
    expect(isNamedBefore(`${word} `)).toBe(true)
  })

  it('that is one of a sentence has none of its own', () => {
    for (const word of ['jede', 'koupit', 'vente']) expect(mayOwnDigits(`${word} `)).toBe(false)
  })

  it('that counts or measures the number before it has none either', () => {
    for (const words of ['12 Stück', 'iPad 64GB', 'Akku 12 V', 'Monitor 27 Zoll', '4 Sterne']) {
      expect(mayOwnDigits(`${words} `)).toBe(false)
      expect(isNamedBefore(`${words} `)).toBe(false)
    }
  })

  it('that joins two numbers to a name has the next one', () => {
    for (const words of ['3 in', '2 en', '3 v', '2 i']) expect(mayOwnDigits(`${words} `)).toBe(true)
  })
})

describe('what stands behind a number', () => {
  it.each(['ml', ' ml', ' Stück', 'GB', '%', ' Bewertungen', ' reseñas', ' отзывов', ' x 3', ' m²'])('counts it: %s', (behind) => {
    expect(isCounted(behind)).toBe(true)
  })

  it.each(['', ' TTC', ' recent', ' Tabasco', ' Produzent', ' opinionated', ' Capsaicin', ' Kapselmaschine', '-teilig'])(
    'does not: %s',
    (behind) => {
      expect(isCounted(behind)).toBe(false)
    },
  )

  it('closes a price where it is a mark, a word of prices or the end', () => {
    for (const behind of ['', ' *', '/Stück', ' TTC', ' inkl. MwSt.', ' m.n.']) expect(closesPrice(behind)).toBe(true)
    for (const behind of [' Stück', ' inklings', ' EUR']) expect(closesPrice(behind)).toBe(false)
    expect(endsPrice(' EUR')).toBe(true)
  })
})
