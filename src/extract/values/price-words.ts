/**
 * Which words may stand beside a price, and what each says of the numbers around it. Exact words, since a stem that means a price is also
 * how names begin (`Prisma`, `Centrum`, `Costa`); of compounds their ends, where no name ends so. Pure. All words are compared in small
 * letters.
 */

/** They say that a price comes: in languages whose thousands are grouped by spaces, and those that stand on pages of these. */
const LABELS = setOf(
  // English, German, Dutch
  'from only now just price prices was sale total rrp msrp cost costs sum subtotal amount offer deal vat net gross discount',
  'ab nur preis preise statt uvp von jetzt gesamt ca circa um betrag summe angebot kosten rabatt brutto netto ust mwst',
  'vanaf nu voor prijs prijzen slechts totaal totale bedrag korting aanbieding btw',
  // French, Spanish, Portuguese, Italian
  'prix dès à seulement soit promo ttc ht env environ montant offre coût tva',
  'desde precio precios por sólo solo importe oferta ofertas coste costo descuento neto bruto iva pvp',
  'preço preços apenas só custo prezzo prezzi costo offerta offerte importo',
  // Swedish, Norwegian, Danish, Finnish
  'från fra pris priser priset prisen nå kun endast bara ord ordinarie före förr tidigare rek totalt summa belopp beløb erbjudande tilbud kostar koster kostnad kostnaden moms mva',
  'alkaen alk hinta hinnat nyt vain norm ovh tarjous yhteensä alv',
  // Czech, Slovak, Polish, Croatian, Hungarian
  'od cena ceny cenou cenie cenu za jen pouze celkem celkom spolu už již sleva akce dph iba len zľava akcia tylko już razem kwota suma koszt promocja rabat cijena akcija popust pdv',
  'ár ára áron csak akár már akció bruttó nettó összesen',
  // Romanian and the Baltic languages
  'preț preţ alates hind no nuo kaina tik tikai',
  // Russian, Ukrainian
  'от цена цены цене ценой за всего итого только стоимость стоимости сумма скидка скидки скидкой акция ціна ціни від лише само вартість сума знижка',
)
/** Labels of two words, of which the second alone is none. */
const LABELS_OF_TWO = ['partir de', 'partir da', 'lieu de', 'prix de'] as const
/** Ends of compounds: `Kampanjpris`, `Gesamtbetrag`, `Tarjoushinta`. */
const LABEL_ENDS = [
  'preis',
  'preise',
  'pris',
  'priset',
  'prisen',
  'prijs',
  'betrag',
  'angebot',
  'summe',
  'summa',
  'belopp',
  'beløb',
  'hinta',
  'цена',
] as const
/** A compound has a word before its end. */
const COMPOUND_LENGTH = 2

/** In small letters they have a number behind them; all others of their kind are words of a sentence. Names are written large. */
const NUMBERED = setOf(
  'taille talla tamanho taglia maat storlek størrelse koko rozmiar velikost veľkosť méret размер розмір size',
  'model models modell modelo modelle modello modèle malli модель модели type typ тип version версия no nor nr № iphone ipad de di of av af',
  'art artikel article articolo artículo artigo artnr арт артикул',
)

/** What a number counts or measures, right behind it. */
const COUNTED = setOf(
  '% ″ " kg mg µg g ml cl dl l km cm mm µm m kb mb gb tb b kw w v mah ah zoll inch x',
  'pcs piece pieces stück blatt sheet sheets punkte point points item items left available artikel',
  'tab tabs tablet tablets tablett tabletten tabletter tablety tabletek kaps kapsel kapseln kapslar kapsler kapslí kapsułek caps capsule capsules cápsulas capsulas',
  'review reviews rating ratings vote votes star stars avis votos bewertung bewertungen sterne stern omdöme omdömen anmeldelse anmeldelser arvostelu arvostelua',
  'reseña reseñas recensie recensies recensione recensioni recension recensioner recenze recenzí recenzie recenzia recenzii recenzja recenzje recenzji',
  'opinión opiniones opinia opinie opinii opiniões отзыв отзыва отзывов отзывы оценка оценки оценок',
  'product products produkt produkte produkter produkty produktů produit produits producto productos produto produtos',
  'г кг мл л шт',
)
/** Between two numbers they make one name: `3 in 1`. In capitals they are units: `12 V`. */
const JOINING = setOf('in en em i w v в')

/** From one number to another. */
const RANGE_WORDS = 'bis|to|till?|tot|à|a|do|до|hasta'
export const RANGE = new RegExp(`^(?:[.,][-–—]{1,2})?(?:\\s*(?:[-–—−‑~〜～…]|\\.{2,3})\\s*|\\s+(?:${RANGE_WORDS})\\s+)$`, 'iu')
/** One number or another: `between 5 and 10 €`, `5/10 €`. */
const EITHER_WORDS = 'and|or|und|oder|et|ou|y|o|e|og|och|eller|en|of|ja|tai|nebo|i|lub|și|sau|és|vagy|и|или|і|або'
export const EITHER = new RegExp(`^(?:\\s*[/&]\\s*|\\s+(?:${EITHER_WORDS})\\s+)$`, 'iu')

/** What stands behind a price, so that two digits before it may be its cents. */
const CLOSING_WORDS = 'TTC|HT|inkl?|incl?|exkl?|excl?|zzgl|VAT|MwSt|moms|netto|brutto|each|only|per|par|pro|pm|m\\.?n'
const END = `(?=\\s*(?:$|[*/()|]|(?:${CLOSING_WORDS})(?!\\p{L})))`
const END_OF_PRICE = new RegExp(`^${END}`, 'iu')
const CENTS = new RegExp(`^\\s?\\p{Nd}{2}(?!\\p{Nd})${END}`, 'iu')
const CODE = /^\s?[A-Z]{3}(?!\p{L})/u

/** The last word before a number; `Preis:` is none of it, since a label says what comes. */
const WORD_BEFORE = new RegExp(
  `(?<![\\p{L}\\p{M}])((?:${LABELS_OF_TWO.map((label) => label.replace(/\S+$/, '')).join('|')})?[\\p{L}\\p{M}][\\p{L}\\p{M}'’]*)\\.?\\s+$`,
  'iu',
)
const NUMBER_AND_WORD = /\p{Nd}\s?([\p{L}\p{M}″"%]+)\.?\s+$/u
const COUNTED_BEHIND = /^\s?(%|″|"|[\p{L}\p{M}]+)/u
/** A text may be as long as it likes. */
const WORD_LENGTH = 60

/**
 * Whether the word right before a number may have it as its own: a name has (`PlayStation 5`), a label or what counts the number before has
 * not.
 */
export function isNamedBefore(earlier: string): boolean {
  const word = wordBefore(earlier)
  return word !== undefined && !isLabel(word)
}

/**
 * As {@link isNamedBefore}, of the first digits of a number that spaces may group: a word of a sentence has none, unless it is one that is
 * known to.
 */
export function mayOwnDigits(earlier: string): boolean {
  const counted = NUMBER_AND_WORD.exec(earlier.slice(-WORD_LENGTH))?.[1]
  if (counted !== undefined && JOINING.has(counted)) return true
  const word = wordBefore(earlier)
  if (word === undefined || isLabel(word)) return false
  return word !== word.toLowerCase() || NUMBERED.has(word)
}

/** Whether the number before this is counted or measured by it: `500 ml`, `12 Bewertungen`. */
export function isCounted(behind: string): boolean {
  return COUNTED.has(COUNTED_BEHIND.exec(behind)?.[1]?.toLowerCase() ?? '')
}

/** Whether nothing more of a price is behind it: the end, a mark, or a word that closes it. */
export function closesPrice(behind: string): boolean {
  return END_OF_PRICE.test(behind)
}

/** As {@link closesPrice}, or the code of a currency. */
export function endsPrice(behind: string): boolean {
  return closesPrice(behind) || startsWithCode(behind)
}

export function startsWithCode(behind: string): boolean {
  return CODE.test(behind)
}

/** Two digits apart from a price that may be its cents. */
export function beginsWithCents(behind: string): boolean {
  return CENTS.test(behind)
}

/** Shape: undefined where there is none, or it counts the number before it: `12 Stück`, `64GB`. */
function wordBefore(earlier: string): string | undefined {
  const near = earlier.slice(-WORD_LENGTH)
  const counted = NUMBER_AND_WORD.exec(near)?.[1]
  if (counted !== undefined && COUNTED.has(counted.toLowerCase())) return undefined
  return WORD_BEFORE.exec(near)?.[1]
}

function isLabel(word: string): boolean {
  const small = word.toLowerCase()
  if (LABELS.has(small) || LABELS_OF_TWO.some((label) => label === small)) return true
  return LABEL_ENDS.some((end) => small.endsWith(end) && small.length >= end.length + COMPOUND_LENGTH)
}

function setOf(...lines: readonly string[]): ReadonlySet<string> {
  return new Set(lines.flatMap((line) => line.split(' ')))
}
