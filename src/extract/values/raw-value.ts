/** What a source found, before it has the type of its field. */
export type RawValue = RawScalar | RawMoney
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
