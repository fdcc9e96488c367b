/** What a source found, before it has the type of its field. */
export type RawValue = PlainValue | SeenText
export type PlainValue = RawScalar | RawMoney
export type RawScalar = string | number | boolean

/** An amount and a currency that a page says apart, and not yet read. As text, for `match` and transforms, it is both. */
export class RawMoney {
  readonly amount: RawScalar
  readonly currency: string

  constructor(amount: RawScalar, currency: string) {
    this.amount = amount
    this.currency = currency
  }

  toString(): string {
    return `${this.amount} ${this.currency}`
  }
}

/** What people read in an element, of a source whose other values are written by programs. */
export class SeenText {
  readonly value: PlainValue

  constructor(value: PlainValue) {
    this.value = value
  }

  toString(): string {
    return String(this.value)
  }
}

/** A text that was made of one value, or of several: people read it where they read any of those. */
export function madeOf(text: string, ...values: readonly RawValue[]): RawValue {
  return values.some((value) => value instanceof SeenText) ? new SeenText(text) : text
}
