import { describe, expect, it } from 'vitest'
import type { PlainValue } from '../../../../src/extract/values/raw-value.ts'
import { compileConverter, type ValueType } from '../../../../src/extract/values/value-type.ts'

const convert = (type: ValueType, raw: PlainValue, machine = false): unknown => {
  const converted = compileConverter(type)(raw, machine, 'http://a.example.test/dir/page')
  return converted.kind === 'value' ? converted.value : converted.kind
}
const decimal = (raw: PlainValue, machine = false): unknown => convert({ kind: 'decimal', scale: 2 }, raw, machine)

describe('a double', () => {
  it.each([
    ['€ 1.299,-', 1299],
    ['1.299,– kr', 1299],
    ['1,299.-', 1299],
    ['12.345.678,--', 12345678],
    ['99,-', 99],
  ])('has no cents where a dash stands for them: %s', (text, expected) => {
    expect(value({ kind: 'double' }, text)).toBe(expected)
  })
})

describe('a decimal', () => {
  it.each([
    ['£51.77', '51.77'],
    ['1.299,00 €', '1299.00'],
    ['1,299.00', '1299.00'],
    ['1 299,00', '1299.00'],
    ['1\u00a0299,00', '1299.00'],
    ["1'299.00", '1299.00'],
    ['1.299', '1299.00'],
    ['1,299', '1299.00'],
    ['1.299,-', '1299.00'],
    ['1.234.567', '1234567.00'],
    ['1,23,456.78', '123456.78'],
    ['12,34', '12.34'],
    ['0,5', '0.50'],
    ['.99', '0.99'],
    ['$.99', '0.99'],
    ['from .99', '0.99'],
    ['-.5', '-0.50'],
    // The dot of an abbreviation is none of the number.
    ['Rs.45,000', '45000.00'],
    ['Rs.450', '450.00'],
    ['kr.1.299,00', '1299.00'],
    ['Rp.150.000', '150000.00'],
    ['No.5', '5.00'],
    ['руб.99', '99.00'],
    ['रु.450', '450.00'],
    ['12.500,5', '12500.50'],
    ['-5', '-5.00'],
    ['−5', '-5.00'],
    ['-$5.00', '-5.00'],
    ['$-5', '-5.00'],
    ['Price - 5', '5.00'],
    ['A-5', '5.00'],
    ['3 for 2', '3.00'],
    ['-0.00', '0.00'],
    ['1.5e3', '1500.00'],
    ['1250E-2', '12.50'],
    ['١٬٢٩٩٫٥٠ ر.س', '1299.50'],
    ['۱۲۰۰ تومان', '1200.00'],
    ['１，２９９．００円', '1299.00'],
  ])('reads %s as %s', (text, value) => {
    expect(decimal(text)).toBe(value)
  })

  it.each(['1.2.3', 'free', '0.299', '12.3456', '1.299.00', '1,299,5', '1e-7', '1e400', '9'.repeat(40)])(
    'does not read %s: it would have to guess or to round',
    (text) => {
      expect(decimal(text)).toBe('problem')
    },
  )

  it.each(['12.345', '12,345', '€ 12.345', '12,345 €'])(
    'takes a mark before exactly three digits for thousands where it has no place for them: %s',
    (text) => {
      const ofThree = { kind: 'decimal', scale: 3 } as const
      expect(decimal(text)).toBe('12345.00')
      expect(convert({ kind: 'int' }, text)).toBe(12345)
      for (const type of [ofThree, { kind: 'double' }] as const) expect(convert(type, text)).toBe('problem')
      expect([convert({ ...ofThree, locale: 'en' }, text), convert({ ...ofThree, locale: 'de' }, text)].toSorted()).toEqual([
        '12.345',
        '12345.000',
      ])
    },
  )

  it.each([
    ['12€99', '12.99'],
    ['12,99 €', '12.99'],
    ['49:90 kr', '49.90'],
    ['-20% 40 €', '40.00'],
    ['100% numérique 8€ par mois', '8.00'],
    ['iPhone 5 Screen for $149', '149.00'],
    ['6 Ft HDMI Cable $12.99', '12.99'],
    ['1.250,00 KWD', '1250.00'],
    ['KWD 1.250', '1.25'],
    ['₡1,299', '1299.00'],
    ['12 THE 13', '12.00'],
    ['22 in stock', '22.00'],
  ])('beside a currency is the amount of that money: %s', (text, amount) => {
    expect(decimal(text)).toBe(amount)
    if (text.includes(',') === false) expect(convert({ kind: 'double' }, text)).toBe(text.includes('KWD') ? 1.25 : Number(amount))
  })

  it.each([
    ...['5–10 €', '5 - 10 €', 'from 5 to 10 €', '5…10 €', '5..10 €', '5 ... 10 €', '€5–10', '$5-$10', '5 € - 10 €', '5 € or 10 €'],
    ...['UVP 5 € jetzt 4,99 €', 'statt 5,00 € 3,50 €'],
  ])('is the first price of a range, and of several that are written alike: %s', (text) => {
    expect(decimal(text)).toBe('5.00')
  })

  it.each(['PlayStation 5 549 €', '5 € 49', '12 €99', '99¢', 'PHP 8 Book 29,99 €', '- 5 €', '$1.5m USD'])(
    'is none where a money is none: %s',
    (text) => {
      for (const type of [{ kind: 'decimal', scale: 2 }, { kind: 'double' }, { kind: 'int' }] as const)
        expect(convert(type, text)).toBe('problem')
    },
  )

  it.each([
    ['AMD-5600', '5600.00'],
    ['TOP-10', '10.00'],
    ['SKU: CAD-2024', '2024.00'],
    ['CVE-2024-1234', '2024.00'],
    ['Größe EUR-36', '36.00'],
    ['Größe EUR\u201136', '36.00'],
    ['PEN-12 blau', '12.00'],
    ['RM-200', '200.00'],
    ['CAD2024', '2024.00'],
    ['2 Min 30 Sek', '2.00'],
    ['12:30 Sek', '12.00'],
    ['2 MIN 30 SEK', 'problem'],
    ['EUR 12,50', '12.50'],
    ['12,50 EUR', '12.50'],
    ['3 Stück EUR12,50', '12.50'],
    ['CHF-5.00', '-5.00'],
  ])('is no price where letters beside it are a name or a word: %s', (text, read) => {
    expect(decimal(text)).toBe(read)
    if (!/[,:]|SEK/.test(text)) expect(convert({ kind: 'int' }, text)).toBe(Number(read))
  })

  it('is no price beside another number where letters alone say so', () => {
    for (const type of [{ kind: 'decimal', scale: 2 }, { kind: 'double' }] as const) {
      expect(convert(type, '5 Zimmer 1.200 EUR')).toBe('problem')
      expect(convert(type, '5 Zimmer 950,00 EUR')).toBe(type.kind === 'double' ? 950 : '950.00')
      expect(convert(type, '12 offers from $99.00')).toBe(type.kind === 'double' ? 99 : '99.00')
    }
  })

  it.each([
    ['$899,600', 899600],
    ['$1,299', 1299],
    ['US$1,299', 1299],
    ['£ 1,299', 1299],
    ['AU $1,299', 1299],
    ['USD $1,299', 1299],
    ['$1,299 CAD', 1299],
    ['$1.299', 'problem'],
    ['1,299 $', 'problem'],
    ['R$ 1,299', 'problem'],
    ['€1,299', 'problem'],
  ])('has groups of thousands behind a sign of countries that part them by commas: %s', (text, read) => {
    expect(convert({ kind: 'double' }, text)).toBe(read)
    expect(convert({ kind: 'double', locale: 'de' }, text)).toBe(text.includes(',') ? (text.includes('899') ? 899.6 : 1.299) : 1299)
  })

  it('has the mark that prices have in its language', () => {
    const swiss = { scale: 2, locale: 'fr-CH' } as const
    for (const text of ['CHF 12.50', 'CHF 12,50']) {
      expect(convert({ kind: 'decimal', ...swiss }, text)).toBe('12.50')
      expect(convert({ kind: 'money', ...swiss }, text)).toEqual({ amount: '12.50', currency: 'CHF' })
    }
    expect(convert({ kind: 'money', ...swiss }, "CHF 1'299.50")).toEqual({ amount: '1299.50', currency: 'CHF' })
    expect(convert({ kind: 'decimal', ...swiss }, '12,5 kg')).toBe('12.50')
  })

  it('takes a point as a point where a program wrote it', () => {
    expect(decimal('1.29', true)).toBe('1.29')
    expect(convert({ kind: 'double' }, '1.299', true)).toBe(1.299)
    expect(decimal('1.299', true)).toBe('problem')
    expect(decimal(19.9)).toBe('19.90')
    expect(decimal(1e-7)).toBe('problem')
    expect(decimal(2.5e21)).toBe('2500000000000000000000.00')
  })

  it('follows the language that the extractor names', () => {
    expect(convert({ kind: 'double', locale: 'de' }, '1.299')).toBe(1299)
    expect(convert({ kind: 'double', locale: 'en' }, '1,299')).toBe(1299)
    expect(convert({ kind: 'double', locale: 'de' }, '1,299')).toBe(1.299)
    expect(convert({ kind: 'double', locale: 'de' }, 1.5)).toBe(1.5)
    expect(convert({ kind: 'decimal', scale: 2, locale: 'de' }, '1299.00', true)).toBe('1299.00')
  })

  it.each([
    ['de', '0.750 kg', '0.750'],
    ['fr', '0.125 l', '0.125'],
    ['nl', '0.750', '0.750'],
    ['pt-BR', '-0.5', '-0.500'],
    ['en', '0,750', '0.750'],
    ['en', '0,75', '0.750'],
    ['de', '0,750', '0.750'],
    ['de', '10.750', '10750.000'],
    ['de', '0.750.000', 'problem'],
    ['de', '007.500', 'problem'],
  ])('takes no thousands that begin with a 0, in any language: %s, %s', (locale, text, read) => {
    const type = { kind: 'decimal', scale: 3, locale } as const
    expect(convert(type, text)).toBe(read)
    if (/[a-z]/.test(text)) expect(convert(type, text, true)).toBe(read)
  })

  it('takes a plain number of a program as one in every language, where the type has room for its digits', () => {
    expect(convert({ kind: 'double', locale: 'de' }, '4.667', true)).toBe(4.667)
    expect(convert({ kind: 'double', locale: 'de' }, '1.299,5', true)).toBe(1299.5)
    expect(convert({ kind: 'decimal', scale: 2, locale: 'es-CL' }, '19.990', true)).toBe('19990.00')
    expect(convert({ kind: 'int', locale: 'de' }, '1.299', true)).toBe(1299)
  })
})

describe('a number of more than its digits', () => {
  it.each(['12k', '1.2K views', '1.2M', '3 Mio.', '5 тыс.', '2 crore', '12 thousand', '1.5 million', '5½', '1_000', '3万5'])(
    'is none: %s',
    (text) => {
      expect(convert({ kind: 'double' }, text)).toBe('problem')
    },
  )

  it.each([
    ['3万5000人', 35000],
    ['1.5万次观看', 15000],
    ['5千', 5000],
    ['5千克', 5],
    ['5m', 5],
    ['12 kg', 12],
    ['3 bin', 3],
    ['120 m²', 120],
    ['3万 200件', 30000],
    ['19,900 만족', 'problem'],
  ])('is read where its units are digits, and units of measure are none of it: %s', (text, number) => {
    expect(convert({ kind: 'double' }, text)).toBe(number)
  })
})

describe('an integer', () => {
  it('is whole, within its bits, and never cut', () => {
    expect(convert({ kind: 'int' }, '22 in stock')).toBe(22)
    expect(convert({ kind: 'int' }, '1.299')).toBe(1299)
    expect(convert({ kind: 'int' }, '4.5')).toBe('problem')
    expect(convert({ kind: 'int' }, 2147483648)).toBe('problem')
    expect(convert({ kind: 'int' }, -2147483647)).toBe(-2147483647)
    expect(convert({ kind: 'long' }, '2147483648')).toBe(2147483648)
    expect(convert({ kind: 'long' }, '9007199254740993')).toBe('problem')
    expect(convert({ kind: 'long' }, '9'.repeat(5000))).toBe('problem')
  })
})

describe('a count', () => {
  it.each([
    ['12 offers from $99.00', 12],
    ['4 Angebote ab 12 €', 4],
    ['5 reviews · $20', 5],
    ['10 Stück 5 €', 10],
    ['5 Zimmer, 120 m², 1.200 €', 5],
    ['12 Angebote, 5 € 49', 12],
    ['2 Min 30 Sek', 2],
    ['1 299 €', 1299],
    ['ab 1.299 €', 1299],
    ['$1,299', 1299],
    ['3万5000円', 35000],
    ['10 - 20 €', 10],
    ['PlayStation 5 549 €', 'problem'],
  ])('is the first number of a text, though another one is a price: %s', (text, count) => {
    for (const kind of ['int', 'long'] as const) expect(convert({ kind }, text)).toBe(count)
  })
})

describe('a boolean', () => {
  it('knows the words that are meant for it and no others', () => {
    expect(['yes', 'ON', '1', 'true', true].map((raw) => convert({ kind: 'boolean' }, raw))).toEqual([true, true, true, true, true])
    expect(['no', 'Off', '0', 'false', false].map((raw) => convert({ kind: 'boolean' }, raw))).toEqual([false, false, false, false, false])
    expect(convert({ kind: 'boolean' }, 'maybe')).toBe('problem')
    expect(convert({ kind: 'boolean' }, ' ')).toBe('empty')
  })
})

describe('a URL', () => {
  it('is resolved, and is http or https', () => {
    expect(convert({ kind: 'url' }, ' ../a b ')).toBe('http://a.example.test/a%20b')
    expect(convert({ kind: 'url' }, '//b.example.test/x')).toBe('http://b.example.test/x')
    expect(convert({ kind: 'url' }, 'data:image/gif;base64,AA==')).toBe('problem')
    expect(convert({ kind: 'url' }, 'javascript:void(0)')).toBe('problem')
    expect(convert({ kind: 'url' }, 'http://[')).toBe('problem')
  })
})

it('a number beyond its type is refused with the bounds and the type that holds it', () => {
  const longs = compileConverter({ kind: 'long' })('9007199254740993', false, '')
  expect(longs).toMatchObject({
    problem: expect.stringMatching(/is no long from -4503599627370496 to 9007199254740990; a string holds more/),
  })
})

describe('a time', () => {
  it.each([
    ['2024-05-06T10:11:12+02:00', 1714983072000, '2024-05-06'],
    ['2024-05-06 10:11', 1714990260000, '2024-05-06'],
    ['2024-05-06T23:30:00-05:00', 1715056200000, '2024-05-06'],
    ['Tue, 03 Jun 2008 11:05:30 GMT', 1212491130000, '2008-06-03'],
    ['3rd June 2008', 1212451200000, '2008-06-03'],
    ['June 3, 2008', 1212451200000, '2008-06-03'],
    ['20240506', 1714953600000, '2024-05-06'],
    ['20240506T101112Z', 1714990272000, '2024-05-06'],
    ['2024-05-06T10:11:12+02', 1714983072000, '2024-05-06'],
    ['1700000000', 1700000000000, '2023-11-14'],
    ['1700000000123', 1700000000123, '2023-11-14'],
  ])('reads %s', (text, ms, date) => {
    expect(convert({ kind: 'timestamp' }, text)).toBe(ms)
    expect(convert({ kind: 'date' }, text)).toBe(date)
  })

  it.each(['03/04/2008', '2024-02-30', 'yesterday', '2024-13-01', '2024-05-06T25:00Z', '0050-01-01'])('does not guess %s', (text) => {
    expect(convert({ kind: 'timestamp' }, text)).toBe('problem')
  })

  it('follows the format and the zone of the extractor', () => {
    expect(convert({ kind: 'date', format: 'DD/MM/YYYY' }, '03/04/2008')).toBe('2008-04-03')
    expect(convert({ kind: 'timestamp', format: 'DD.MM.YYYY, HH:mm', zone: '+01:00' }, '24.12.2024, 18:00')).toBe(1735059600000)
    expect(convert({ kind: 'timestamp', format: 'MMM D, YYYY h:mm a' }, 'Jun 3, 2008 12:05 am')).toBe(1212451500000)
  })

  it.each([
    ['D MMMM YYYY', '3 June 2008', '2008-06-03'],
    ['D MMM YYYY', '3 June 2008', '2008-06-03'],
    ['D MMMM YYYY', '3 Jun. 2008', '2008-06-03'],
    ["DD.MM.YYYY HH:mm 'Uhr'", '03.06.2008 11:05 Uhr', '2008-06-03'],
    ["DD.MM.YYYY HH:mm 'Uhr'", '03.06.2008 11:05', 'problem'],
    ["YYYY-MM-DD'T'HH:mm", '2008-06-03T11:05', '2008-06-03'],
    ['YYYY-MM-DDTHH:mm', '2008-06-03T11:05', '2008-06-03'],
    ["D 'de' MMMM 'de' YYYY", '3 de June de 2008', '2008-06-03'],
    ["D MMMM YYYY, h 'o''clock' a", "3 June 2008, 5 o'clock pm", '2008-06-03'],
    ["DD ''MM'' YYYY", "03 '06' 2008", '2008-06-03'],
    ["'a  b.' DD.MM.YYYY", 'a b. 03.06.2008', '2008-06-03'],
    ["'a  b.' DD.MM.YYYY", 'a bx 03.06.2008', 'problem'],
    ['YYYY年M月D日', '2008年6月3日', '2008-06-03'],
    [' DD.MM.YYYY ', '03.06.2008', '2008-06-03'],
    ['YYYYMMDD', '20080603', '2008-06-03'],
  ])('in the format %s: %s', (format, text, expected) => {
    expect(convert({ kind: 'date', format }, text)).toBe(expected)
  })

  it.each([
    ['69', '1969'],
    ['99', '1999'],
    ['00', '2000'],
    ['68', '2068'],
  ])('of two digits, %s, is the year %s', (short, year) => {
    expect(convert({ kind: 'date', format: 'D.M.YY' }, `3.6.${short}`)).toBe(`${year}-06-03`)
  })

  it.each([
    ['DD.MM.YYYY HH:mm Uhr', /in "Uhr" are letters that are no part of a time \(YYYY, YY, MMMM, .*, Z\); .* in single quotes/],
    ['YYYY-MM-DDtHH:mm', /in "DDtHH" are letters/],
    ['D MMMMM YYYY', /in "MMMMM" are letters/],
    ['DD.MM.YYY', /in "YYY" are letters/],
    ['D de MMMM YYYY', /in "de" are letters/],
    ['DD.MM.YYYY HH:mm:HH', /has the hour twice/],
    ['DD.MM.YYYY MMM', /has the month twice/],
    ['YY YYYY-MM-DD', /has the year twice/],
    ["DD.MM.YYYY 'Uhr", /has a single quote that is not closed/],
    ['HH:mm', /names no year, month and day/],
    ["DD.MM 'YYYY'", /names no year, month and day/],
  ])('is refused in the format %s', (format, problem) => {
    expect(() => compileConverter({ kind: 'date', format })).toThrow(problem)
  })
})

const value = (type: ValueType, raw: PlainValue): unknown => {
  const converted = compileConverter(type)(raw, false, '')
  return converted.kind === 'value' ? converted.value : converted.kind === 'problem' ? converted.problem : undefined
}

describe('a money', () => {
  const money = { kind: 'money', scale: 2 } as const

  it.each([
    ['1.299,00 €', '1299.00', 'EUR'],
    ['$1,299.00 USD', '1299.00', 'USD'],
    ['USD 1,299', '1299.00', 'USD'],
    ['US$5', '5.00', 'USD'],
    ['C$ 1 299,50', '1299.50', 'CAD'],
    ['-3.50£', '-3.50', 'GBP'],
    ['12 zł', '12.00', 'PLN'],
    ['1,00,000 ₹', '100000.00', 'INR'],
    ['1.500 CHF', '1500.00', 'CHF'],
    ['from €9.90 per month', '9.90', 'EUR'],
    ['US$.99', '0.99', 'USD'],
    ['PKR.450', '450.00', 'PKR'],
    ['-US$5', '-5.00', 'USD'],
    ['100 € 200 €', '100.00', 'EUR'],
    ['5 USD 700 left', '5.00', 'USD'],
    ['$5 USD 700 left', '5.00', 'USD'],
    ['1 299,00 € 500 g', '1299.00', 'EUR'],
    ['€.99', '0.99', 'EUR'],
    ['100 Kč.', '100.00', 'CZK'],
    ['Ft.1.500', '1500.00', 'HUF'],
    ['лв.12,50', '12.50', 'BGN'],
    ['499€95', '499.95', 'EUR'],
    ['1 299€95 TTC', '1299.95', 'EUR'],
    ['5€10€', '5.00', 'EUR'],
    // What comes next on a page comes without a space.
    ['49,99 €59,99 €', '49.99', 'EUR'],
    ['49,99 €-20%', '49.99', 'EUR'],
    ['19,99 €1 Stück', '19.99', 'EUR'],
    ['24,99 €12 Monate', '24.99', 'EUR'],
    ['49.99 EUR59.99 EUR', '49.99', 'EUR'],
    ['99 Kč129 Kč', '99.00', 'CZK'],
    ['129zł99zł', '129.00', 'PLN'],
    ['5EUR10EUR', '5.00', 'EUR'],
    ['499€24 mois', '499.00', 'EUR'],
    ['10€50% off', '10.00', 'EUR'],
    ['10,- bis 20,- €', '10.00', 'EUR'],
    ['1299 €-5%', '1299.00', 'EUR'],
    ['1299 €1199 €', '1299.00', 'EUR'],
    ['iPhone 15 €999', '999.00', 'EUR'],
    ['Set of 3 €5.99', '5.99', 'EUR'],
    ['iPhone 15 CHF999', '999.00', 'CHF'],
    ['Pack of 6 EUR4.50', '4.50', 'EUR'],
    ['Galaxy A5 ₩199,000', '199000.00', 'KRW'],
    ['499€95 l’unité', '499.95', 'EUR'],
    ['dès 499€95 par mois', '499.95', 'EUR'],
    ['499€95 599€95', '499.95', 'EUR'],
    ['$ 50.000 COP', '50000.00', 'COP'],
    // A code that is a word too, or a name; and the number is the one beside the currency.
    ['TOP-Angebot 19,99 €', '19.99', 'EUR'],
    ['ALL 5 €', '5.00', 'EUR'],
    ['ALL 5', '5.00', 'ALL'],
    ['GEL 50 ml 12,00 €', '12.00', 'EUR'],
    ['50 ml 12,00 €', '12.00', 'EUR'],
    ['2 x €5', '5.00', 'EUR'],
    ['MAD 499', '499.00', 'MAD'],
    ['-GEL 5', '-5.00', 'GEL'],
    ['1 Stk. -5,00 €', '-5.00', 'EUR'],
    ['CHF 12.90 / € 13.50', '12.90', 'CHF'],
    ['Preis in EUR inkl. MwSt.: 19,99', '19.99', 'EUR'],
    ['10 – 20 €', '10.00', 'EUR'],
    ['von 10,50 bis 20 €', '10.50', 'EUR'],
    ['USD $5', '5.00', 'USD'],
    ['5 $ CAD', '5.00', 'CAD'],
    ['١٢ ₹', '12.00', 'INR'],
  ])('is an amount and a currency: %s', (text, amount, currency) => {
    expect(value(money, text)).toEqual({ amount, currency })
  })

  it.each([
    ['Galaxy S23 1299 €', '1299.00'],
    ['iPhone 15 49,99 €', '49.99'],
    ['iPhone 16 1.299,00 €', '1299.00'],
    ['iPhone 16 1 299,00 €', '1299.00'],
    ['Größe 42 89,95 €', '89.95'],
    ['Größe 42 89 €', '89.00'],
    ['Lot de 2 19,90 €', '19.90'],
    ['Modell 2024 12,99 €', '12.99'],
    ['Modell 2024 999 €', '999.00'],
    ['Art. 10023 89,95 €', '89.95'],
    ['Nr. 3 5,00 €', '5.00'],
    ['100 ml 12,00 €', '12.00'],
    ['(4) 12,00 €', '12.00'],
    ['Galaxy S24 799 €', '799.00'],
    ['WH-1 299 €', '299.00'],
    ['128GB 799 €', '799.00'],
    ['Artikel 0 299 €', '299.00'],
    ['1 299 €', '1299.00'],
    ['-1 299 €', '-1299.00'],
    ['à partir de 1 299,00 €', '1299.00'],
    ['Prix : 1 299 €', '1299.00'],
    ['iPad 64GB 1 299 €', '1299.00'],
    ['12 Stück 1 200 €', '1200.00'],
    ['Akku 12 V 1 299 €', '1299.00'],
    ['Kampanjpris 1 299 €', '1299.00'],
    ['Totalsumma 1 299 EUR', '1299.00'],
    ['Summa 1 299 EUR', '1299.00'],
    ['PRIX 1 299 €', '1299.00'],
    ['1 000 299,50 €', '1000299.50'],
    ['2 299 – 2 999 €', '2299.00'],
    ['EUR 5 999,-', '5999.00'],
    ['EUR 1 299 TTC', '1299.00'],
    ['EUR 1 299,00 je Stück', '1299.00'],
    ['€ 1 299/Stück', '1299.00'],
    ['€ 5 20 Stück', '5.00'],
    ['Wasserkocher 100 € 12 Bewertungen', '100.00'],
    ['12,00 € 20', '12.00'],
    ['12,00 € 20 Stück', '12.00'],
  ])('has its own number where others stand beside it: %s', (text, amount) => {
    expect(value(money, text)).toEqual({ amount, currency: 'EUR' })
  })

  it.each([
    ...['PlayStation 5 549,99 €', 'PlayStation 5 549 €', 'Lot de 2 199 €', 'Size 42 299 €', 'iPhone 15 199 000 €', 'Nr. 3 500 €'],
    ...[
      'Prisma 5 549 €',
      'Centrum 5 199 €',
      '3 in 1 299 €',
      '12 Stück 5 99 €',
      '€ 12 500 ml',
      '€ 5 500g',
      '$5 700 left',
      'EUR 5 100 % Baumwolle',
      '16:9 €',
      'iPhone 15 € 999',
      'S24 € 799',
      'iPhone 15 EUR 1 299,00 inkl. MwSt.',
      '12:30:45 €',
      'EUR 12:5',
      '5/10 €',
      '5 & 10 €',
    ],
    ...['between 5 and 10 €', 'zwischen 5 und 10 €', 'entre 5 et 10 €', '5 or 10 €', '5 oder 10 €', 'PlayStation 4 and 5 299 €'],
    // Two digits apart may be the cents.
    ...[
      '5 € 49',
      '299 € 95',
      '1 299 € 95',
      '5€ 99',
      '5€ 10',
      'EUR 5 99',
      'EUR 1 299 95',
      '5 99 €',
      'ab 5 99 €',
      '299 EUR 95',
      '299 € 95 TTC',
      '5£99',
    ],
  ])('of which two numbers may be the price is none: %s', (text) => {
    expect(value(money, text)).toMatch(/is no number with one reading/)
  })

  it.each([
    ['PlayStation 5 1\u00a0299 €', '1299.00'],
    ['PlayStation 5 1\u202f299,90\u00a0€', '1299.90'],
    ['Foo 1\u00a0299 €', undefined],
    ['Nr 7\u00a0499 €', undefined],
    ['Nr 7\u00a0499\u00a0€', undefined],
    ['Galaxy S24 1\u00a0299 €', '1299.00'],
    ['Preis 1\u00a0299 €', '1299.00'],
    ['EUR 1\u00a0299', '1299.00'],
    ['Foo\u00a01 299 €', undefined],
    ['PlayStation\u00a05\u00a0549\u00a0€', undefined],
    ['S24\u00a0256 899 €', undefined],
    ['1\u00a0299\u00a0€', '1299.00'],
    ['€\u00a01\u00a0299', '1299.00'],
    ['à partir de 1\u202f299\u00a0€', '1299.00'],
    ['€ 12\u00a0500 ml', undefined],
    ['€ 12\u00a0500\u00a0ml', undefined],
  ])('is one number where no-break spaces group it: %j', (text, amount) => {
    if (amount === undefined) expect(value(money, text)).toMatch(/is no number with one reading/)
    else expect(value(money, text)).toEqual({ amount, currency: 'EUR' })
  })

  it.each([
    ['49:90 kr', '49.90'],
    ['12:50 kr', '12.50'],
    ['SEK 49:90', '49.90'],
    ['1 249:90 kr', '1249.90'],
    ['1.249:90 kr', '1249.90'],
    ['kr 1 249:90', '1249.90'],
    ['49:- kr', '49.00'],
    ['2 299:- kr', '2299.00'],
    ['Skala 1:18 49:90 kr', '49.90'],
    ['49:90 – 99:90 kr', '49.90'],
    ['49:90 kr 59:90 kr', '49.90'],
  ])('has a colon before its hundredths: %s', (text, amount) => {
    for (const locale of [undefined, 'sv', 'en'])
      expect(value({ ...money, currency: 'SEK', ...(locale === undefined ? {} : { locale }) }, text)).toEqual({ amount, currency: 'SEK' })
  })

  it('has a minus of any width', () => {
    expect(value(money, '－5 €')).toEqual({ amount: '-5.00', currency: 'EUR' })
    expect(value(money, '－５０円')).toEqual({ amount: '-50.00', currency: 'JPY' })
    expect(decimal('－5')).toBe('-5.00')
    expect(decimal('﹣5')).toBe('-5.00')
  })

  it.each([
    ['US $12.99', '12.99', 'USD'],
    ['AU $12.99', '12.99', 'AUD'],
    ['C $12.99', '12.99', 'CAD'],
    ['12.99 $ US', '12.99', 'USD'],
    ['12,99 $CA', '12.99', 'CAD'],
    ['$12.99 US', '12.99', 'USD'],
    ['$12.99 CAN', '12.99', 'CAD'],
    ['NZD$12', '12.00', 'NZD'],
    ['₡1,299', '1299.00', 'CRC'],
    ['₲ 1.500', '1500.00', 'PYG'],
    ['S/ 5.00', '5.00', 'PEN'],
    ['S/.25.00', '25.00', 'PEN'],
    ['S/.120', '120.00', 'PEN'],
    ['S/.1,299.00', '1299.00', 'PEN'],
    ['AR$ 1.299,00', '1299.00', 'ARS'],
    ['CL$ 12.990', '12990.00', 'CLP'],
    ['UY$ 1.290', '1290.00', 'UYU'],
    ['BZ$ 25.00', '25.00', 'BZD'],
    ['FJ$ 20.00', '20.00', 'FJD'],
    ['G$ 500', '500.00', 'GYD'],
    ['E£ 25.00', '25.00', 'EGP'],
    ['12.50 TL', '12.50', 'TRY'],
    ['12 euros', '12.00', 'EUR'],
    ['5 eur', '5.00', 'EUR'],
    ['12 all', '12.00', 'EUR'],
    ['6 Ft Kabel 12,99 €', '12.99', 'EUR'],
    ['49 € zzgl. 4,99 € Versand', '49.00', 'EUR'],
  ])('is in the currency that is written, whatever the extractor states: %s', (text, amount, currency) => {
    expect(value({ ...money, currency: 'EUR' }, text)).toEqual({ amount, currency })
  })

  it.each([
    ['5 kr', /has the sign kr, which EUR has not/],
    ['$5', /has the sign \$, which EUR has not/],
    ['Vitamin C $12.99', /has the sign \$, which EUR has not/],
    ['Z$12', /has the sign Z\$, which is of no currency that is known/],
    ['\u20bb 12', /which is of no currency that is known/],
    ['AMD-5600 Prozessor $99', /has the sign \$, which EUR has not/],
    ['usd 12', /has the sign usd, which EUR has not/],
    ['NOW$12', /has the sign NOW\$, which EUR has not/],
    ['99 ct', /counts hundredths/],
    ['99p', /counts hundredths/],
    ['JUST 99¢!', /is no number with one reading/],
  ])('is none in a currency that the extractor does not state: %s', (text, problem) => {
    expect(value({ ...money, currency: 'EUR' }, text)).toMatch(problem)
  })

  it.each([
    ...['Nike Air EUR 42 €89,99', 'PHP 8 Book 29,99 €', 'PHP 8.30 Book 29,99 €', 'CAD 2024 Software $99.00', '€ 12 ($13)'],
    ...['$5 (4,60 €)', '12 €99', 'à partir de 4 €99', '12\u00a0€99', '1 299 €99', '$50 off, now 45 €'],
  ])('is none where two currencies, or two numbers of one, may be the price: %s', (text) => {
    for (const currency of [undefined, 'CAD']) {
      expect(value({ ...money, ...(currency === undefined ? {} : { currency }) }, text)).toMatch(/is no number with one reading/)
    }
  })

  it('takes the currency of the extractor for a sign that several have, and for none', () => {
    const dollars = { ...money, currency: 'AUD' } as const
    expect(value(dollars, '$5')).toEqual({ amount: '5.00', currency: 'AUD' })
    expect(value(dollars, '5')).toEqual({ amount: '5.00', currency: 'AUD' })
    expect(value(dollars, '5 €')).toEqual({ amount: '5.00', currency: 'EUR' })
    expect(value({ ...money, currency: 'BND' }, 'B$ 12.50')).toEqual({ amount: '12.50', currency: 'BND' })
    expect(value({ ...money, currency: 'USD' }, '75 CL $12.99')).toEqual({ amount: '12.99', currency: 'USD' })
    expect(value(money, '$5')).toMatch(/sign \$, which several currencies have; say its `currency`/)
    for (const name of ['AMD-5600', 'TOP-10', 'Größe EUR-36']) expect(value(dollars, name)).toMatch(/no number with one reading/)
    expect(value(money, 'Größe EUR-36 49 €')).toEqual({ amount: '49.00', currency: 'EUR' })
    expect(value(money, '5 THE')).toMatch(/names no currency/)
    expect(value(money, 'EUR')).toMatch(/is no money/)
    expect(value(money, 'TOP-Angebot für 5')).toMatch(/names no currency/)
    expect(value(money, 'TOP $5')).toMatch(/several currencies/)
    expect(value(money, '$19.99 ALL sizes')).toMatch(/several currencies/)
    expect(value({ ...money, currency: 'USD' }, 'AMD $199')).toEqual({ amount: '199.00', currency: 'USD' })
    expect(value({ ...money, currency: 'USD' }, 'AMD Ryzen 5 $199')).toEqual({ amount: '199.00', currency: 'USD' })
    expect(convert({ ...money }, '$5.29 USD', true)).toEqual({ amount: '5.29', currency: 'USD' })
  })

  it.each([
    ...['1.5 Mio. €', '€ 2,5 Millionen', '$1.5m USD', '12k €', '€3bn', '5 млн ₽', 'EUR 7 million', '5 € 49', 'ab 1e5 EUR'],
    ...['10 - 20 Mio. €', '10-20k €', '3〜5万円', '₹2 Cr', '₹ 1.5 lakh', '$1.2B', '1,5 juta €', '5ล้านบาท', '1,5 triệu', '5½ €', '1_000 €'],
    ...['2,5 Millionen Euro', '5 MIO EUR', '€ 1 500 Mrd.', '5 M€', '12 k€', 'R$ 50 mil', 'R$ 50 mil reais', '1,5 mill. kr', '₹ 5.2 Lakh'],
  ])('of which only a part could be read is none: %s', (text) => {
    expect(value(money, text)).toMatch(/is no number/)
  })

  it.each([
    ['3万5000円', '35000.00', 'JPY'],
    ['３万５，０００円', '35000.00', 'JPY'],
    ['１，２９９．５０円', '1299.50', 'JPY'],
    ['￥１,２９９ JPY', '1299.00', 'JPY'],
    ['1,980万円', '19800000.00', 'JPY'],
    ['3万円', '30000.00', 'JPY'],
    ['1億2,000万円', '120000000.00', 'JPY'],
    ['3万5千円', '35000.00', 'JPY'],
    ['25.8万元起', '258000.00', 'CNY'],
    ['5000円から', '5000.00', 'JPY'],
    ['3만 5천원', '35000.00', 'KRW'],
    ['2억 3,000만 원', '230000000.00', 'KRW'],
    ['3만 5,000원', '35000.00', 'KRW'],
    ['19,900원', '19900.00', 'KRW'],
    ['iPhone 15 3万5000円', '35000.00', 'JPY'],
    ['5 個 3500円', '3500.00', 'JPY'],
    ['iPhone 15 3500 €', '3500.00', 'EUR'],
  ])('has the units of East Asia in its number: %s', (text, amount, currency) => {
    expect(value(money, text)).toEqual({ amount, currency })
  })

  it.each(['3万5円', '3万五千円', '3万数千円', '1万2億円', '3.5万5000円', '3万50000円', '三万円'])(
    'gives none where that has several readings: %s',
    (text) => {
      expect(value(money, text)).toMatch(/is no number/)
    },
  )

  it.each([
    ['1e3 EUR', '1000.00'],
    ['EUR 1.5e2', '150.00'],
    ['5 €/m', '5.00'],
    ['Kabel 5m 12,00 €', '12.00'],
    ['12,00 € Kabel 5 m', '12.00'],
    ['12,00 € mit Montage', '12.00'],
    ['100 € 200 €', '100.00'],
    ['5€49', '5.49'],
  ])('is whole whatever stands beside it: %s', (text, amount) => {
    expect(value(money, text)).toEqual({ amount, currency: 'EUR' })
  })

  it.each([
    ['$1,299.00 M.N.', '1299.00'],
    ['$500.00 MN', '500.00'],
    ['$500MN', '500.00'],
    ['$500.00M.N.', '500.00'],
    ['MX$ 500.00 M.N.', '500.00'],
    ['$ 25.00 m.n. c/u', '25.00'],
    ['$500.00 mn', '500.00'],
    ['kr 99,00 m/mva', '99.00'],
    ['kr 99,00m/mva', '99.00'],
    ['DKK 99,00 m. moms', '99.00'],
    ['kr 99,00m. moms', '99.00'],
    ['€ 49 m²', '49.00'],
    ['€ 49m²', '49.00'],
    ['€ 12.00 m2', '12.00'],
    ['€ 12.00m2', '12.00'],
    ['€ 12.00 m', '12.00'],
    ['€ 12 Mil', '12.00'],
    ['12 € Mil', '12.00'],
    ['€ 12,00 5m Kabel', '12.00'],
    ['€ 12 5m Kabel', '12.00'],
    ['€ 499 4K Monitor', '499.00'],
    ['$24.99 Md', '24.99'],
    ['€ 45 tn', '45.00'],
    ['€ 99,00 Mio MiVue', '99.00'],
    ['$49 Mill Creek', '49.00'],
    ['$49 Mil-Spec', '49.00'],
    ['$19.99 3 mil bags', '19.99'],
    ['€ 20 万年筆', '20.00'],
    ['€ 20 만족', '20.00'],
  ])('is not scaled by a name, a unit or a remark behind it: %s', (text, amount) => {
    expect(value({ ...money, currency: text.startsWith('kr') ? 'NOK' : 'MXN' }, text)).toMatchObject({ amount })
  })

  it.each([
    ['Rs.45,000', '45000.00', 'INR'],
    ['Rs. 450', '450.00', 'INR'],
    ['Rs 1,23,456', '123456.00', 'INR'],
    ['Rs.450.50', '450.50', 'INR'],
    ['kr.1.299,00', '1299.00', 'DKK'],
    ['1.299,00 kr.', '1299.00', 'DKK'],
    ['Kr.99', '99.00', 'DKK'],
    ['Rp.150.000', '150000.00', 'IDR'],
    ['Rp150.000', '150000.00', 'IDR'],
    ['RM.9', '9.00', 'MYR'],
    ['Fr.12', '12.00', 'CHF'],
    ['Fr. 12.50', '12.50', 'CHF'],
    ['12 Fr.', '12.00', 'CHF'],
    ['12,50 lei.', '12.50', 'RON'],
    ['-Rs.450', '-450.00', 'INR'],
  ])('does not take the dot of an abbreviation for that of the number: %s', (text, amount, currency) => {
    expect(value({ ...money, currency }, text)).toEqual({ amount, currency })
  })

  it('never rounds', () => {
    expect(value(money, '1.005 EUR')).toEqual({ amount: '1005.00', currency: 'EUR' })
    expect(value(money, '1.0055 EUR')).toMatch(/2 digits behind the point/)
  })
})

describe('a time in a zone or a language', () => {
  it('follows the clocks of a named zone', () => {
    const berlin = { kind: 'timestamp', zone: 'Europe/Berlin' } as const
    const iso = (text: string): string => new Date(value(berlin, text) as number).toISOString()
    expect(iso('2024-01-15 12:00')).toBe('2024-01-15T11:00:00.000Z')
    expect(iso('2024-07-15 12:00')).toBe('2024-07-15T10:00:00.000Z')
    // The hour that comes twice is its first, the hour that is passed over is read by the clock before it.
    expect(iso('2024-10-27 02:30')).toBe('2024-10-27T00:30:00.000Z')
    expect(iso('2024-03-31 02:30')).toBe('2024-03-31T01:30:00.000Z')
    expect(iso('2024-07-15T12:00Z')).toBe('2024-07-15T12:00:00.000Z')
    expect(value({ kind: 'date', zone: 'Asia/Tokyo' }, '2024-07-15 00:30')).toBe('2024-07-15')
  })

  it.each([
    ['fr', '3 août 2024', '2024-08-03'],
    ['fr', '1er févr. 2024', '2024-02-01'],
    ['de', 'Montag, 4. März 2024', '2024-03-04'],
    ['de', '4. MÄRZ 2024', '2024-03-04'],
    ['es', '3 de marzo de 2024', '2024-03-03'],
    ['pt-BR', '3 de março de 2024', '2024-03-03'],
    ['ru', '3 марта 2024', '2024-03-03'],
    ['fr', '3 August 2024', '2024-08-03'],
    ['fi', '5. marraskuuta 2023', '2023-11-05'],
    ['fr', '10 mars 2024', '2024-03-10'],
    ['fr', '3 DECEMBRE 2023', '2023-12-03'],
    ['fr', '3 fevr. 2024', '2024-02-03'],
    ['de', '5. Febr. 2024', '2024-02-05'],
    ['th', '15 มี.ค. 2567', '2024-03-15'],
    ['th', '15 ม.ค. 2567', '2024-01-15'],
    ['ru', '3 июня 2008 г.', '2008-06-03'],
    ['uk', '3 червня 2008 р.', '2008-06-03'],
    ['hr', '3. lipnja 2008.', '2008-06-03'],
    ['hu', '2008. június 3.', '2008-06-03'],
    ['ja', '2008年6月3日', '2008-06-03'],
    ['de', '2008年 6月 3日', '2008-06-03'],
    ['ko', '2008년 6월 3일', '2008-06-03'],
  ])('knows the months of %s: %s', (locale, text, expected) => {
    expect(value({ kind: 'date', locale }, text)).toBe(expected)
  })

  it.each([
    ...['5 Marketing 2020', '10 Mayors 2024', '12 Decks 2021', '3 Junes 2020', '5 mars 2023', '10 marzo 2024', '10 octobre 2024'],
    ...['10 junio 2024', '5. marraskuuta 2023', 'Junction 5, 2020', 'Mark 4, 2019', 'Decor 10, 2021', 'Augusta 7, 2011'],
  ])('takes no word that begins like an English month for it: %s', (text) => {
    for (const kind of ['date', 'timestamp'] as const) {
      expect(value({ kind }, text)).toMatch(/is no \w+ in a form that has one meaning/)
      expect(value({ kind, locale: 'de' }, text)).toMatch(/is no \w+ in a form that has one meaning/)
    }
    const format = /^\d/.test(text) ? 'D MMM YYYY' : 'MMM D, YYYY'
    expect(value({ kind: 'date', format }, text)).toMatch(/is no date/)
  })

  it.each([
    ['fr', '10 marseille 2024'],
    ['fr', '10 maison 2024'],
    ['de', '10 Maier 2024'],
    ['es', '3 de mayores de 2024'],
    ['sv', '10 majoren 2024'],
  ])('takes no word that begins like a month of %s for it: %s', (locale, text) => {
    expect(value({ kind: 'date', locale }, text)).toMatch(/no date/)
  })

  it.each(['Vol. 3 June 2008', 'Issue 3 June 2008', 'No. 3 June 2008', 'Chapter 3 June 2008', 'Heft 3 June 2008'])(
    'does not take the number of something else for a day: %s',
    (text) => {
      expect(value({ kind: 'date' }, text)).toMatch(/no date/)
    },
  )

  it.each([
    ...['3 Sept 2024', '3 Sept. 2024', '3 Sep 2024', 'Sept. 3, 2024', 'September 3, 2024', 'Tuesday, 3 September 2024', 'Tue, Sep 3 2024'],
    ...['Posted September 3, 2024', 'Berlin, 3 September 2024', '3 SEPTEMBER 2024', 'Tues. 3 Sept 2024'],
  ])('knows English months by name and abbreviation: %s', (text) => {
    expect(value({ kind: 'date' }, text)).toBe('2024-09-03')
  })

  it('has the months of its language in its format', () => {
    expect(value({ kind: 'date', locale: 'it', format: 'D MMM YYYY' }, '3 giugno 2024')).toBe('2024-06-03')
    expect(value({ kind: 'date', locale: 'it', format: 'D MMM YYYY' }, '3 haziran 2024')).toMatch(/no date/)
  })

  it('has the English months in its format as well, which are written in more than one way', () => {
    expect(value({ kind: 'date', locale: 'en-GB', format: 'D MMM YYYY' }, '3 Sep 2024')).toBe('2024-09-03')
    expect(value({ kind: 'date', locale: 'en-US', format: 'D MMM YYYY' }, '3 Sept 2024')).toBe('2024-09-03')
    expect(value({ kind: 'date', locale: 'it', format: 'D MMM YYYY' }, '3 june 2024')).toBe('2024-06-03')
  })

  it('of an instant is the day in the zone of the extractor; a text without a zone keeps its day', () => {
    const berlin = { kind: 'date', zone: 'Europe/Berlin' } as const
    expect(value(berlin, '1700004600')).toBe('2023-11-15')
    expect(value(berlin, 1700004600000)).toBe('2023-11-15')
    expect(value(berlin, '2023-11-14T23:30:00Z')).toBe('2023-11-15')
    expect(value(berlin, '2023-11-14 23:30')).toBe('2023-11-14')
    expect(value(berlin, '2023-11-14')).toBe('2023-11-14')
    expect(value({ ...berlin, zone: 'America/New_York', format: 'YYYY-MM-DDZ' }, '2023-11-14+00:00')).toBe('2023-11-14')
    expect(value({ kind: 'date' }, '1700004600')).toBe('2023-11-14')
    expect(value({ kind: 'date' }, '2023-11-15T00:30+02:00')).toBe('2023-11-15')
  })

  it('is Gregorian: years of the Buddhist era are turned into it, other calendars are not read', () => {
    expect(value({ kind: 'date', locale: 'th' }, '15 มีนาคม 2567')).toBe('2024-03-15')
    expect(value({ kind: 'date', locale: 'th' }, '29 ก.พ. 2567')).toBe('2024-02-29')
    expect(value({ kind: 'date', locale: 'th' }, '15 มีนาคม 2024')).toBe('2024-03-15')
    expect(value({ kind: 'date', locale: 'th' }, '9999-12-31')).toBe('9999-12-31')
    expect(value({ kind: 'date', locale: 'th', format: 'D/M/YYYY' }, '15/3/2567')).toBe('2024-03-15')
    expect(value({ kind: 'date', locale: 'th-u-ca-gregory', format: 'D/M/YY' }, '15/3/24')).toBe('2024-03-15')
    expect(() => compileConverter({ kind: 'date', locale: 'th', format: 'D/M/YY' })).toThrow(/year of two digits, which in th/)
    const format = 'YYYY/M/D'
    expect(() => compileConverter({ kind: 'date', locale: 'fa', format })).toThrow(
      /calendar persian, which is not read; .* say fa-u-ca-gregory/,
    )
    expect(value({ kind: 'date', locale: 'fa-u-ca-gregory', format }, '2024/3/15')).toBe('2024-03-15')
    expect(value({ kind: 'date', locale: 'fa' }, '2024-03-15')).toBe('2024-03-15')
    expect(compileConverter({ kind: 'date', locale: 'fa' })('۱۵ تیر ۱۴۰۳', false, '')).toEqual({
      kind: 'problem',
      problem: '"۱۵ تیر ۱۴۰۳" is no date in a form that has one meaning; the calendar persian is not read',
    })
    expect(compileConverter({ kind: 'date', locale: 'fa' })('1403-04-12', false, '')).toEqual({
      kind: 'problem',
      problem: '"1403-04-12" is no date in a form that has one meaning; the calendar persian is not read',
    })
    expect(value({ kind: 'date', locale: 'fa' }, '2024-07-02')).toBe('2024-07-02')
    expect(value({ kind: 'date', locale: 'fa-u-ca-gregory' }, '1403-04-12')).toBe('1403-04-12')
    expect(value({ kind: 'date', locale: 'fa-u-ca-gregory' }, '15 مارس 2024')).toBe('2024-03-15')
  })
})
