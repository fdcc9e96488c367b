/** Codes of ISO 4217 in use, and those that stored pages still have. Kept here: what Node.js knows changes with its version. */
const CODES: ReadonlySet<string> = new Set(
  (
    'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLF CLP CNH CNY ' +
    'COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD ' +
    'IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN ' +
    'MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP ' +
    'STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG'
  ).split(' '),
)

/** Signs that stand for one currency alone, or nearly so on the pages that use them. */
const SIGNS: Readonly<Record<string, string>> = {
  '€': 'EUR',
  '£': 'GBP',
  '₹': 'INR',
  '₽': 'RUB',
  '₺': 'TRY',
  '₩': 'KRW',
  '₪': 'ILS',
  '₫': 'VND',
  '₴': 'UAH',
  '₦': 'NGN',
  '₱': 'PHP',
  '₸': 'KZT',
  '₾': 'GEL',
  '฿': 'THB',
  円: 'JPY',
  元: 'CNY',
  zł: 'PLN',
  Kč: 'CZK',
  Ft: 'HUF',
  лв: 'BGN',
  US$: 'USD',
  C$: 'CAD',
  CA$: 'CAD',
  A$: 'AUD',
  AU$: 'AUD',
  NZ$: 'NZD',
  HK$: 'HKD',
  NT$: 'TWD',
  MX$: 'MXN',
  S$: 'SGD',
  R$: 'BRL',
}

/** Signs that several currencies have: the extractor says which one it is. */
const SHARED = ['$', '¥', 'kr', 'Kr', 'Fr.', 'lei', 'RM', 'Rp', 'Rs']

const ALTERNATIVES = [...Object.keys(SIGNS), ...SHARED, '[A-Z]{3}']
  .toSorted((a, b) => b.length - a.length)
  .map((sign) => (sign === '[A-Z]{3}' ? sign : sign.replace(/[$.]/g, '\\$&')))
  .join('|')
/** A mention that is no part of a word, with the mark that ends an abbreviation: `Rs.450`. */
const MENTION = new RegExp(`(?<![\\p{L}])(${ALTERNATIVES})(?![\\p{L}])(?:(?<=\\p{L})[.,])?`, 'gu')

export interface CurrencyMention {
  /** Undefined: a sign of several currencies. */
  readonly code: string | undefined
  /** As it is written. */
  readonly text: string
  /** The text without it; `¤` stands for it between what is before and behind it. */
  readonly rest: string
}

/**
 * The first currency that a text names, by its code or its sign; of `$5 USD`, where a sign of several is followed by its code, the
 * code. Shape: undefined where there is none.
 */
export function findCurrency(text: string): CurrencyMention | undefined {
  for (const { 0: found, 1: sign = '', index } of text.matchAll(MENTION)) {
    const end = index + found.length
    if (/^[A-Z]{3}$/.test(sign)) {
      if (CODES.has(sign)) return { code: sign, text: sign, rest: without(text, index, end) }
      continue
    }
    const after = SIGNS[sign] === undefined ? CODE_AFTER.exec(text.slice(end)) : null
    const code = after?.[1]
    if (after === null || code === undefined || !CODES.has(code)) {
      return { code: SIGNS[sign], text: sign, rest: without(text, index, end) }
    }
    const codeEnd = end + after[0].length
    return { code, text: code, rest: without(without(text, codeEnd - code.length, codeEnd), index, end) }
  }
  return undefined
}

/** One number and then a code. */
const CODE_AFTER = /^\s*[\d.,'’\s-]*\s?([A-Z]{3})(?![\p{L}])/u

/** Two numbers with a currency between them must not become one, nor a sign before it be lost: `100 € 200 €`, `-$5`. */
function without(text: string, start: number, end: number): string {
  const before = text.slice(0, start).trim()
  const after = text.slice(end).trim()
  return before === '' || after === '' ? `${before}${after}` : `${before}¤${after}`
}

/** Shape: upper case. */
export function isCurrency(code: string): boolean {
  return CODES.has(code)
}
