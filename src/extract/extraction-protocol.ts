import type { ErrorContext } from '../kernel/errors.ts'
import type { CodeDescription, CodeSource, ExtractorSource } from './extractor-source.ts'
import type { PageJob, RunResult } from './page-runner.ts'
import type { JsonLdFaults } from './sources/jsonld.ts'

/** What the stage says to an extraction process. `describe` or `load` comes first and once. */
export type ToProcess =
  | { readonly kind: 'describe'; readonly source: CodeSource }
  | {
      readonly kind: 'load'
      readonly sources: readonly ExtractorSource[]
      readonly extraBytes: number
      /** It may use the native parser, if it has one. */
      readonly native: boolean
    }
  | {
      readonly kind: 'run'
      /** Its page has an empty body: that comes over PAGE_BODY_FD, which nothing serializes and copies. */
      readonly job: PageJob
      readonly bodyBytes: number
    }

/** What it answers. After `run`: `begun`, one `result` per extractor as each is done, then `done` with the last of them. */
export type FromProcess =
  /** To `describe`: the module is evaluated from here on. */
  | { readonly kind: 'loading' }
  | { readonly kind: 'described'; readonly description: CodeDescription }
  /** native: the native parser reads for it what it is known to read alike. */
  | { readonly kind: 'ready'; readonly native: boolean }
  /** It can't do what it was told first; the message is for the operator. */
  | { readonly kind: 'unusable'; readonly message: string; readonly context: ErrorContext }
  /** It has the page: what ends the process from here on may be the page's fault. */
  | { readonly kind: 'begun' }
  | { readonly kind: 'result'; readonly result: RunResult }
  /** Of a page whose JSON-LD was read, and is none in places. */
  | { readonly kind: 'json-ld'; readonly faults: JsonLdFaults }
  | { readonly kind: 'done'; readonly last: RunResult | undefined }

/** Ends the process when it uses more memory than it may; nobody else sends it. */
export const MEMORY_SIGNAL = 'SIGUSR2'

/** File descriptor of an extraction process from which it reads the bodies of its pages, one after the other and with nothing between. */
export const PAGE_BODY_FD = 4
