/** What parses the pages, as the extract command is told. */
export interface Engine {
  readonly name: string
  /** `path=value` for the command. */
  readonly sets: readonly string[]
  readonly isNative: boolean
}

/** Those that are here to be measured. */
export function engines(): readonly Engine[] {
  return [{ name: 'parse5', sets: [], isNative: false }]
}
