import { Parser } from 'htmlparser2'
import { MAX_URL_LENGTH } from '../url/parse-url.ts'
import { webUrl } from './link-set.ts'

/** What a file turned out to be; undefined: not known yet. none: a page that stands in the place of a sitemap, or nothing. */
export type SitemapKind = 'urls' | 'index' | 'text' | 'none'

export interface FoundInSitemap {
  /** Absolute http(s) URLs without fragment and without a user, in order, repeats included. */
  readonly pages: readonly string[]
  readonly sitemaps: readonly string[]
}

/** The protocol allows no more; what is beyond is counted alone. */
export const MAX_SITEMAP_URLS = 50_000
/** Of an index, or a robots.txt. */
export const MAX_SITEMAPS_PER_FILE = 1_000
/** Elements within each other: a sitemap has three. What goes deeper is read no further. */
const MAX_DEPTH = 64
const BEFORE_ALL = /^[\s\uFEFF]+/
const LINE_END = /\r\n?|\n/

/**
 * URLs of a sitemap, which is XML or a list with one URL a line, while its text comes in pieces. Which it is shows by what is in it:
 * servers give it any name and type. Of entities only those of XML are read, so nothing is loaded or repeated for one. Source:
 * sitemaps.org, protocol 0.9.
 */
export class SitemapScanner {
  readonly #baseUrl: string
  readonly #parser: Parser
  #kind: SitemapKind | undefined
  #hasBegun = false
  #isDone = false
  /** Names of the elements that are open. */
  readonly #open: string[] = []
  /** With which the root and all that belongs to it is named; `image:loc` does not. */
  #prefix = ''
  /** Of the `loc` that is open, or of the line; no more than shows that it is too long. */
  #text = ''
  #pages: string[] = []
  #sitemaps: string[] = []
  #count = 0
  #passedOver = 0

  /** `baseUrl`: of the file, for a `loc` that is no absolute URL, though it should be one. */
  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl
    this.#parser = new Parser(
      {
        onopentag: (name) => this.#onOpen(name),
        ontext: (text) => {
          if (this.#isLoc()) this.#keep(text)
        },
        onclosetag: () => this.#onClose(),
      },
      { xmlMode: true },
    )
  }

  /** Undefined: not known yet. */
  get kind(): SitemapKind | undefined {
    return this.#kind
  }

  /** URLs beyond the bound. */
  get passedOver(): number {
    return this.#passedOver
  }

  /** True: further text changes nothing. */
  get isDone(): boolean {
    return this.#isDone
  }

  write(text: string): void {
    if (this.#isDone) return
    const read = this.#hasBegun ? text : text.replace(BEFORE_ALL, '')
    if (read === '') return
    if (!this.#hasBegun && !read.startsWith('<')) this.#kind = 'text'
    this.#hasBegun = true
    if (this.#kind === 'text') this.#readLines(read)
    else this.#parser.write(read)
  }

  end(): void {
    if (this.#isDone) return
    if (this.#kind === 'text') this.#readLines('\n')
    // A page that says something else in plain text.
    if (this.#kind === 'text' && this.#count === 0) this.#kind = 'none'
    this.#kind ??= 'none'
    this.#isDone = true
  }

  /** What was found since the last call. */
  take(): FoundInSitemap {
    const found = { pages: this.#pages, sitemaps: this.#sitemaps }
    this.#pages = []
    this.#sitemaps = []
    return found
  }

  #onOpen(name: string): void {
    if (this.#isDone) return
    this.#open.push(name)
    if (this.#open.length === 1) {
      const local = name.slice(name.indexOf(':') + 1)
      this.#prefix = name.slice(0, name.length - local.length)
      this.#kind = local === 'urlset' ? 'urls' : local === 'sitemapindex' ? 'index' : 'none'
    }
    this.#isDone = this.#kind === 'none' || this.#open.length > MAX_DEPTH
  }

  #onClose(): void {
    if (this.#isLoc()) this.#add(this.#kind === 'index' ? this.#sitemaps : this.#pages, this.#baseUrl)
    this.#open.pop()
  }

  #isLoc(): boolean {
    if (this.#isDone || this.#open.length !== 3) return false
    const [, entry, name] = this.#open
    return name === `${this.#prefix}loc` && entry === `${this.#prefix}${this.#kind === 'index' ? 'sitemap' : 'url'}`
  }

  #readLines(text: string): void {
    const [first = '', ...others] = text.split(LINE_END)
    this.#keep(first)
    for (const line of others) {
      this.#add(this.#pages, undefined)
      this.#keep(line)
    }
  }

  #keep(text: string): void {
    this.#text += text.slice(0, Math.max(0, MAX_URL_LENGTH + 1 - this.#text.length))
  }

  #add(found: string[], base: string | undefined): void {
    const reference = this.#text.trim()
    this.#text = ''
    if (reference === '' || reference.length > MAX_URL_LENGTH) return
    const url = webUrl(reference, base)?.href
    if (url === undefined || url.length > MAX_URL_LENGTH) return
    if (this.#count === (this.#kind === 'index' ? MAX_SITEMAPS_PER_FILE : MAX_SITEMAP_URLS)) {
      this.#passedOver += 1
      return
    }
    this.#count += 1
    found.push(url)
  }
}
