import { errorText } from '../../kernel/errors.ts'
import { loadOptional, missingPackages, optionalVersion } from '../optional-packages.ts'

/** What is used of a node. Each read is a call into the library, and gives a new object for the same node. */
export interface NativeNode {
  /** 1 element, 3 text, 8 comment, 9 document. */
  readonly nodeType: number
  readonly localName: string | null
  readonly namespaceURI: string | null
  readonly data: string | null
  readonly parentNode: NativeNode | null
  readonly previousSibling: NativeNode | null
  readonly firstElementChild: NativeNode | null
  readonly documentElement: NativeNode | null
  readonly childNodes: readonly NativeNode[]
  readonly innerHTML: string
  textContent: string
  querySelector(selector: string): NativeNode | null
  querySelectorAll(selector: string): readonly NativeNode[]
  getAttribute(name: string): string | null
}

/** Parses a page as a browser with scripts does. Shape: the text is well formed UTF-16; the node is a document. */
export type NativeParse = (text: string) => NativeNode

/** The native parser, or why there is none. */
export type NativeParser = { readonly ok: true; readonly parse: NativeParse } | { readonly ok: false; readonly reason: string }

export const NATIVE_PACKAGE = 'domparser-rs'

/**
 * The version that was held against the default parser, page by page. Another one is not used: its records would have to be compared
 * first (test/property/extract/native-engine.test.ts).
 */
export const NATIVE_VERSION = '0.1.1'

interface NativeModule {
  readonly DOMParser: new () => { parseFromString(text: string, type: 'text/html'): NativeNode }
}

let found: NativeParser | undefined

/** Looks for the package once per process. Errors: none; what is wrong with it is the reason. */
export function nativeParser(): NativeParser {
  found ??= load()
  return found
}

function load(): NativeParser {
  const missing = missingPackages('native')
  if (missing !== undefined) return { ok: false, reason: `it ${missing.replace(/: npm install .*/, '')}` }
  const version = optionalVersion(NATIVE_PACKAGE)
  if (version !== NATIVE_VERSION) {
    return {
      ok: false,
      reason: `${NATIVE_PACKAGE} ${version} is installed, and ${NATIVE_VERSION} is the one whose records are known to be the same`,
    }
  }
  try {
    const { DOMParser } = loadOptional('native', NATIVE_PACKAGE) as NativeModule
    const parser = new DOMParser()
    return { ok: true, parse: (text) => parser.parseFromString(text, 'text/html') }
  } catch (error) {
    // Its binary is one of eight packages, and the machine may have none of them.
    return { ok: false, reason: errorText(error) }
  }
}
