import type { PageFacts } from '../language/field-scope.ts'
import { isJsonLdType, resolveBase } from '../page-view.ts'
import { JsonGraph } from '../sources/json-node.ts'
import { type JsonLdNote, parseJsonLd } from '../sources/jsonld.ts'
import { type MetaEntry, metaEntriesOf } from '../sources/meta.ts'
import type { NativeNode, NativeParse } from './native-parser.ts'
import { textFindings, treeDifference } from './page-guard.ts'

const HTML = 'http://www.w3.org/1999/xhtml'

/** A page in the tree of the native parser. It keeps the document: the nodes above an element go with it. */
export class NativePage implements PageFacts {
  readonly root: NativeNode
  /** Final URL of the page. */
  readonly url: string
  readonly charset: string | null
  #base: string | undefined
  #meta: readonly MetaEntry[] | undefined
  readonly #jsonLdGraphs = new Map<NativeNode, JsonGraph>()
  readonly #jsonLdNotes = new Map<NativeNode, readonly JsonLdNote[]>()

  private constructor(root: NativeNode, url: string, charset: string | null) {
    this.root = root
    this.url = url
    this.charset = charset
  }

  /** Shape: undefined where the default parser may read the page differently. To be closed. */
  static open(parse: NativeParse, text: string, url: string, charset: string | null = null): NativePage | undefined {
    const findings = textFindings(text)
    if (typeof findings === 'string') return undefined
    const page = new NativePage(parse(text), url, charset)
    if (treeDifference(page.root, findings) === undefined) return page
    page.close()
    return undefined
  }

  get base(): string {
    const base = this.root.querySelectorAll('base[href]').find(({ namespaceURI }) => namespaceURI === HTML)
    this.#base ??= resolveBase(base?.getAttribute('href') ?? undefined, this.url)
    return this.#base
  }

  get meta(): readonly MetaEntry[] {
    this.#meta ??= this.root
      .querySelectorAll('meta[content]')
      .flatMap((element) => metaEntriesOf((name) => element.getAttribute(name) ?? undefined))
    return this.#meta
  }

  /** As `PageView` has it. Shape: asked with one object for each element. */
  jsonLdIn(element: NativeNode): JsonGraph {
    const known = this.#jsonLdGraphs.get(element)
    if (known !== undefined) return known
    const texts = jsonLdTexts(element)
    const graph = texts.length === 0 && element !== this.root ? this.jsonLdIn(this.root) : this.#readJsonLd(element, texts)
    this.#jsonLdGraphs.set(element, graph)
    return graph
  }

  #readJsonLd(element: NativeNode, texts: readonly string[]): JsonGraph {
    const { nodes, notes } = parseJsonLd(texts)
    this.#jsonLdNotes.set(element, notes)
    return new JsonGraph(nodes)
  }

  /** What was wrong with the JSON-LD that was read: that of the page holds that of its elements. */
  get jsonLdNotes(): readonly JsonLdNote[] {
    return this.#jsonLdNotes.get(this.root) ?? [...this.#jsonLdNotes.values()].flat()
  }

  /** Frees the tree: left to itself, it would stay until its few small objects here are collected. */
  close(): void {
    this.root.textContent = ''
  }
}

function jsonLdTexts(element: NativeNode): string[] {
  const scripts = element.querySelectorAll('script[type]')
  return scripts.filter((script) => isJsonLdType(script.getAttribute('type') ?? '')).map(({ textContent }) => textContent)
}
