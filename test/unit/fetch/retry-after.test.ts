import { describe, expect, it } from 'vitest'
import { retryAfterMs } from '../../../src/fetch/retry-after.ts'
import { growth } from '../../support/growth.ts'

const now = Date.parse('Wed, 21 Oct 2026 07:28:00 GMT')

describe('Retry-After', () => {
  it.each([
    ['2', 2_000],
    [' 120 ', 120_000],
    ['Wed, 21 Oct 2026 07:29:00 GMT', 60_000],
    ['Wednesday, 21-Oct-26 07:29:00 GMT', 60_000],
    ['Wed Oct 21 07:29:00 2026', 60_000],
    ['Wed, 21 Oct 2026 07:29:00', 60_000],
    ['Wed, 21 Oct 2026 09:29:00 +0200', 60_000],
    [`${now / 1_000 + 90}`, 90_000],
    [`${now + 90_000}`, 90_000],
    [`${now / 1_000 - 1}`, undefined],
    [`${now / 1_000 + 86_400 * 1_000}`, 365 * 86_400_000],
    ['999999999', 365 * 86_400_000],
    ['99999999999', 365 * 86_400_000],
    ['9'.repeat(400), 365 * 86_400_000],
    ['0', undefined],
    ['-1', undefined],
    ['1.5', 1_500],
    ['120.', 120_000],
    ['0.0', undefined],
    ['.5', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['2s', undefined],
    ['', undefined],
    ['soon', undefined],
    ['2026-10-21', undefined],
    ['Wed, 41 Oct 2026 07:29:00 GMT', undefined],
    ['2, 3', 3_000],
    ['120,30', 120_000],
    [',', undefined],
    ['2, soon', undefined],
    ['-2, 3', undefined],
    ['+30', undefined],
    ['Sun, 06-Nov-94 08:49:37 GMT', undefined],
    ['Sun Nov  6 08:49:37 1994', undefined],
    ['Wed, 21 Oct 2026 07:27:00 GMT', undefined],
    ['Wed, 21 Oct 2026 02:29:00 EST', 60_000],
    ['Wed, 21 Oct 2026 00:29:00 PDT', 60_000],
    ['Wed, 21 Oct 2026 02:29:00 -0500', 60_000],
    ['Wed, 21 Oct 2026 12:59:00 +05:30', 60_000],
    ['Wed Oct 21 02:29:00 EST 2026', 60_000],
    ['Wed Oct 21 2026 09:29:00 GMT+0200 (Central European Summer Time)', 60_000],
    ['Wed Oct 21 2026 09:29:00 GMT+0200 (CEST', 60_000],
    ['21 Oct 2026 07:29:00 GMT', 60_000],
    ['21-Oct-2026 07:29:00', 60_000],
    ['2026-10-21T07:29:00Z', 60_000],
    ['2026-10-21T07:29:00.500Z', 60_500],
    ['2026-10-21T07:29:00', 60_000],
    ['2026-10-21 09:29:00+02:00', 60_000],
    // A zone that nobody knows may be the last one on earth.
    ['Wed, 21 Oct 2026 07:29:00 CEST', 60_000 + 12 * 3_600_000],
    ['Wed, 21 Oct 2026 07:29:00 +9900', 60_000 + 12 * 3_600_000],
  ])('C143: %j is %s ms', (text, ms) => {
    expect(retryAfterMs([text], now)).toBe(ms)
  })

  it('C145: that nobody would wait for is a year, never less than what the site asks for below that', () => {
    const yearMs = 365 * 86_400_000
    for (const text of ['99999999999', '9'.repeat(400), String(yearMs)]) expect(retryAfterMs([text], now)).toBe(yearMs)
    expect(retryAfterMs([String(300 * 86_400)], now)).toBe(300 * 86_400_000)
  })

  it('C143: in each form of RFC 9110, and of a C library, is told to the second', () => {
    for (let seconds = 1; seconds < 60; seconds += 1) {
      const [at, ms] = [`07:31:${String(seconds).padStart(2, '0')}`, (180 + seconds) * 1_000]
      const forms = [`Wed, 21 Oct 2026 ${at} GMT`, `Wednesday, 21-Oct-26 ${at} GMT`, `Wed Oct 21 ${at} 2026`, `Wed Oct 21 ${at} UTC 2026`]
      expect(forms.map((form) => retryAfterMs([form], now))).toEqual(forms.map(() => ms))
      expect(forms.map((form) => retryAfterMs(['Wed, 21 Oct 2026 08:00:00 GMT'], 0, form))).toEqual(
        forms.map(() => 29 * 60_000 - seconds * 1_000),
      )
    }
    expect(retryAfterMs(['Sun Nov  6 08:49:37 1994'], Date.parse('1994-11-06T08:49:00Z'))).toBe(37_000)
  })

  it('as a date counts from the clock of the site, however wrong it is', () => {
    const [date, later] = ['Tue, 21 Oct 2025 07:28:00 GMT', 'Tue, 21 Oct 2025 07:30:00 GMT']
    expect(retryAfterMs([later], now)).toBeUndefined()
    expect(retryAfterMs([later], now, date)).toBe(120_000)
    expect(retryAfterMs(['Wed, 21 Oct 2026 07:29:00 GMT'], now, 'nonsense')).toBe(60_000)
    expect(retryAfterMs(['30'], now, date)).toBe(30_000)
    expect(retryAfterMs(['Wed, 21 Oct 2026 07:29:00 GMT'], now, 'Wed, 21 Oct 2026 07:28:59 CEST')).toBe(60_000)
  })

  it('is the longest of several, and none where none can be read', () => {
    expect(retryAfterMs(['2', 'soon', '120', '30'], now)).toBe(120_000)
    expect(retryAfterMs(['soon', ''], now)).toBeUndefined()
    expect(retryAfterMs([], now)).toBeUndefined()
  })

  it.each(['(', '1:11 ', ' ', ',', '1', 'T1'])('costs no more than its length, and never throws: %j again and again', (text) => {
    expect(
      growth((count) => retryAfterMs([`Mon, ${text.repeat(count)}`, text.repeat(count)], now, `Mon, ${text.repeat(count)}`), 8_000),
    ).toBeLessThan(9)
    expect(retryAfterMs([text.repeat(250_000), '2'], now)).toBeGreaterThanOrEqual(2_000)
    expect(retryAfterMs([...Array<string>(1_200).fill(text.repeat(200)), '2'], now)).toBeGreaterThanOrEqual(2_000)
  })

  it('does not depend on where we are', () => {
    const { TZ } = process.env
    try {
      for (const zone of ['America/Los_Angeles', 'Asia/Tokyo']) {
        process.env.TZ = zone
        expect(retryAfterMs(['Wed Oct 21 07:29:00 2026'], now)).toBe(60_000)
      }
    } finally {
      if (TZ === undefined) delete process.env.TZ
      else process.env.TZ = TZ
    }
  })
})
