import type { MappedCode } from './code/bundle-map.ts'
import type { MatchDefinition } from './language/definition.ts'

/** An extractor as it is sent to the process that runs it: text alone, so that a file changed meanwhile changes nothing. */
export type ExtractorSource = { readonly kind: 'declarative'; readonly file: string; readonly text: string } | CodeSource

/** Its code is one CommonJS text with everything it imports in it, but for Node's own modules. */
export type CodeSource = MappedCode & { readonly kind: 'code' }

/** What a code extractor says of itself. */
export interface CodeDescription {
  readonly name: string
  readonly version: number
  readonly description: string | undefined
  readonly topic: string | undefined
  readonly match: MatchDefinition
  /** As JSON text. */
  readonly schema: string
}
