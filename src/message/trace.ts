import { randomBytes } from '../kernel/random-bytes.ts'

/** W3C Trace Context: one trace id from the task to its records, a span id per message. Source: w3.org/TR/trace-context, version 00. */
export interface TraceParent {
  /** 32 hex characters, not all zero. */
  readonly traceId: string
  /** 16 hex characters, not all zero. */
  readonly spanId: string
  readonly sampled: boolean
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const TRACE_ID = /^[0-9a-f]{32}$/

/** Shape: text of a `traceparent` header -> undefined where it is not valid; later versions are read by the fields of version 00. */
export function parseTraceParent(text: string | undefined): TraceParent | undefined {
  const match = FORM.exec(text ?? '')
  if (match === null) return undefined
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = match
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  if (!isTraceId(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** A `traceparent` for one message of the trace, with a span id of its own. */
export function makeTraceParent(traceId: string, sampled = true, random: (size: number) => Uint8Array = randomBytes): string {
  return `00-${traceId}-${nonZeroHex(8, random)}-${sampled ? '01' : '00'}`
}

export function newTraceId(random: (size: number) => Uint8Array = randomBytes): string {
  return nonZeroHex(16, random)
}

export function isTraceId(text: string): boolean {
  return TRACE_ID.test(text) && !/^0+$/.test(text)
}

function nonZeroHex(size: number, random: (size: number) => Uint8Array): string {
  const hex = Buffer.from(random(size)).toString('hex')
  return /^0+$/.test(hex) ? `${hex.slice(0, -1)}1` : hex
}
