/** An option of a type that is none, and which one: a problem stands where it is written. */
export class OptionError extends RangeError {
  override readonly name = 'OptionError'
  readonly option: 'format' | 'zone' | 'locale'

  constructor(option: OptionError['option'], message: string) {
    super(message)
    this.option = option
  }
}
