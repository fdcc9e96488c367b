import { MillraceError } from '../kernel/errors.ts'

/** Numbers as people write them behind flags. Errors of all: USAGE, naming the flag. */

/** Of pages, or of messages. */
export function wholeCount(text: string, option: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new MillraceError('USAGE', `${option}: ${JSON.stringify(text)} is not a whole number above 0`)
}

export function positive(text: string, option: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  throw new MillraceError('USAGE', `${option}: ${JSON.stringify(text)} is not a number above 0`)
}

/** As large as an offset may be. */
export function integer(text: string, option: string): bigint {
  if (/^-?\d{1,18}$/.test(text)) return BigInt(text)
  throw new MillraceError('USAGE', `${option}: ${JSON.stringify(text)} is no whole number`)
}

export function port(text: string, option: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value > 0 && value < 65_536) return value
  throw new MillraceError('USAGE', `${option}: ${JSON.stringify(text)} is no port`)
}

/** `PARTITION:OFFSET`, behind a flag or by itself; `hint`: where one is found. */
export function parsePlace(
  text: string,
  { option, hint = '' }: { readonly option?: string; readonly hint?: string },
): { readonly partition: number; readonly offset: bigint } {
  const [, partition, offset] = /^(\d{1,9}):(\d{1,18})$/.exec(text) ?? []
  if (partition !== undefined && offset !== undefined) return { partition: Number(partition), offset: BigInt(offset) }
  throw new MillraceError('USAGE', `${option === undefined ? '' : `${option}: `}${JSON.stringify(text)} is not PARTITION:OFFSET${hint}`)
}
