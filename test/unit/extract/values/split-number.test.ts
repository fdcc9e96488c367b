import { describe, expect, it } from 'vitest'
import { EDGE } from '../../../../src/extract/values/split-number.ts'
import { compileConverter } from '../../../../src/extract/values/value-type.ts'
import { fieldFrom } from '../../../support/extraction.ts'

const money = (html: string, options = 'currency: EUR'): unknown => {
  const value = fieldFrom(`{ select: .p, type: money, ${options} }`, `<div class=p>${html}</div>`)
  return value === null ? null : (value as { amount: string }).amount
}
const field = (type: string, html: string): unknown => fieldFrom(`{ select: .p, ${type} }`, `<div class=p>${html}</div>`)

describe('a price in several elements', () => {
  it.each([
    ['<div>12</div><div>,99 €</div>', '12.99'],
    ['<div>€12</div><div>.99</div>', '12.99'],
    ['<div>1.299</div><div>,00 €</div>', '1299.00'],
    ['12<sup>99</sup> €', '12.99'],
    ['<sup>€</sup>12<sup>99</sup>', '12.99'],
    ['<span>12</span><span>99</span> €', '12.99'],
    ['<b>12,</b><small>99</small> €', '12.99'],
    ['12<sup>€</sup>99', '12.99'],
    ['1 299<sup>90</sup> €', '1299.90'],
    ['1.299<sup>90</sup> €', '1299.90'],
    ['<b>1</b>.<b>299</b>,00 €', '1299.00'],
    ['1<wbr>299,00 €', '1299.00'],
    ['1<!-- -->299,00 €', '1299.00'],
    ['<b>49,90</b> <i>€</i>', '49.90'],
  ])('is one number where it can be no other: %s', (html, amount) => {
    expect(money(html)).toBe(amount)
    // Beside a currency a number is read as a price is.
    for (const type of ['decimal, scale: 2', 'double']) expect(Number(field(`type: ${type}`, html))).toBe(Number(amount))
  })

  it.each([
    '<b>12.</b> <small>99</small> €',
    '1, 299.00 €',
    '€1, 299.00',
    '€ 12. 99 inkl.',
    '<b>1</b><b>299</b> €',
    '<i>1</i><i>2</i><i>9</i> €',
    '12,99<sup>1</sup> €',
    '12.5<sup>99</sup> €',
    '4 299<sup>90</sup><sup>1</sup> €',
    '<span>€1,299</span><span>24 reviews</span>',
    '<span>€ 1299</span><span>20% off</span>',
    '<span>€1299</span><span>12 left</span>',
    '<span>5</span><span>12 reviews</span>',
  ])('is none where it may be another: %s', (html) => {
    expect(money(html)).toBeNull()
  })

  it.each([
    ...['<del>20</del><ins>15</ins> €', '<s>120</s><b>99</b> €', '<strike>12 €</strike><b>99</b>', '<s>12</s><b>€99</b>'],
    ...['<del>299</del> <ins>199</ins> €', '<b>299</b> <b>199 €</b>', '299<br>199 €', '<b>1</b>&nbsp;<b>299 €</b>'],
    ...[
      '<span>PlayStation 5</span><span>49</span> €',
      'S24<sup>99</sup> €',
      'Preis 15<sup>10)</sup> €',
      '<i>12</i> <i>.</i> <i>99</i> <i>€</i>',
    ],
    ...['12&nbsp;<sup>€99</sup>', '12 <sup>€</sup><sup>99</sup>'],
  ])('is none where an old price meets a new one, or digits are of a name or a note: %s', (html) => {
    expect(money(html)).toBeNull()
    for (const type of ['decimal, scale: 2', 'double', 'int']) expect(field(`type: ${type}`, html)).toBeNull()
  })

  it.each([
    ['EUR 12<sup>99</sup>', '12.99'],
    ['<ins>Preis für 2: 15</ins> €', '15.00'],
    ['(<b>12</b><sup>99</sup>) €', '12.99'],
    ['Größe 42<br>89,95 €', '89.95'],
    ['<del>20 €</del><ins>15 €</ins>', '20.00'],
    ['19,99 € <i>1</i><i>2</i><i>3</i>', '19.99'],
    ['ab 3. 12. 2024 nur 19,99 €', '19.99'],
    ['Sleva do 24. 12. 499 Kč', '499.00'],
    ['Größe 38, 40, 42: 19,99 €', '19.99'],
    ['<span>2.</span>&nbsp;<span>499 €</span>', '499.00'],
    ['€<span>1</span><span>2</span><span>.</span><span>9</span><span>9</span>', '12.99'],
    ['12<sup>99</sup> EUR', '12.99'],
    ['12<sup>99</sup>&nbsp;zł', '12.99'],
    ['€ 12<sup>99</sup>/kg', '12.99'],
  ])('is read whatever other numbers are in pieces: %s', (html, amount) => {
    expect(money(html)).toBe(amount)
  })

  it('has the currency that stands behind its cents', () => {
    const read = (html: string): unknown => fieldFrom('{ select: p, type: money, currency: EUR }', `<p>${html}</p>`)
    expect(read('$<b>12</b><sup>99</sup> USD')).toEqual({ amount: '12.99', currency: 'USD' })
    expect(fieldFrom('{ select: p, type: money, currency: SEK }', '<p>12<sup>99</sup> kr</p>')).toEqual({
      amount: '12.99',
      currency: 'SEK',
    })
    expect(read('12<sup>99</sup> €15.00')).toEqual({ amount: '12.99', currency: 'EUR' })
  })

  it('is no matter of other numbers where it is one without a currency', () => {
    expect(field('type: int', '12 Bewertungen <a>1</a><a>2</a><a>3</a>')).toBe(12)
    expect(field('type: double', '4.5 von 5 <b>12</b><b>345</b>')).toBe(4.5)
    expect(field('type: decimal, scale: 2', '<span>5</span><span>12 reviews</span>')).toBeNull()
    expect(field('type: double', '12 <b>3</b><b>45</b>')).toBeNull()
  })

  it('leaves alone what is text, and what the author makes of it', () => {
    const html = '12<sup>99</sup>'
    expect(fieldFrom('.p', `<p class=p>${html}`)).toBe('1299')
    expect(field('type: int, transform: trim', html)).toBe(1299)
    expect(field("type: money, currency: EUR, match: '(.*) €', transform: trim", `${html} €`)).toMatchObject({ amount: '1299.00' })
    expect(field('type: int', html)).toBeNull()
    expect(field('type: int', 'Seats: 12, 14')).toBe(12)
    expect(field('type: decimal, scale: 2', '12, 14')).toBeNull()
    expect(field('type: double', '10<sup>12</sup>')).toBeNull()
    expect(field('type: decimal, scale: 1', '4.5, 12 reviews')).toBe('4.5')
    expect(field('type: decimal, scale: 1', 'Chapter 3, 45 pages')).toBe('3.0')
  })

  it('is told of as the page has it', () => {
    const converted = compileConverter({ kind: 'double' })(`12${EDGE}99`, false, '')
    expect(converted).toEqual({ kind: 'problem', problem: '"1299" is no number with one reading' })
  })
})

describe('the part of a text in several elements that a pattern picks', () => {
  const types = ['money, currency: EUR', 'decimal, scale: 2', 'double']
  const amountOf = (value: unknown): unknown => (value === null ? null : Number((value as { amount?: string }).amount ?? value))
  const picked = (html: string, match = '([\\d.,]+)'): unknown[] =>
    types.map((type) => amountOf(field(`type: ${type}, match: '${match}'`, html)))

  it.each([
    ['12<sup>99</sup> €', '([\\d.,]+)', 12.99],
    ['ab 12<sup>99</sup> € je kg', 'ab (.*) je', 12.99],
    ['<b>EUR</b> <b>12</b><sup>99</sup>', '\\d+', 12.99],
    ['1.299<sup>90</sup> €', '([\\d.,]+)', 1299.9],
    ['€<i>1</i><i>2</i>.<i>9</i><i>9</i>', '([\\d.,]+)', 12.99],
    ['<b>49,90</b> <i>€</i>', '([\\d.,]+)', 49.9],
    ['12<sup>99</sup> €', '(\\d\\d)\\d\\d', 12],
    ['12<sup>99</sup> €', '(\\d\\d) €', 99],
    ['<del>20</del><ins>15</ins> €', '(\\d\\d) €', 15],
    ['PlayStation 5<b>49,99</b> €', '5(.*)', 49.99],
  ])('means what it means there: %s, %s', (html, match, amount) => {
    expect(picked(html, match)).toEqual([amount, amount, amount])
  })

  it.each([
    '<del>20</del><ins>15</ins> €',
    '<span>€1299</span><span>20% off</span>',
    '<span>5</span><span>12 reviews</span>',
    '<b>1</b><b>299</b> €',
  ])('is none where that is more than one number: %s', (html) => {
    expect(picked(html)).toEqual([null, null, null])
  })

  it('is no count where it has cents, and none where nothing of it is left', () => {
    expect(field("type: int, match: '(\\d+)'", '12<sup>99</sup> €')).toBeNull()
    expect(field("type: int, match: '(\\d+) reviews'", '<b>€12</b><b>99</b> <i>12 reviews</i>')).toBe(12)
    expect(field("type: double, match: '(\\d+)'", '10<sup>12</sup>')).toBeNull()
    expect(field("type: int, match: '1 299'", '1&nbsp;299<sup>90</sup> €')).toBe(1299)
    expect(field("type: int, match: '(x?)'", '12<sup>99</sup> €')).toBeNull()
  })
})

describe('a number with marks of no language', () => {
  it.each(['1´299.00', '1‘299.00', '1′299.00', '1`299.00', '1\u200b299.00', '1\u00ad299.00', '\u200e1299.00\u200e'])(
    'is grouped by what stands right between its digits: %s',
    (text) => {
      expect(money(`${text} €`)).toBe('1299.00')
      expect(money(`CHF ${text}`, 'currency: CHF')).toBe('1299.00')
      expect(field('type: decimal, scale: 2', text)).toBe('1299.00')
    },
  )

  it('is grouped by three digits, or is none', () => {
    expect(field('type: int', '1·299')).toBe(1_299)
    expect(money('CHF 1´299.–', 'currency: CHF')).toBe('1299.00')
    expect(field('type: double', '12·99')).toBeNull()
  })
})

describe('a price in a currency with three decimals', () => {
  it.each([
    ['KWD 1.250', '1.25'],
    ['1.250 BHD', '1.25'],
    ['OMR 12.500', '12.50'],
    ['1,250.000 KWD', '1250.00'],
    ['KWD 1250', '1250.00'],
    ['JOD 12.345', null],
    ['TND 12,500', null],
    ['IQD 25.000', '25000.00'],
    ['IQD 25,000', '25000.00'],
  ])('is not grouped by its point: %s', (text, amount) => {
    expect(money(text, 'scale: 2')).toBe(amount)
  })

  it('has all of its digits where the scale holds them', () => {
    const read = compileConverter({ kind: 'money', scale: 2 })
    expect(read('JOD 12.345', false, '')).toMatchObject({ problem: expect.stringContaining('say `scale: 3`') })
    expect(money('JOD 12.345', 'scale: 3')).toBe('12.345')
    expect(money('TND 12,500', 'scale: 3, locale: fr')).toBe('12.500')
  })
})
