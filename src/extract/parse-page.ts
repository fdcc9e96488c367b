import { type CheerioAPI, load } from 'cheerio'
import type { ChildNode, Document } from 'domhandler'
import { parse, parseFragment } from 'parse5'
import { adapter } from 'parse5-htmlparser2-tree-adapter'
import { MillraceError } from '../kernel/errors.ts'

/**
 * Elements that may be open at the same time. The parser looks through all of them at many tags, so its time grows with the square:
 * a page of 100,000 elements within each other would take minutes. Browsers stop at 512.
 */
const MAX_OPEN_ELEMENTS = 8_000

/**
 * One `$` for all pages of a process.
 *
 * `cheerio.load` makes a class, a function and a document per page, which keep the page's tree alive past the young generation: half
 * of its time goes to the garbage collector. Here the document stays and only its children change, so everything that hangs on it
 * (`$`, `$.root()`, `$.html()`) is that of `cheerio.load(text)` for as long as the page is open, and the tree dies young.
 */
export interface PageParser {
  /**
   * Parses a page and hands it over; when `use` returns, the page is closed and its nodes must not be kept. Not to be nested: there
   * is one document. Shape: `use` is synchronous, since a tree that is held across a turn of the event loop does not die young.
   * Errors: EXTRACT_PAGE_BROKEN for a page that is nested deeper than any page is.
   */
  withPage<T>(text: string, options: ParseOptions, use: (page: OpenPage) => T): T
}

export interface ParseOptions {
  /** fragment: the text is a piece of a page, as an answer to a script; `<tr>` at its start stays (in a document it is dropped). */
  readonly mode: 'document' | 'fragment'
  /** Lines and columns of each node, for people; twice as slow. */
  readonly locations?: boolean
}

export interface OpenPage {
  readonly $: CheerioAPI
  readonly root: Document
}

export function createPageParser(): PageParser {
  const shared: Record<ParseOptions['mode'], CheerioAPI> = { document: load(''), fragment: load('', null, false) }
  const counting = countingAdapter()

  return {
    withPage(text, { mode, locations = false }, use) {
      const $ = shared[mode]
      const root = $.root()[0] as unknown as Document
      // Scripting as a browser has it, which is also what cheerio.load does: `<noscript>` holds text.
      const options = { treeAdapter: counting.adapter, scriptingEnabled: true, sourceCodeLocationInfo: locations }
      counting.reset()
      const parsed = mode === 'document' ? parse(text, options) : parseFragment(text, options)
      adopt(root, parsed)
      try {
        return use({ $, root })
      } finally {
        adopt(root, undefined)
      }
    },
  }
}

/** The adapter of cheerio's trees, which counts what is open. `reset` before each page: one that failed has left elements open. */
function countingAdapter(): { readonly adapter: typeof adapter; reset(): void } {
  let open = 0
  return {
    adapter: {
      ...adapter,
      onItemPush() {
        open += 1
        if (open > MAX_OPEN_ELEMENTS) {
          throw new MillraceError('EXTRACT_PAGE_BROKEN', `the page is nested deeper than ${MAX_OPEN_ELEMENTS} elements`)
        }
      },
      onItemPop() {
        open -= 1
      },
    },
    reset() {
      open = 0
    },
  }
}

/** Moves the children of a parsed document under the shared one; without one, the shared one is emptied. */
function adopt(root: Document, parsed: Document | undefined): void {
  const left: ChildNode[] = root.children
  for (const child of left) if (child.parent === root) child.parent = null
  root.children = parsed?.children ?? []
  for (const child of root.children) child.parent = root
  if (parsed?.['x-mode'] === undefined) delete root['x-mode']
  else root['x-mode'] = parsed['x-mode']
}
