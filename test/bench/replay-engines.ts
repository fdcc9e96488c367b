import { nativeParser } from '../../src/extract/native/native-parser.ts'

/** What parses the pages, as the extract command is told. */
export interface Engine {
  readonly name: string
  /** `path=value` for the command. */
  readonly sets: readonly string[]
  readonly isNative: boolean
}

/** Those that are here to be measured. */
export function engines(): readonly Engine[] {
  const parse5 = { name: 'parse5', sets: ['extract.parser=parse5'], isNative: false }
  return nativeParser().ok ? [parse5, { name: 'native', sets: ['extract.parser=native'], isNative: true }] : [parse5]
}
