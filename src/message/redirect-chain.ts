import { type ParsedUrl, parseFetchUrl } from '../url/parse-url.ts'
import { registrableDomainOfHost } from '../url/registrable-domain.ts'
import type { Hop, UrlTask } from './generated/types.ts'

type Chain = Pick<UrlTask, 'url' | 'redirects'>

/** What is asked next for a task: the target of the last hop of its chain, or its URL. Shape: undefined where that is none. */
export function nextTarget(task: Chain): URL | undefined {
  if (!URL.canParse(task.url)) return undefined
  let target = new URL(task.url)
  for (const hop of task.redirects.slice(walkBegin(task))) {
    const next = hopTarget(hop, target)
    if (!next.ok) return target
    target = next.url
  }
  return target
}

/** The chain with which the task came: the hops of its parents. */
export function chainBefore(task: Chain): UrlTask['redirects'] {
  return task.redirects.slice(0, walkBegin(task))
}

/**
 * Index of the first hop that an attempt of the task itself has followed. An attempt is one walk from the URL of the task, and no walk
 * leaves its domain; so where a chain came back to a URL that it began with, only what lies behind its last change of domain is of this
 * task.
 */
export function walkBegin({ url, redirects }: Chain): number {
  const parents = redirects.findLastIndex(endsWalk) + 1
  const own = redirects.slice(parents).findIndex((hop) => hop.url === url)
  return own === -1 ? redirects.length : parents + own
}

/** A chain may come from another program, with anything in it. */
function endsWalk(hop: Hop): boolean {
  const from = parseFetchUrl(hop.url)
  if (!from.ok) return false
  const to = hopTarget(hop, from.url)
  return to.ok && leavesDomain(from.url, to.url)
}

/** True: the hop is a task of its own, in the partition of its own domain. */
export function leavesDomain(from: URL, to: URL): boolean {
  return registrableDomainOfHost(from.hostname) !== registrableDomainOfHost(to.hostname)
}

/** Where a hop leads. Shape: a status below 300 is that of a page that refreshes. */
export function hopTarget({ status, location }: Pick<Hop, 'status' | 'location'>, base: URL): ParsedUrl {
  return parseFetchUrl(status >= 300 ? asSent(location) : location, base)
}

/** Bytes of a header above 127 are asked for as they were sent, not as UTF-8 of the characters they look like. */
function asSent(location: string): string {
  return location.replaceAll(/[\x80-\xff]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}
