import type { OfflinePartitions } from '../../kafka/topic-admin.ts'
import { countText, isAre } from '../../kernel/count-text.ts'
import type { ReplayRequest } from '../../message/replay-request.ts'
import type { WorkerHeartbeat } from '../../state/state-store.ts'
import { isSameProcess } from '../groups/live-workers.ts'
import { type OpenTransaction, openTransactionText } from '../groups/open-transactions.ts'
import type { FetchStatus, GroupStatus, StatusReport } from './status-report.ts'

/** A lag whose oldest message is older than this asks for a reason. */
const OLD_SECONDS = 30
/** Kafka takes messages within milliseconds; a leader that moves within seconds. */
const UNWRITTEN_MS = 10_000
/** Sites, and crawls. */
const NAMED = 3
const PROXIES_NAMED = 3
const TRANSACTIONS_NAMED = 3
const WORKERS_NAMED = 2

const STALLED_BY: Readonly<Record<string, string>> = {
  'state-store': 'fetch starts no request: the state store does not answer',
  disk: 'fetch starts no request: the data folder has too little free space (fetch.minFreeDisk)',
  registry: 'the schema registry does not answer: messages whose schema is not known yet wait until it does',
  blobs: 'the blob store does not answer, or is full: pages that are too large for a message wait until it does',
}

/** The pages of a replay are no lag: live work has read them. */
type OpenReplay = Pick<ReplayRequest, 'replayId' | 'groupId' | 'extractor' | 'extractorVersion'>

/** Why something does not go on, or not as it should: one sentence for each reason, none where all goes on. Pure. */
export function stallsOf(
  known: Pick<StatusReport, 'summary' | 'fetch' | 'pausedSites' | 'stoppedCrawls' | 'isStateUp' | 'isControlUp' | 'workers'> & {
    readonly fetchGroup: string
    /** In place, and not done. */
    readonly openReplays: readonly OpenReplay[]
    /** Before which a group stands, or whoever reads records. */
    readonly openTransactions: readonly OpenTransaction[]
    readonly topics: readonly OfflinePartitions[]
  },
): readonly string[] {
  const { summary, fetch, pausedSites, stoppedCrawls, isStateUp, isControlUp, fetchGroup, openReplays, openTransactions } = known
  const stalls = isStateUp ? [] : ['the state store does not answer: fetching pauses until it does']
  stalls.push(...offlineTexts(known.topics))
  if (!isControlUp)
    stalls.push('which sites are paused, which crawls are stopped and which replays are open can not be seen without the control topic')
  for (const group of summary) stalls.push(...groupStalls(group))
  stalls.push(...unlikeWorkers(known.workers))
  for (const open of openTransactions.slice(0, TRANSACTIONS_NAMED)) stalls.push(openTransactionText(open))
  for (const { replayId, groupId, extractor, extractorVersion } of openReplays)
    if (summary.some(({ group, members }) => group === groupId && members === 0))
      stalls.push(`${groupId}: replay ${replayId} waits for a worker with ${extractor} version ${extractorVersion}`)
  stalls.push(...waitTexts(known))
  if (fetch !== null && fetch.unwrittenMs > UNWRITTEN_MS)
    stalls.push(`Kafka has not taken what fetch wrote for ${Math.round(fetch.unwrittenMs / 1000)}s: the log of the worker says why`)
  if (fetch !== null && fetch.proxiesOut.length > 0) stalls.push(proxiesText(fetch.proxiesOut))
  const lanes = summary.find(({ group }) => group === fetchGroup)
  if (fetch !== null && lanes !== undefined) stalls.push(...fetchStalls(fetch, lanes))
  if (pausedSites.length > 0)
    stalls.push(`${namedText(pausedSites)} paused: \`millrace sites resume\` lets ${pausedSites.length === 1 ? 'it' : 'them'} go on`)
  if (stoppedCrawls.length > 0)
    stalls.push(
      `${stoppedCrawls.length === 1 ? 'the crawl' : 'the crawls'} ${namedText(stoppedCrawls)} stopped: \`millrace crawls resume\` has URLs of ${stoppedCrawls.length === 1 ? 'it' : 'them'} taken again`,
    )
  return stalls
}

/** One sentence for each thing that workers wait for, with the processes where heartbeats tell them. */
function waitTexts({ fetch, workers }: Pick<StatusReport, 'fetch' | 'workers'>): string[] {
  const reasons = new Set([...(fetch?.stalledBy ?? []), ...workers.flatMap(({ waitsFor = [] }) => waitsFor)])
  return [...reasons].map((reason) => {
    const waiting = workers.filter(({ waitsFor = [] }) => waitsFor.includes(reason))
    // A process has a heartbeat for each of its stages.
    const each = waiting.filter((worker, index) => waiting.findIndex((other) => isSameProcess(worker, other)) === index)
    const where = each.length === 0 ? '' : ` (${each.length === 1 ? 'process' : 'processes'} ${processes(each)})`
    return `${STALLED_BY[reason] ?? `a worker waits: ${reason}`}${where}`
  })
}

/** One sentence for each topic that has partitions without a leader. Pure. */
export function offlineTexts(topics: readonly OfflinePartitions[]): string[] {
  return topics.flatMap(({ topic, offline }) =>
    offline.length === 0
      ? []
      : [`no broker leads ${countText(offline.length, 'partition')} of ${topic} (${offline.join(', ')}): nobody reads or writes there`],
  )
}

function groupStalls({ group, members, lag, state }: GroupStatus): string[] {
  if (lag === 0) return []
  if (members === 0) return [`${group}: nobody works on ${countText(lag, 'message')}`]
  return state === 'Stable' ? [] : [`${group} is being divided among its members (${state})`]
}

/** Members of a group share its pages: what only some of them run is missing from the pages of the others. */
function unlikeWorkers(workers: readonly WorkerHeartbeat[]): string[] {
  const stalls: string[] = []
  for (const groupId of new Set(workers.map((worker) => worker.groupId))) {
    const members = workers.filter((worker) => worker.groupId === groupId)
    for (const name of new Set(members.flatMap(({ extractors }) => Object.keys(extractors)))) {
      const versions = [...new Set(members.map(({ extractors }) => extractors[name]))]
      if (versions.length === 1) continue
      const told = versions.map((version) => {
        const having = processes(members.filter(({ extractors }) => extractors[name] === version))
        return `${version === undefined ? 'none' : `version ${version}`} in ${having}`
      })
      stalls.push(
        `${groupId}: its workers differ in ${name} (${told.join(', ')}), and each page goes to one of them: start them with the same files`,
      )
    }
  }
  return stalls
}

function processes(workers: readonly WorkerHeartbeat[]): string {
  const named = workers.slice(0, WORKERS_NAMED).map(({ host, pid }) => `${pid} on ${host}`)
  return workers.length > WORKERS_NAMED ? `${named.join(' and ')} and ${workers.length - WORKERS_NAMED} more` : named.join(' and ')
}

/** A backlog that politeness holds up is no fault: more workers would not help. */
function fetchStalls(fetch: FetchStatus, { group, lag, members, oldestSeconds }: GroupStatus): string[] {
  if (lag === 0 || members === 0 || fetch.runnable > 0 || fetch.inFlight > 0 || fetch.stalledBy.length > 0) return []
  const waits = Object.entries(fetch.siteWaits)
  if (waits.length === 0)
    return oldestSeconds !== null && oldestSeconds > OLD_SECONDS
      ? [`${group}: ${countText(lag, 'message')}, and no worker of this machine has a task`]
      : []
  return [`${group}: all sites wait (${waits.map(([reason, count]) => `${reason} ${count}`).join(', ')}); more workers would not help`]
}

/** Requests of some sites fail meanwhile, or all of them go through the other proxies. */
function proxiesText(out: FetchStatus['proxiesOut']): string {
  const named = out
    .slice(0, PROXIES_NAMED)
    .map(({ proxy, reason, forMs }) => `${proxy} (${reason}, tried again in ${Math.ceil(forMs / 1000)}s)`)
  const more = out.length > PROXIES_NAMED ? ` and ${out.length - PROXIES_NAMED} more` : ''
  return `${out.length === 1 ? 'a proxy does' : `${out.length} proxies do`} not work: ${named.join(', ')}${more}`
}

function namedText(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : ''
  return `${names.slice(0, NAMED).join(', ')}${more} ${isAre(names.length)}`
}
