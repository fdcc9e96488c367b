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
/** A mention that is no part of a word. */
const MENTION = new RegExp(`(?<![\\p{L}])(?:${ALTERNATIVES})(?![\\p{L}])`, 'gu')

export interface CurrencyMention {
  /** Undefined: a sign of several currencies. */
  readonly code: string | undefined
  /** As it is written. */
  readonly text: string
  /** The text without it. */
  readonly rest: string
}

/**
 * The first currency that a text names, by its code or its sign; of `$5 USD`, where a sign of several is followed by its code, the
 * code. Shape: undefined where there is none.
 */
export function findCurrency(text: string): CurrencyMention | undefined {
  for (const { 0: found, index } of text.matchAll(MENTION)) {
    if (/^[A-Z]{3}$/.test(found)) {
      if (CODES.has(found)) return { code: found, text: found, rest: without(text, index, found) }
      continue
    }
    const rest = without(text, index, found)
    const after = SIGNS[found] === undefined ? CODE_AFTER.exec(text.slice(index + found.length)) : null
    const code = after?.[1]
    return code !== undefined && CODES.has(code)
      ? { code, text: code, rest: rest.replace(code, '') }
      : { code: SIGNS[found], text: found, rest }
  }
  return undefined
}

/** One number and then a code. */
const CODE_AFTER = /^\s*[\d.,'’\s-]*\s?([A-Z]{3})(?![\p{L}])/u

function without(text: string, index: number, mention: string): string {
  return `${text.slice(0, index)} ${text.slice(index + mention.length)}`.trim()
}

/** Shape: upper case. */
export function isCurrency(code: string): boolean {
  return CODES.has(code)
}
