import { compileUrlGlob } from './glob.ts'
import { bareHost, registrableDomainOfHost } from './registrable-domain.ts'

/**
 * How far a crawl goes from its seed: the same registrable domain, host, origin (scheme, host and port), below the folder of the
 * seed's path, or anywhere.
 */
export type ScopeKind = 'domain' | 'host' | 'origin' | 'prefix' | 'any'

export interface ScopeRules {
  readonly kind: ScopeKind
  /** URL globs, of which one must match; none: all do. */
  readonly allow?: readonly string[]
  /** URL globs, of which none may match; they win over `allow`. */
  readonly deny?: readonly string[]
}

export type ScopeVerdict = { readonly inScope: true } | { readonly inScope: false; readonly reason: ScopeReason }

export type ScopeReason = 'out-of-scope' | 'not-allowed' | 'denied' | TrapReason

export const TRAP_REASONS = ['path-repeats', 'path-too-deep', 'url-too-long'] as const
export type TrapReason = (typeof TRAP_REASONS)[number]

/**
 * Bounds of what is followed as a link (a task that a user produces is not held to them). A site that answers everything, with
 * relative links, makes endless deeper paths: these end such a crawl by themselves, well before its page limits.
 */
export const TRAP_BOUNDS = {
  /** Characters of the whole URL. */
  urlLength: 2_048,
  /** Segments of the path. */
  segments: 32,
  /** Times that one segment may stand in a path. */
  repeats: 3,
} as const

/** Compiles the rules of one crawl. Shape: the result is pure and total. */
export function compileScope(rules: ScopeRules): (url: URL, seed: URL) => ScopeVerdict {
  const allow = (rules.allow ?? []).map(compileUrlGlob)
  const deny = (rules.deny ?? []).map(compileUrlGlob)
  return (url, seed) => {
    if (!within(rules.kind, url, seed)) return { inScope: false, reason: 'out-of-scope' }
    if (deny.some((matches) => matches(url))) return { inScope: false, reason: 'denied' }
    if (allow.length > 0 && !allow.some((matches) => matches(url))) return { inScope: false, reason: 'not-allowed' }
    const trap = trapReason(url)
    return trap === undefined ? { inScope: true } : { inScope: false, reason: trap }
  }
}

function within(kind: ScopeKind, url: URL, seed: URL): boolean {
  switch (kind) {
    case 'any':
      return true
    case 'domain':
      return registrableDomainOfHost(url.hostname) === registrableDomainOfHost(seed.hostname)
    case 'host':
      return bareHost(url.hostname) === bareHost(seed.hostname)
    case 'origin':
      return sameOrigin(url, seed)
    case 'prefix':
      return sameOrigin(url, seed) && url.pathname.startsWith(seed.pathname.slice(0, seed.pathname.lastIndexOf('/') + 1))
  }
}

function sameOrigin(a: URL, b: URL): boolean {
  return a.protocol === b.protocol && bareHost(a.hostname) === bareHost(b.hostname) && a.port === b.port
}

/** Why a link looks like one of an endless many; undefined where it does not. */
export function trapReason(url: URL): TrapReason | undefined {
  if (url.href.length > TRAP_BOUNDS.urlLength) return 'url-too-long'
  const segments = url.pathname.split('/').filter((segment) => segment !== '')
  if (segments.length > TRAP_BOUNDS.segments) return 'path-too-deep'
  const counts = new Map<string, number>()
  for (const segment of segments) {
    const count = (counts.get(segment) ?? 0) + 1
    if (count > TRAP_BOUNDS.repeats) return 'path-repeats'
    counts.set(segment, count)
  }
  return undefined
}
