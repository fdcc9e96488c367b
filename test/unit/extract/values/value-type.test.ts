import { describe, expect, it } from 'vitest'
import { compileConverter, type RawValue, type ValueType } from '../../../../src/extract/values/value-type.ts'

const convert = (type: ValueType, raw: RawValue, machine = false): unknown => {
  const converted = compileConverter(type)(raw, machine, 'http://a.example.test/dir/page')
  return converted.kind === 'value' ? converted.value : converted.kind
}
const decimal = (raw: RawValue, machine = false): unknown => convert({ kind: 'decimal', scale: 2 }, raw, machine)

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

  it('takes a mark before exactly three digits for thousands, unless the scale has room for them', () => {
    expect(decimal('12.345')).toBe('12345.00')
    expect(convert({ kind: 'decimal', scale: 3 }, '12.345')).toBe('12.345')
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

describe('a boolean', () => {
  it('knows the words that are meant for it and no others', () => {
    expect(['yes', 'ON', '1', 'true', true].map((raw) => convert({ kind: 'boolean' }, raw))).toEqual([true, true, true, true, true])
    expect(['no', 'Off', '0', 'false', false].map((raw) => convert({ kind: 'boolean' }, raw))).toEqual([false, false, false, false, false])
    expect(convert({ kind: 'boolean' }, 'maybe')).toBe('problem')
    expect(convert({ kind: 'boolean' }, ' ')).toBe('empty')
  })
})

describe('a text', () => {
  it('can be written as UTF-8 and read back the same', () => {
    expect(convert({ kind: 'string' }, 'a\ud800b \ud83d\ude00')).toBe('a\ufffdb \ud83d\ude00')
    expect(convert({ kind: 'html' }, '\udc00')).toBe('\ufffd')
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
})
