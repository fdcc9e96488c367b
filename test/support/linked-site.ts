import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What an address of the site is. */
export type PageKind =
  | 'page'
  /** 404, with a body. */
  | 'gone'
  /** 302 to a page that nothing else links to. */
  | 'moved'
  /** 503 at the first request, a page from then on. */
  | 'flaky'

export interface SiteRequest {
  readonly host: string
  readonly path: string
  /** ms of `performance.now()`. */
  readonly at: number
  /** Its User-Agent: who asked. */
  readonly agent: string
  /** Of the answer; undefined: there was none. */
  status: number | undefined
  /** Just before the first byte of the answer left: whoever asked can't have had it sooner. */
  sentAt: number | undefined
  /** What the answer asks for in its Retry-After. */
  retryAfterMs: number | undefined
  /** When it was answered, or when the client was gone. */
  endedAt: number | undefined
  answered: boolean
}

/** What two hosts more ask for, which an owner of their partition has to know from the one before. */
export interface HostWishes {
  /** Of `slow.example`, by its robots.txt: from the end of a request to the start of the next. */
  readonly crawlDelayMs: number
  readonly slowPages: number
  /** Of `busy.example`, by the Retry-After of a 429: the answer to each tenth request. */
  readonly retryAfterMs: number
  readonly busyPages: number
}

const SLOW = 'slow.example'
const BUSY = 'busy.example'
const BUSY_EVERY = 10

export interface LinkedSiteOptions {
  readonly hosts: number
  readonly pagesPerHost: number
  readonly wishes?: HostWishes
  readonly latencyMs: (request: { host: string; path: string; nth: number }) => number
}

/**
 * A few hosts with pages that link to each other, and a log of every request: the count from outside. Each host has a tree of pages,
 * three links down from each, and links across. With `wishes` there are two more, smaller ones.
 */
export class LinkedSite {
  readonly requests: SiteRequest[] = []
  readonly #options: LinkedSiteOptions
  readonly #server = createServer((request, response) => {
    const host = (request.headers.host ?? '').replace(/:\d+$/, '')
    const path = request.url ?? '/'
    const nth = this.requests.filter((other) => other.host === host && other.path === path).length
    const entry: SiteRequest = {
      host,
      path,
      at: performance.now(),
      agent: request.headers['user-agent'] ?? '',
      status: undefined,
      sentAt: undefined,
      retryAfterMs: undefined,
      endedAt: undefined,
      answered: false,
    }
    this.requests.push(entry)
    const isTooMany = this.#isTooMany(entry)
    response.once('close', () => {
      entry.endedAt = performance.now()
      entry.answered = response.writableFinished
    })
    setTimeout(() => {
      const answer = isTooMany ? this.#tooMany(entry) : this.#answer(host, path, nth)
      if (entry.endedAt === undefined) {
        entry.status = answer.status
        entry.sentAt = performance.now()
      }
      response.writeHead(answer.status, { 'content-type': answer.type ?? 'text/html; charset=utf-8', ...answer.headers }).end(answer.body)
    }, this.#options.latencyMs({ host, path, nth }))
  })
  #port = 0
  /** In the addresses of its pages: that of a proxy, where one leads to the site. */
  #publicPort: number | undefined

  constructor(options: LinkedSiteOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    // Every sixth connection waits in the queue of the listener else, while Java starts on the same two cores.
    await new Promise<void>((resolve) => this.#server.listen({ port: 0, host: '127.0.0.1', backlog: 1024 }, resolve))
    this.#port = (this.#server.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  get port(): number {
    return this.#port
  }

  /** From now on its addresses name this port. */
  beBehind(port: number): void {
    this.#publicPort = port
  }

  hosts(): string[] {
    const plain = Array.from({ length: this.#options.hosts }, (_, index) => `shop${index}.example`)
    return this.#options.wishes === undefined ? plain : [...plain, SLOW, BUSY]
  }

  /** The one that asks to be left alone. */
  get busyHost(): string {
    return BUSY
  }

  /** What the robots.txt of a host asks for; 0: nothing. */
  crawlDelayMsOf(host: string): number {
    return host === SLOW ? (this.#options.wishes?.crawlDelayMs ?? 0) : 0
  }

  #pagesOf(host: string): number {
    const { wishes, pagesPerHost } = this.#options
    if (host === SLOW) return wishes?.slowPages ?? 0
    return host === BUSY ? (wishes?.busyPages ?? 0) : pagesPerHost
  }

  #isTooMany({ host, path }: SiteRequest): boolean {
    if (host !== BUSY || path === '/robots.txt') return false
    return this.requests.filter((other) => other.host === host && other.path !== '/robots.txt').length % BUSY_EVERY === 0
  }

  #tooMany(entry: SiteRequest): Answer {
    const retryAfterMs = this.#options.wishes?.retryAfterMs ?? 0
    entry.retryAfterMs = retryAfterMs
    return { status: 429, body: '<h1>Too many</h1>', headers: { 'retry-after': String(retryAfterMs / 1_000) } }
  }

  /** Where a crawl begins: the root of each host. */
  seeds(): string[] {
    return this.hosts().map((host) => this.#url(host, 0))
  }

  /**
   * Longer than any path through a host. A page has the depth of the path on which it was found first, and which that is depends on who
   * was quicker: a crawl that has to find them all must not be bounded by the shortest one.
   */
  get depth(): number {
    return Math.max(...this.hosts().map((host) => this.#pagesOf(host)))
  }

  /** Every address that a whole crawl has to ask for, the seeds included. */
  urls(): { readonly url: string; readonly kind: PageKind; readonly host: string; readonly path: string; readonly links: number }[] {
    return this.hosts().flatMap((host) =>
      Array.from({ length: this.#pagesOf(host) }, (_, index) => ({
        url: this.#url(host, index),
        kind: kindOf(index),
        host,
        path: pathOf(index),
        links: this.#links(host, index).length,
      })),
    )
  }

  /** What the site answers in the end. */
  bodyOf(host: string, path: string): string {
    return this.#answer(host, path, 1).body
  }

  #url(host: string, index: number): string {
    return `http://${host}:${this.#publicPort ?? this.#port}${pathOf(index)}`
  }

  /** Below a page without links there is nothing: what would hang on it hangs on the one before. */
  #links(host: string, index: number): number[] {
    const count = this.#pagesOf(host)
    const parents = [index]
    for (let next = index + 1; next < count && !givesLinks(next); next += 1) parents.push(next)
    const children = parents.flatMap((parent) => [3 * parent + 1, 3 * parent + 2, 3 * parent + 3])
    return [...children, (index * 7 + 3) % count, 0].filter((child) => child < count)
  }

  #answer(host: string, path: string, nth: number): Answer {
    if (path === '/robots.txt') return { status: 200, body: this.#robots(host), type: 'text/plain' }
    const [, kind, number] = /^\/(page|gone|moved|flaky|new)\/(\d+)$/.exec(path) ?? (path === '/' ? ['', 'page', '0'] : [])
    if (kind === undefined) return { status: 404, body: 'nothing here' }
    const index = Number(number)
    if (kind === 'gone') return { status: 404, body: `<h1>Gone ${index}</h1>` }
    if (kind === 'moved') return { status: 302, body: '', headers: { location: `/new/${index}` } }
    if (kind === 'flaky' && nth === 0) return { status: 503, body: '<h1>Later</h1>' }
    const links = kind === 'new' ? [] : this.#links(host, index)
    const anchors = links.map((child) => `<li><a href="${pathOf(child)}">${child}</a></li>`)
    return { status: 200, body: `<title>${host} ${index}</title><h1>Page ${index}</h1><ul>${anchors.join('')}</ul>${FILLING}` }
  }

  #robots(host: string): string {
    const delayMs = this.crawlDelayMsOf(host)
    return `User-agent: *\nDisallow: /private/\n${delayMs > 0 ? `Crawl-delay: ${delayMs / 1_000}\n` : ''}`
  }
}

interface Answer {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  readonly type?: string
}

/** A page of a size that is worth packing. */
const FILLING = `<p>${'Lorem ipsum dolor sit amet. '.repeat(80)}</p>`

function kindOf(index: number): PageKind {
  if (index % 23 === 11) return 'gone'
  if (index % 29 === 17) return 'moved'
  if (index % 31 === 13) return 'flaky'
  return 'page'
}

/** Pages that nothing may hang on: their answer has no links. */
function givesLinks(index: number): boolean {
  return kindOf(index) === 'page' || kindOf(index) === 'flaky'
}

function pathOf(index: number): string {
  return index === 0 ? '/' : `/${kindOf(index)}/${index}`
}
