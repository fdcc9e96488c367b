import { countText } from './count-text.ts'

/** Characters of a text. */
const SHOWN_TEXT = 60

/** A value of any kind in a message for people: short, and never an error of its own. */
export function shownValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > SHOWN_TEXT ? `${value.slice(0, SHOWN_TEXT)}…` : value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (value === null || typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return `a list of ${value.length}`
  return Buffer.isBuffer(value) ? `a Buffer of ${countText(value.length, 'byte')}` : value instanceof Date ? 'a Date' : 'an object'
}
