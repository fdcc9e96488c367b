import type { ChildNode, Document } from 'domhandler'
import { parseFragment } from 'parse5'
import { adapter } from 'parse5-htmlparser2-tree-adapter'
import { loadOptional } from '../optional-packages.ts'
import { innerHtml } from './node-html.ts'
import { nodeText } from './node-text.ts'

/** The text of a page without what stands around it. Shape: null for a page that has no such text. */
export interface Article {
  readonly title: string | null
  readonly byline: string | null
  readonly excerpt: string | null
  readonly site: string | null
  readonly language: string | null
  readonly published: string | null
  readonly text: string | null
  /** HTML. */
  readonly content: string | null
}

interface Parsed {
  readonly title?: string | null
  readonly byline?: string | null
  readonly excerpt?: string | null
  readonly siteName?: string | null
  readonly lang?: string | null
  readonly publishedTime?: string | null
  readonly content?: string | null
}
type Readability = new (document: unknown) => { parse(): Parsed | null }
type Linkedom = { parseHTML(html: string): { readonly document: unknown } }

const NONE: Article = { title: null, byline: null, excerpt: null, site: null, language: null, published: null, text: null, content: null }

/** Mozilla's Readability over a copy of the page, which it changes. Errors: EXTRACTOR_INVALID where the packages are not installed. */
export function readArticle(root: Document): Article {
  const { Readability } = loadOptional('article', '@mozilla/readability') as { Readability: Readability }
  const { parseHTML } = loadOptional('article', 'linkedom') as Linkedom
  // Written out by the standard, so that a simpler parser reads the tree that we have.
  const html = innerHtml(root)
  const { document } = parseHTML(root.children.some(isRoot) ? html : `<html><body>${html}</body></html>`)
  const parsed = new Readability(document).parse()
  if (parsed === null) return NONE
  const content = parsed.content ?? null
  return {
    title: parsed.title ?? null,
    byline: parsed.byline ?? null,
    excerpt: parsed.excerpt ?? null,
    site: parsed.siteName ?? null,
    language: parsed.lang ?? null,
    published: parsed.publishedTime ?? null,
    // As of an element: Readability's own joins what stands in two paragraphs.
    text: content === null ? null : nodeText(parseFragment(content, { treeAdapter: adapter })),
    content,
  }
}

/** What a page has and a fragment has not. */
function isRoot(node: ChildNode): boolean {
  return 'name' in node && node.name === 'html'
}
