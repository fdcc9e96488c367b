import { createHash } from 'node:crypto'
import { type AuditReport, audit } from '../../src/control/crawls/audit.ts'
import { isFinal } from '../../src/message/outcome.ts'
import { unpackPageBody } from '../../src/message/page-body.ts'
import { committed, type Deployment, readOutcomes, readPages, readRecords } from './deployment.ts'
import type { LinkedSite } from './linked-site.ts'
import { differencesToOthers } from './other-readers.ts'
import { countRepeats, type Ending, endingsOf, type Loss, repeatsInWords, unheard } from './repeats.ts'
import { mostAtOnce, mostPerSecond, paceViolations } from './site-log.ts'

/** A process was killed; what it had on the wire may be asked for again. */
export interface Kill {
  /** ms of `performance.now()`. */
  readonly at: number
  readonly what: string
  /** Nothing could be acknowledged from then on. */
  readonly brokerDownSince: number | undefined
  /** It took requests with it. */
  readonly losesRequests: boolean
  /** Its end, of a kill as of a fault that lasts, ms of `performance.now()`. What is on the wire until then may be asked for again. */
  readonly until?: number
  /** What had been claimed and finished before was forgotten. */
  readonly losesState?: boolean
}

export interface Figures {
  readonly urls: number
  readonly requests: number
  readonly pages: number
  readonly records: number
  /** Requests beyond those that an undisturbed crawl makes. */
  readonly repeatedRequests: number
  /** What the kills may have cost at most. */
  readonly inFlightAtKills: number
  /** Of each that took any: what, and how many of how many requests were asked again. */
  readonly repeatsByKill: readonly string[]
  readonly repeatedPages: number
  readonly repeatedOutcomes: number
  readonly mostPerSecond: number
  readonly mostAtOnce: number
}

export interface OracleOptions {
  readonly deployment: Deployment
  readonly site: LinkedSite
  readonly crawlId: string
  readonly kills: readonly Kill[]
  readonly ratePerSecond: number
  readonly concurrency: number
  /** Messages that are no tasks, each of which has to be a dead letter; 0 where not given. */
  readonly deadLetters?: number
  /** The records are read by other clients too, which takes some seconds. */
  readonly othersRead?: boolean
}

/** Counts from outside what a crawl has left behind. Shape: `violations` is empty where all promises hold. */
export async function countFromOutside(options: OracleOptions): Promise<{ violations: string[]; figures: Figures }> {
  const { deployment, site } = options
  const violations: string[] = []
  const wanted = site.urls()
  const byUrl = new Map(wanted.map((entry) => [entry.url, entry]))
  const { pages, outcomes, records, letters, ledger, differences } = await deployment.read(async (runtime) => ({
    pages: await readPages(runtime),
    outcomes: await readOutcomes(runtime),
    records: await readRecords(runtime),
    letters: await committed(runtime, runtime.topics.deadLetters),
    // What is no task is of no crawl.
    ledger: { ...(await audit(runtime, { crawlId: options.crawlId })), malformed: (await audit(runtime)).malformed },
    differences: options.othersRead === true ? await differencesToOthers(runtime, [runtime.topics.records]) : [],
  }))
  violations.push(...differences)

  const count = new Map<string, number>()
  const expectedRecords = new Set<string>()
  for (const { message, value } of pages) {
    count.set(value.url, (count.get(value.url) ?? 0) + 1)
    const entry = byUrl.get(value.url)
    if (entry === undefined) {
      violations.push(`a page of ${value.url}, which nobody asked for`)
      continue
    }
    const body = await unpackPageBody(value)
    const path = new URL(value.finalUrl).pathname
    const isWhole = body.ok && sha256(body.bytes) === sha256(Buffer.from(site.bodyOf(entry.host, path)))
    if (!isWhole) violations.push(`the page of ${value.url} at ${message.partition}:${message.offset} is not what the site sent`)
    if (value.status !== 200) continue
    const source = `${message.topic}/${message.partition}/${message.offset}`
    expectedRecords.add(`${source} page:1 0`)
    const links = entry.kind === 'moved' ? 0 : entry.links
    for (let index = 0; index < links; index += 1) expectedRecords.add(`${source} link:1 ${index}`)
  }
  for (const { url } of wanted) if (!count.has(url)) violations.push(`no page of ${url}`)

  const seen = new Map<string, string>()
  for (const { message, value } of records) {
    const place = `${message.partition}:${message.offset} of ${new Date(message.timestamp).toISOString()}`
    const { source } = value
    const id = `${source.topic}/${source.partition}/${source.offset} ${value.extractor}:${value.extractorVersion} ${value.itemIndex}`
    const first = seen.get(id)
    if (first !== undefined) violations.push(`a second record ${id}: ${message.topic} ${first} and ${place}`)
    if (!expectedRecords.has(id)) violations.push(`a record ${id} that no page gives`)
    seen.set(id, place)
  }
  for (const id of expectedRecords) if (!seen.has(id)) violations.push(`no record ${id}`)

  const ended = new Map<string, number>()
  for (const { value } of outcomes) {
    if (!isFinal(value.kind) || value.kind === 'DUPLICATE') continue
    ended.set(value.url, (ended.get(value.url) ?? 0) + 1)
    if (value.kind !== 'FETCHED') violations.push(`${value.url} ended ${value.kind} ${value.reason ?? ''}`)
  }
  for (const { url } of wanted) if (!ended.has(url)) violations.push(`no outcome of ${url}`)
  const { deadLetters = 0 } = options
  if (letters.length !== deadLetters)
    for (const letter of letters.slice(0, 20))
      violations.push(`a dead letter of ${letters.length}: ${letter.headers['millrace-error-message']}`)
  violations.push(...ledgerProblems(ledger, deadLetters))

  const { problems, figures } = requestFigures(options, endingsOf(outcomes))
  violations.push(...problems)
  return {
    violations,
    figures: {
      ...figures,
      urls: wanted.length,
      pages: pages.length,
      records: records.length,
      repeatedPages: pages.length - count.size,
      repeatedOutcomes: [...ended.values()].reduce((sum, times) => sum + times - 1, 0),
    },
  }
}

function ledgerProblems(ledger: AuditReport, malformed: number): string[] {
  const problems: string[] = []
  if (ledger.difference !== 0) problems.push(`audit: difference ${ledger.difference}: ${ledger.missing.map(({ url }) => url).join(', ')}`)
  if (ledger.inFlight !== 0) problems.push(`audit: ${ledger.inFlight} in flight after the end`)
  if (ledger.malformed !== malformed) problems.push(`audit: ${ledger.malformed} malformed`)
  if (ledger.beforeHorizon !== 0) problems.push(`audit: ${ledger.beforeHorizon} outcomes of tasks that are not in the log`)
  return problems
}

type RequestFigures = Pick<Figures, 'requests' | 'repeatedRequests' | 'inFlightAtKills' | 'repeatsByKill' | 'mostPerSecond' | 'mostAtOnce'>

/** What the site's own log says of repeats and of the pace. */
function requestFigures(
  { site, kills, ratePerSecond, concurrency }: OracleOptions,
  endings: readonly Ending[],
): { problems: string[]; figures: RequestFigures } {
  const costly = kills.filter(({ losesRequests }) => losesRequests)
  const counted = countRepeats(site.requests, endings, costly.map(lossOf))
  const problems = [...counted.problems]
  // What sites have asked for is known to all who are alive, whatever the store forgets.
  const ends = costly.filter(({ losesState }) => losesState !== true).map(lossOf)
  problems.push(
    ...paceViolations(site.requests, {
      ratePerSecond,
      concurrency,
      crawlDelayMsOf: (host) => site.crawlDelayMsOf(host),
      isLost: unheard(site.requests, endings, ends),
    }),
  )
  return {
    problems,
    figures: {
      requests: site.requests.length,
      repeatedRequests: counted.repeats,
      inFlightAtKills: counted.ofEach.reduce((sum, { lost }) => sum + lost, 0),
      repeatsByKill: repeatsInWords(counted),
      mostPerSecond: mostPerSecond(site.requests),
      mostAtOnce: mostAtOnce(site.requests),
    },
  }
}

function lossOf({ what, at, until = at, brokerDownSince, losesState }: Kill): Loss {
  return { what, at, until, since: losesState === true ? Number.NEGATIVE_INFINITY : (brokerDownSince ?? at) }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
