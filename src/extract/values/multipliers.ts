/**
 * What makes a number more than its digits: `3万5000` is 35,000, `1.5 Mio.` is not 1.5. The units that East Asia writes into its numbers are
 * digits like others and are read (`eastAsianNumber`). Words and letters (`12k`, `2 crore`) are mostly rounded, and several mean another
 * power in another language (`billion`, `mil`): such a number is told, and is none (`isMultiplied`).
 */

/** Powers of ten. 兆 and 조 are not here: one is mega in Chinese, the other a word for an article or a set. */
const EAST_ASIAN: Readonly<Record<string, number>> = { 百: 2, 백: 2, 千: 3, 천: 3, 万: 4, 萬: 4, 만: 4, 億: 8, 亿: 8, 억: 8 }
/** `千`, `百万`, `億`; not the 千 of kilogram and its like. */
export const EAST_ASIAN_UNIT = '(?:[百千백천]?[万萬만億亿억]|[百백천]|千(?![克米瓦卡赫焦帕伏]))'
/** Signs of money that are written to a number, whatever comes next: `5000円から`. */
const EAST_ASIAN_MONEY = '[円元圆圓원]'
/** One that stands apart from its number may begin a word: `3,000 万年筆`. */
const UNIT_APART = `\\s(${EAST_ASIAN_UNIT})(?=${EAST_ASIAN_MONEY}|\\P{L}|$)`
const TERM = new RegExp(`(\\d+(?:,\\d{3,4})*)(?:\\.(\\d+))?(?:(${EAST_ASIAN_UNIT})|${UNIT_APART})`, 'uy')
/** What is left below the last unit: `3万5,000`. Apart from it only with its money: `3만 5,000원`, but `3万 200件` are two numbers. */
const REST = new RegExp(`(\\d+(?:,\\d{3})*)(?![\\d.,])|\\s(\\d+(?:,\\d{3})*)(?=\\s?(?:${EAST_ASIAN_MONEY}|¤|\\p{Sc}|$))`, 'uy')
const SPACE = /\s?/uy
const NUMERAL_BEHIND = /^\s?[\d.,]*[〇零一二三四五六七八九十百千万億兆两兩数數조兆]/u

export interface EastAsianNumber {
  readonly whole: string
  readonly fraction: string
  /** Places that the point moves to the right. */
  readonly power: number
}

/**
 * The number with units of East Asia that begins there: `3万5000`, `2億3,000万`, `1.5万`, `3만 5천`. Shape: `none` where the number there has
 * no such unit, `unclear` where it has several readings: units that do not descend, a last digit alone (`3万5` is said for 35,000), another
 * numeral behind.
 */
export function eastAsianNumber(text: string, start: number): EastAsianNumber | 'none' | 'unclear' {
  const terms: EastAsianNumber[] = []
  let at = start
  for (;;) {
    const match = matchAt(TERM, text, at)
    if (match === undefined) break
    const [found, whole = '', fraction = '', glued, apart] = match
    const unit = glued ?? apart ?? ''
    terms.push({ whole: whole.replaceAll(',', ''), fraction, power: [...unit].reduce((sum, sign) => sum + (EAST_ASIAN[sign] ?? 0), 0) })
    at += found.length
    const space = matchAt(SPACE, text, at)?.[0] ?? ''
    if (matchAt(TERM, text, at + space.length) === undefined) break
    at += space.length
  }
  const [first] = terms
  if (first === undefined) return 'none'
  const rest = matchAt(REST, text, at)
  if (rest !== undefined) {
    const whole = (rest[1] ?? rest[2] ?? '').replaceAll(',', '')
    if (whole.length === 1) return 'unclear'
    terms.push({ whole, fraction: '', power: 0 })
    at += rest[0].length
  }
  const behind = text.slice(at)
  if (/^[\d.,]*\d/.test(behind) || NUMERAL_BEHIND.test(behind)) return 'unclear'
  return terms.length === 1 ? first : sumOf(terms)
}

/** Each term below the unit of the one before. */
function sumOf(terms: readonly EastAsianNumber[]): EastAsianNumber | 'unclear' {
  let sum = 0n
  let most: bigint | undefined
  for (const { whole, fraction, power } of terms) {
    // Longer than any number that means something; BigInt should not be asked to make it.
    if (fraction !== '' || whole.length > 20) return 'unclear'
    const value = BigInt(whole) * 10n ** BigInt(power)
    if (most !== undefined && value >= most) return 'unclear'
    sum += value
    most = 10n ** BigInt(power)
  }
  return { whole: String(sum), fraction: '', power: 0 }
}

function matchAt(sticky: RegExp, text: string, at: number): RegExpExecArray | undefined {
  sticky.lastIndex = at
  return sticky.exec(text) ?? undefined
}

/** Words that mean nothing else, unless they begin a name (`€ 99 Mio MiVue`). */
export const MULTIPLIER_WORDS: readonly string[] = [
  'thousand thousands million millions billion billions trillion trillions lakh lakhs lac lacs crore crores',
  'mio mln mrd mld tsd tys tis millionen milliarde milliarden milliard milliards tausend billionen',
  'millón millones millon milhão milhões milhao milhoes bilhão bilhões milione milioni miliardo miliardi',
  'miljoen miljard duizend miljon miljoner miljarder millioner milliarder tusen tusind milj miljoonaa',
  'milion miliony milionów milionů milionu miliard miliardy miliardów miliardů tysiąc tysiące tysięcy tisíc tisíce milyon milyar',
  'тыс тысяч тысяча тысячи млн млрд миллион миллиона миллионов миллиард миллиарда миллиардов тис мільйон мільйонів млрд хил',
  'millió milliárd nghìn ngàn triệu tỷ tỉ ribu juta miliar triliun χιλιάδες χιλ εκατ εκατομμύρια',
  'लाख करोड़ करोड़ हज़ार हजार লাখ লক্ষ কোটি হাজার ألف آلاف مليون ملايين مليار هزار میلیون میلیارد لاکھ کروڑ אלף מיליון מיליארד',
].flatMap((line) => line.split(' '))

const MONEY_WORD =
  '(?:[Ee]uros?|[Dd]ollars?|[Dd]ólares|[Pp]esos|[Rr]eais|[Ss]oles|[Kk]r|[Kk]roner|[Kk]ronor|[Ff]ranken|руб|TL|đ|đồng|[Ll]ei|[Ff]t|[Rr]upees?)'
/** As the number of an end of a range is written. */
const NUMBER = "\\p{Nd}+(?:(?:[.,'’٬٫]| (?=\\p{Nd}{3}(?!\\p{Nd})))\\p{Nd}+)*"
const DASH = '[-–—−~〜～]'
/** The multiplier of a range stands at its end: `10 bis 20 Mio.`, `3〜5万円`. */
const TO = `(?:\\s*(?:${DASH}|bis|to|till?|tot|à|a|do|до|hasta|đến)\\s*${NUMBER})?`
const TO_GLUED = `(?:${DASH}${NUMBER})?`
const ENDS = (words: string, ends: string): string => `\\s?(?:${words})(?=\\.?\\s*(?:$|[¤\\p{Sc}]|${ends}))`

const OF_NUMBERS = [
  `${TO}[ \\u00a0]?(?:${inCases(MULTIPLIER_WORDS)})(?![\\p{L}\\p{M}\\p{N}'’-]|\\s+(?!${MONEY_WORD}|[A-Z]{3}(?!\\p{L}))\\p{Lu})`,
  // Short ones that are units, or words of other things, too: `3bn`, `50 mil reais`, `5 mila euro`.
  `${TO}${ENDS('mil|mill|Mill(?=\\.)|mila|bn|Bn|Mn|MM', MONEY_WORD)}`,
  // Letters that are written to the number; a small `m` is one of length, too.
  `${TO_GLUED}[kKMB](?![\\p{L}\\p{N}/²³]|\\.\\s?\\p{L})`,
  // Or to the sign: `5 M€`.
  `${TO_GLUED}\\s?(?:[kKM]|Mds?|Mrd)\\p{Sc}`,
  `${TO}(?:${EAST_ASIAN_UNIT}|${UNIT_APART})`,
  // Between these and the next word is no space, and no end of a word.
  `${TO}\\s?(?:ล้าน|แสน|หมื่น|พัน(?!ธุ์))`,
  `${TO}(?:兆|\\s?조(?=\\s?원))`,
  // The next number begins within this one: `5½`, `1_000`.
  '[¼-¾⅐-⅞]|\\s[¼-¾⅐-⅞]|_\\p{Nd}',
]
const OF_MONEY = [
  `${TO_GLUED}[mT](?![\\p{L}\\p{N}/²³]|\\.\\s?\\p{L})`,
  `${TO}${ENDS('bin|rb|jt|tr(?:\\p{Nd})?|ezer|[Cc]rs?|cr', MONEY_WORD)}`,
]
const MULTIPLIED_NUMBER = new RegExp(`^(?:${OF_NUMBERS.join('|')})`, 'u')
const MULTIPLIED_AMOUNT = new RegExp(`^(?:${[...OF_NUMBERS, ...OF_MONEY].join('|')})`, 'u')

/**
 * Whether what stands behind a number says for certain that it is more than its digits. Behind a price anything may stand, most of all
 * names and units, and no price is given up for these: `$ 500.00 M.N.`, `€ 49 m²`, `$24.99 Md`, `€ 99 Mio MiVue`.
 */
export function isMultiplied(behind: string, ofMoney: boolean): boolean {
  return (ofMoney ? MULTIPLIED_AMOUNT : MULTIPLIED_NUMBER).test(behind)
}

/** Alternatives of a pattern: each word small, with a capital, and in capitals. */
function inCases(words: readonly string[]): string {
  return [...new Set(words.flatMap((word) => [word, word.charAt(0).toUpperCase() + word.slice(1), word.toUpperCase()]))].join('|')
}
