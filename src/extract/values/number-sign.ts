/**
 * What a dash before a number says. A minus sign has one meaning; a hyphen is a minus where it is written to its number; and pages begin
 * the items of lists, and part words, with the same hyphen and a space (`- 8:57 pm`, `tips - $178,000`).
 */

/** Behind it a dash is no part of a word. */
const START = '(?:^|[\\s(:\\[]|\\p{Sc})'
/** A currency between the dash and its number; `¤` stands for one that was found. */
const CURRENCY = '(?:(?:[A-Z]{0,3}\\p{Sc}|[A-Z]{3})\\s?)?'
/** The minus sign, and the hyphen that nobody types: where no line may break is no list. */
const MINUS = new RegExp(`${START}(?:[−‑]\\s*|-)${CURRENCY}$`, 'u')
/** In print a dash of this length is a minus, too. */
const DASH = new RegExp(`${START}–${CURRENCY}$`, 'u')
/** With nothing before it, or what says that a number comes. */
const FIRST = new RegExp(`(?:^|[(:\\[]|\\p{Sc})\\s*[-–]\\s+${CURRENCY}$`, 'u')
/** The whole part of `-,99 €`, in the languages that have a comma there. */
const NO_WHOLE = /(?<!\p{Nd})[-–—]{1,2}(?=,\p{Nd}{2}(?!\p{Nd}))/gu

/** Sign of the number behind a text. A price behind a dash and a space may be less than nothing, other numbers are items of a list. */
export function signBefore(before: string, ofMoney: boolean): 'minus' | 'none' | 'unclear' {
  if (MINUS.test(before)) return 'minus'
  return DASH.test(before) || (ofMoney && FIRST.test(before)) ? 'unclear' : 'none'
}

/** `-,99` is `0,99`: the dash stands for what is not there. */
export function withWholePart(text: string): string {
  return text.replace(NO_WHOLE, '0')
}
