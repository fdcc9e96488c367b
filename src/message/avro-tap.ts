import { createRequire } from 'node:module'

/** What the Avro library reads and writes its bytes with. */
interface Tap {
  pos: number
  readonly buf: Buffer
  writeString(text: string): void
  readLong(): number
  readBytes(): Buffer | undefined
}

/** Set on the mended methods, so that they are known again when this module is loaded twice. */
const MENDED = Symbol.for('millrace.avsc.tap')

/** Shorter ones are copied: the library packs them together, and a view would keep the whole message for their sake. */
const LEAST_VIEWED = 4_096

/**
 * Mends two methods of avsc 5.7, at the place that every type reads and writes through (keys of maps go there without passing any type).
 *
 * Half of a surrogate pair is written as the replacement character. JSON of a page or a task can hold one (`"\ud83d"`), and so can what
 * an extractor in code has cut in two; UTF-8 can not. avsc writes it as three bytes that are no UTF-8 where the text is short (and
 * as the replacement character where it is long), and readers in Python and others stop at such a message.
 *
 * Long bytes are a view into the message, not a copy: nobody changes either, the body of a page is nearly all of its message, and what is
 * copied for each page lies outside of the heap, where it makes V8 mark all of the heap twice as often.
 */
export function mendTap(): void {
  const { prototype } = (createRequire(import.meta.url)('avsc/lib/utils') as { readonly Tap: { readonly prototype: Tap } }).Tap
  const { writeString, readBytes } = prototype
  if (MENDED in writeString) return
  const mended = {
    writeString(this: Tap, text: string): void {
      writeString.call(this, text.toWellFormed())
    },
    readBytes(this: Tap): Buffer | undefined {
      const { pos } = this
      const length = this.readLong()
      if (length < LEAST_VIEWED) {
        this.pos = pos
        return readBytes.call(this)
      }
      const start = this.pos
      this.pos += length
      return this.pos > this.buf.length ? undefined : this.buf.subarray(start, this.pos)
    },
  }
  prototype.writeString = Object.assign(mended.writeString, { [MENDED]: true })
  prototype.readBytes = mended.readBytes
}
