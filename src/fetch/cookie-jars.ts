import { type Cookie, CookieJar, cookieCompare, type MemoryCookieStore } from 'tough-cookie'
import type { Observer } from '../kernel/observe.ts'
import type { Hop, UrlTask } from '../message/generated/types.ts'
import { registrableDomainOfHost } from '../url/registrable-domain.ts'

export interface CookieJarsOptions {
  /** none: cookies live within one chain of redirects. crawl: also from page to page of a crawl. */
  readonly keep: 'none' | 'crawl'
  readonly observer: Observer
  /** Jars kept; the one that was used longest ago makes room. 10,000 where not given. */
  readonly maxJars?: number
}

/** Cookies of a jar; RFC 6265 section 6.1 asks for as many. */
const MAX_COOKIES = 50
/** Of one answer so many are looked at: an answer may bring thousands, and each is parsed. */
const MAX_SET_COOKIES = 100
/** Of a whole Cookie header: more makes servers refuse the request. Also of what a hop carries on. */
const MAX_BYTES = 16_384
/** Name, value and attributes. RFC 6265 section 6.1. */
const MAX_COOKIE_BYTES = 4_096

type ChainTask = Pick<UrlTask, 'crawlId' | 'redirects'>

/**
 * Which cookies go with a request. Within a chain of redirects they always do: the hops carry their Set-Cookie headers, so a chain
 * that goes on in another process has them too. With `crawl` there is a jar per crawl and registrable domain besides. It is in the
 * memory of this process: all tasks of a domain are in one partition, so one worker has them; a restart or a rebalance begins a new jar.
 *
 * The rules are those of RFC 6265: domain, path, Secure, expiry, the prefixes, no public suffixes. A cookie that breaks them is
 * counted and passed over; it never costs its page.
 */
export class CookieJars {
  readonly #options: CookieJarsOptions
  readonly #jars = new Map<string, CookieJar>()

  constructor(options: CookieJarsOptions) {
    this.#options = options
  }

  /**
   * Cookie header of the next request; undefined: none. `own`: the one that the task asks for. Of a name that the site has set since
   * (in the chain or the crawl) the site's value counts. Where the site has set several of one name all go, the one with the longest path
   * first.
   */
  headerFor(task: ChainTask, target: URL, own: string | undefined): string | undefined {
    const chain = chainJar(task.redirects)
    const crawl = this.#jarOf(task, target, false)
    if (chain === undefined && crawl === undefined) return own
    // Of one name there may be several; a cookie is one by its domain and path as well, and that of the chain counts.
    const matching = new Map<string, Cookie>()
    for (const jar of [crawl, chain?.jar]) {
      for (const cookie of jar?.getCookiesSync(cookieUrl(target)) ?? [])
        matching.set(`${cookie.domain} ${cookie.path} ${cookie.key}`, cookie)
    }
    const cookies = [...matching.values()].sort(cookieCompare)
    const names = new Set([...(chain?.names ?? []), ...cookies.map(({ key }) => key)])
    const pairs = [...ownPairs(own).filter(([name]) => !names.has(name)), ...cookies.map(({ key, value }) => [key, value] as const)]
    const texts = pairs.map(([name, value]) => `${name}=${value}`)
    const kept = bounded(texts, MAX_BYTES)
    return kept.length === 0 ? undefined : kept.join('; ')
  }

  /** Takes the cookies of an answer into the jar of its crawl; counts those that break the rules, in any case. */
  learn(task: ChainTask, url: URL, setCookies: readonly string[]): void {
    if (setCookies.length === 0) return
    const jar = this.#jarOf(task, url, true) ?? newJar()
    const taken = setCookies.slice(0, MAX_SET_COOKIES).filter((text) => set(jar, text, url) !== undefined).length
    const refused = setCookies.length - taken
    trim(jar)
    if (refused > 0) this.#options.observer.emit('CookiesRefused', { count: refused, host: url.hostname })
  }

  #jarOf({ crawlId }: ChainTask, url: URL, create: boolean): CookieJar | undefined {
    if (this.#options.keep === 'none' || crawlId === null) return undefined
    const key = `${registrableDomainOfHost(url.hostname)} ${crawlId}`
    const jar = this.#jars.get(key) ?? (create ? newJar() : undefined)
    if (jar === undefined) return undefined
    this.#jars.delete(key)
    const maxJars = this.#options.maxJars ?? 10_000
    for (const oldest of this.#jars.keys()) {
      if (this.#jars.size < maxJars) break
      this.#jars.delete(oldest)
    }
    this.#jars.set(key, jar)
    return jar
  }
}

/** What a hop carries on of the Set-Cookie headers of its answer. */
export function carriedCookies(setCookies: readonly string[]): readonly string[] {
  return bounded(setCookies.slice(0, MAX_COOKIES), MAX_BYTES)
}

function newJar(): CookieJar {
  return new CookieJar(undefined, { rejectPublicSuffixes: true, prefixSecurity: 'strict', allowSecureOnLocal: false })
}

/** A dot at the end of a host names the same host, and the library would keep its cookies apart from its requests. */
function cookieUrl(url: URL): string {
  if (!url.hostname.endsWith('.')) return url.href
  const same = new URL(url)
  same.hostname = url.hostname.slice(0, -1)
  return same.href
}

/** Shape: the name of the cookie; undefined: it breaks the rules. */
function set(jar: CookieJar, text: string, url: URL): string | undefined {
  if (text.length > MAX_COOKIE_BYTES) return undefined
  try {
    const cookie = jar.setCookieSync(text, cookieUrl(url))
    return cookie?.key
  } catch {
    // It throws for what a site may send in any answer: no name, another's domain, a public suffix, a prefix that does not fit.
    return undefined
  }
}

interface ChainJar {
  readonly jar: CookieJar
  /** Set or deleted by a hop. */
  readonly names: ReadonlySet<string>
}

function chainJar(redirects: readonly Hop[]): ChainJar | undefined {
  if (redirects.every(({ setCookies }) => setCookies.length === 0)) return undefined
  const jar = newJar()
  const names = new Set<string>()
  for (const { url, setCookies } of redirects) {
    if (!URL.canParse(url)) continue
    for (const text of setCookies.slice(0, MAX_SET_COOKIES)) {
      const name = set(jar, text, new URL(url))
      if (name !== undefined) names.add(name)
    }
  }
  return { jar, names }
}

function ownPairs(header: string | undefined): readonly (readonly [string, string])[] {
  return (header ?? '').split(';').flatMap((pair) => {
    const text = pair.trim()
    if (text === '') return []
    const at = text.indexOf('=')
    return [at === -1 ? ([text, ''] as const) : ([text.slice(0, at).trim(), text.slice(at + 1).trim()] as const)]
  })
}

/** What was set or sent longest ago makes room (RFC 6265 section 5.3); what has expired is sent no more. */
function trim(jar: CookieJar): void {
  const store = jar.store as MemoryCookieStore
  store.getAllCookies((_, cookies) => {
    const surplus = (cookies?.length ?? 0) - MAX_COOKIES
    const byLastUse = (cookies ?? []).toSorted((one, other) => lastUseOf(one) - lastUseOf(other))
    for (const cookie of byLastUse.slice(0, Math.max(0, surplus))) {
      store.removeCookie(cookie.domain ?? '', cookie.path ?? '/', cookie.key, () => undefined)
    }
  })
}

/** Epoch ms. */
function lastUseOf({ lastAccessed }: Cookie): number {
  return lastAccessed instanceof Date ? lastAccessed.getTime() : 0
}

/** As many from the beginning as fit. */
function bounded(texts: readonly string[], maxBytes: number): string[] {
  let bytes = 0
  return texts.filter((text) => {
    bytes += text.length + 2
    return bytes <= maxBytes
  })
}
