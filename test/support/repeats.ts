import { grouped } from '../../src/kernel/grouped.ts'
import type { Outcome } from '../../src/message/generated/types.ts'
import type { OnTopic } from './deployment.ts'
import type { SiteRequest } from './linked-site.ts'
import { CLOCK_SLACK_MS, tasks } from './site-log.ts'

/** A fault that may have requests asked again. Times are ms of `performance.now()`. */
export interface Loss {
  readonly what: string
  readonly at: number
  /** What began until then is lost too: the end of a kill, or of a fault that lasts. `at` where not given. */
  readonly until?: number
  /** What was not settled by then is lost; `at` where not given. */
  readonly since?: number
  /** User-Agent of the process that it took; of all where not given. */
  readonly agent?: string
  /** It was told to end: what is on the wire it brings to its end, and a redirect that it has not followed yet begins anew elsewhere. */
  readonly isDrained?: boolean
}

/**
 * From the sending of an outcome until nothing asks for its attempt again: its acknowledgement, and then the store learns that the attempt
 * is finished; a copy of what is finished costs no request. So the offset, which is committed once a second, has no part in it. Where a
 * machine is busy it takes longer, as does all that came before: from the answer to the outcome.
 */
const SETTLE_MS = 300
const SETTLE_SHARE = 2

/** How an attempt ended, by its outcome. */
export interface Ending {
  /** Host and path of the task. */
  readonly address: string
  /** When it was sent, ms of `performance.now()`. */
  readonly at: number
  /** Another attempt follows. */
  readonly isRetry: boolean
}

export interface RepeatCount {
  readonly repeats: number
  /**
   * Of each loss: requests that it took, those of them that were asked again, and how long before it the outcome of one of these was sent.
   */
  readonly ofEach: readonly {
    readonly what: string
    readonly lost: number
    readonly repeats: number
    readonly sentMs: number | undefined
  }[]
  /** Repeats that no loss accounts for. */
  readonly problems: readonly string[]
}

/** A copy ends without a request. */
export function endingsOf(outcomes: readonly OnTopic<Outcome>[]): Ending[] {
  return outcomes
    .filter(({ value }) => value.kind !== 'DUPLICATE')
    .map(({ message, value }) => {
      const { hostname, pathname } = new URL(value.url)
      return { address: `${hostname}${pathname}`, at: message.timestamp - performance.timeOrigin, isRetry: value.kind === 'RETRY' }
    })
}

/**
 * Requests for what had been asked for, though its outcome was no retry. Each has to have a request of the same address before it that one
 * loss took, and of which nothing else is a repeat: so what one kill might have cost hides nothing of another.
 */
export function countRepeats(requests: readonly SiteRequest[], endings: readonly Ending[], losses: readonly Loss[]): RepeatCount {
  const ends = endsOf(requests, endings)
  const counts = losses.map(({ what }): { what: string; lost: number; repeats: number; sentMs: number | undefined } => {
    return { what, lost: 0, repeats: 0, sentMs: undefined }
  })
  const problems: string[] = []
  let repeats = 0
  for (const [address, asked] of byAddress(tasks(requests))) {
    const taken: { readonly loss: number; readonly request: SiteRequest }[] = []
    for (const [index, request] of asked.entries()) {
      const before = asked[index - 1]
      if (before !== undefined && ends.get(before)?.isRetry !== true) {
        repeats += 1
        const source = taken.findIndex(({ loss }) => (losses[loss] as Loss).at <= request.at)
        const [found] = source === -1 ? [] : taken.splice(source, 1)
        const count = found === undefined ? undefined : counts[found.loss]
        if (found === undefined || count === undefined) problems.push(describe(address, before, request, ends.get(before), losses))
        else {
          count.repeats += 1
          const sentAt = ends.get(found.request)?.at
          if (sentAt !== undefined) count.sentMs = Math.max(count.sentMs ?? 0, Math.round((losses[found.loss] as Loss).at - sentAt))
        }
      }
      const loss = losses.findIndex((each) => isLostBy(each, request, ends.get(request)))
      const count = counts[loss]
      if (count === undefined) continue
      taken.push({ loss, request })
      count.lost += 1
    }
  }
  return { repeats, ofEach: counts, problems }
}

/** For people: each loss that took any. */
export function repeatsInWords({ ofEach }: RepeatCount): string[] {
  return ofEach
    .filter(({ lost }) => lost > 0)
    .map(({ what, lost, repeats, sentMs }) => {
      const sent = sentMs === undefined ? '' : `, an outcome sent ${sentMs} ms before it`
      return `${what}: ${repeats} of ${lost} asked again${sent}`
    })
}

/** Whether one of the losses took the process that asked before others could know how it ended. */
export function unheard(
  requests: readonly SiteRequest[],
  endings: readonly Ending[],
  losses: readonly Loss[],
): (request: SiteRequest) => boolean {
  const ends = endsOf(requests, endings)
  // An outcome is sent when the store knows how the request ended.
  return (request) => ends.get(request) === undefined && losses.some((loss) => isLostBy(loss, request, undefined))
}

function isLostBy({ at, until = at, since = at, agent, isDrained }: Loss, request: SiteRequest, end: Ending | undefined): boolean {
  if (request.at > until || (agent !== undefined && request.agent !== agent)) return false
  if (isDrained === true) return end === undefined && request.status === 302
  return end === undefined || settledAt(request, end) > since
}

function settledAt({ sentAt }: SiteRequest, end: Ending): number {
  return end.at + SETTLE_MS + SETTLE_SHARE * Math.max(0, end.at - (sentAt ?? end.at))
}

/** The outcome of each request, or of what it was redirected to: the first one before its address is asked for again. */
function endsOf(requests: readonly SiteRequest[], endings: readonly Ending[]): Map<SiteRequest, Ending> {
  const sorted = [...endings].sort((a, b) => a.at - b.at)
  const ends = new Map<SiteRequest, Ending>()
  for (const [address, asked] of byAddress(tasks(requests))) {
    const own = sorted.filter((ending) => ending.address === address.replace('/new/', '/moved/'))
    for (const [index, request] of asked.entries()) {
      const next = asked[index + 1]?.at ?? Number.POSITIVE_INFINITY
      const end = own.find(({ at }) => at >= request.at - CLOCK_SLACK_MS && at < next)
      if (end !== undefined) ends.set(request, end)
    }
  }
  return ends
}

const byAddress = (requests: readonly SiteRequest[]): Map<string, SiteRequest[]> => grouped(requests, ({ host, path }) => `${host}${path}`)

function describe(address: string, before: SiteRequest, again: SiteRequest, end: Ending | undefined, losses: readonly Loss[]): string {
  const first = losses[0]?.at ?? 0
  const seconds = (ms: number | undefined): string => (ms === undefined ? 'never' : `${((ms - first) / 1_000).toFixed(2)} s`)
  const kills = losses.map(({ what, at }) => `${what} at ${seconds(at)}`).join(', ')
  const asked = `${address} was asked for at ${seconds(before.at)} (${before.agent}) and answered at ${seconds(before.sentAt)} (${before.status})`
  const told = `its outcome was sent at ${seconds(end?.at)}, and it was asked for again at ${seconds(again.at)} (${again.agent})`
  return `${asked}, ${told}, which no loss accounts for: ${kills}`
}
