import { createRequire } from 'node:module'

/** What the Avro library writes its bytes with. */
interface Tap {
  writeString(text: string): void
}

/** Set on the corrected method, so that it is known again when this module is loaded twice. */
const CORRECTED = Symbol.for('millrace.avsc.text')

/**
 * Half of a surrogate pair is written as the replacement character. JSON of a page or a task can hold one (`"\ud83d"`), and so can what
 * an extractor in code has cut in two; UTF-8 can not. avsc 5.7 writes it as three bytes that are no UTF-8 where the text is short (and
 * as the replacement character where it is long), and readers in Python and others stop at such a message. Corrected where the
 * library writes text, since keys of maps go there without passing any type.
 */
export function correctText(): void {
  const { prototype } = (createRequire(import.meta.url)('avsc/lib/utils') as { readonly Tap: { readonly prototype: Tap } }).Tap
  if (CORRECTED in prototype.writeString) return
  const { writeString } = prototype
  const corrected = function (this: Tap, text: string): void {
    writeString.call(this, text.toWellFormed())
  }
  prototype.writeString = Object.assign(corrected, { [CORRECTED]: true })
}
