import type { Document, Element } from 'domhandler'
import { compileSelector, type Scope, type Selector } from './language/selector.ts'
import { type Article, readArticle } from './sources/article.ts'
import { JsonGraph, type JsonNode } from './sources/json-node.ts'
import { type JsonLd, type JsonLdNote, parseJsonLd } from './sources/jsonld.ts'
import { type MetaEntry, metaElements, readMeta } from './sources/meta.ts'
import { elementsById, readMicrodata } from './sources/microdata.ts'
import { rawText } from './sources/node-text.ts'
import { readRdfa } from './sources/rdfa.ts'

/** What all extractors of a page read, each part made when it is first asked for and then shared. Never changed by those who read it. */
export class PageView {
  readonly root: Document
  /** Final URL of the page. */
  readonly url: string
  readonly charset: string | null
  readonly #selectors: PageSelectors
  #base: string | undefined
  #meta: readonly MetaEntry[] | undefined
  #metaElements: readonly Element[] | undefined
  #jsonLd: JsonLd | undefined
  #jsonLdNotes: readonly JsonLdNote[] = []
  #jsonLdScriptList: readonly Element[] | undefined
  #ids: ReadonlyMap<string, Element> | undefined
  readonly #jsonLdGraphs = new Map<Scope, JsonGraph>()
  readonly #microdataGraphs = new Map<Scope, JsonGraph>()
  readonly #rdfaGraphs = new Map<Scope, JsonGraph>()
  #article: Article | undefined

  constructor(root: Document, url: string, selectors: PageSelectors, charset: string | null = null) {
    this.root = root
    this.url = url
    this.#selectors = selectors
    this.charset = charset
  }

  /** What references are resolved against: the first `<base href>`, itself resolved against the final URL. */
  get base(): string {
    this.#base ??= resolveBase(this.#selectors.base.all(this.root).find(isInPage)?.attribs.href, this.url)
    return this.#base
  }

  get meta(): readonly MetaEntry[] {
    this.#meta ??= readMeta(this.root, this.#selectors.meta)
    return this.#meta
  }

  get jsonLd(): JsonLd {
    this.#jsonLd ??= this.readJsonLd()
    return this.#jsonLd
  }

  /** Made anew, for who may change it. */
  readJsonLd(): JsonLd {
    const read = parseJsonLd(this.#jsonLdScripts().map(rawText))
    this.#jsonLdNotes = read.notes
    return read
  }

  /** What was wrong with the JSON-LD, where somebody has read it. */
  get jsonLdNotes(): readonly JsonLdNote[] {
    return this.#jsonLdNotes
  }

  #jsonLdScripts(): readonly Element[] {
    this.#jsonLdScriptList ??= this.#selectors.scripts.all(this.root).filter(({ attribs }) => isJsonLdType(attribs.type ?? ''))
    return this.#jsonLdScriptList
  }

  /** The element of an entry of `meta`; for people. */
  metaElement(entry: MetaEntry): Element | undefined {
    this.#metaElements ??= metaElements(this.root, this.#selectors.meta)
    return this.#metaElements[this.meta.indexOf(entry)]
  }

  /** The script of an outermost node of JSON-LD; for people. */
  jsonLdScript(node: JsonNode): Element | undefined {
    return this.#jsonLdScripts()[this.jsonLd.blocks.findIndex((nodes) => nodes.includes(node))]
  }

  /** JSON-LD of the scripts within an element; of those of the page where it has none. */
  jsonLdIn(scope: Scope): JsonGraph {
    return kept(this.#jsonLdGraphs, scope, () => {
      if (scope === this.root) return new JsonGraph(this.jsonLd.nodes)
      const within = new Set(this.#selectors.scripts.all(scope))
      const own = this.#jsonLdScripts().map((script) => within.has(script))
      return own.includes(true) ? new JsonGraph(this.jsonLd.blocks.filter((_, index) => own[index]).flat()) : this.jsonLdIn(this.root)
    })
  }

  microdataIn(scope: Scope): JsonGraph {
    return kept(this.#microdataGraphs, scope, () => {
      this.#ids ??= elementsById(this.root)
      return new JsonGraph(readMicrodata(scope, this.#ids))
    })
  }

  rdfaIn(scope: Scope): JsonGraph {
    return kept(this.#rdfaGraphs, scope, () => new JsonGraph(readRdfa(scope)))
  }

  get article(): Article {
    this.#article ??= readArticle(this.root)
    return this.#article
  }
}

function kept<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make()
  map.set(key, value)
  return value
}

/** Selectors that every page view needs; compiled once. */
export interface PageSelectors {
  readonly base: Selector
  readonly meta: Selector
  readonly scripts: Selector
}

export function createPageSelectors(): PageSelectors {
  return {
    base: compileSelector('base[href]'),
    meta: compileSelector('meta[content]'),
    scripts: compileSelector('script[type]'),
  }
}

/** Shape: type of a script. */
export function isJsonLdType(type: string): boolean {
  return /^\s*application\/ld\+json\s*(;|$)/i.test(type)
}

/** Not in the content of a template, nor a name of another language. */
function isInPage(element: Element): boolean {
  for (let { parent } = element; parent !== null; { parent } = parent) {
    const name = 'name' in parent ? parent.name.toLowerCase() : ''
    if (name === 'foreignobject') return true
    if (name === 'template' || name === 'svg' || name === 'math') return false
  }
  return true
}

/** The base of a page: `href` of its first `<base>`, resolved against the final URL. */
export function resolveBase(href: string | undefined, url: string): string {
  if (href === undefined || !URL.canParse(href, url)) return url
  const base = new URL(href, url)
  // As in browsers: a base that is data or script is none.
  return base.protocol === 'data:' || base.protocol === 'javascript:' ? url : base.href
}
