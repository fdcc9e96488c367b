import type { FetchView } from '../../fetch/fetch-view.ts'
import type { ProxyOut } from '../../fetch/proxy-ring.ts'
import type { PartitionLag } from '../../kafka/admin.ts'
import type { KafkaMessage } from '../../kafka/message.ts'
import { partitionId } from '../../kernel/brand.ts'
import { isMillraceError, isStateAway } from '../../kernel/errors.ts'
import { commandPayload, subject } from '../../message/command.ts'
import { messageUrl } from '../../message/message-url.ts'
import { parseSiteOverride } from '../../message/site-override.ts'
import { delayTopics, laneTopics } from '../../message/topics.ts'
import type { WorkerHeartbeat } from '../../state/state-store.ts'
import { stoppedCrawlNames } from '../crawls/stopped-crawls.ts'
import { extractGroupsOf } from '../groups/extract-groups.ts'
import { groupTotals } from '../groups/extract-totals.ts'
import { liveLag, oldestWaiting } from '../groups/live-lag.ts'
import { liveWorkers } from '../groups/live-workers.ts'
import { holdingUp, type OpenTransaction, openTransactions } from '../groups/open-transactions.ts'
import { askWorkers } from '../groups/worker-socket.ts'
import { openRequests } from '../replay/replay-ledger.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { stallsOf } from './stalls.ts'
import type { FetchStatus, GroupStatus, PartitionStatus, StatusReport } from './status-report.ts'

/**
 * Where every group stands: lag in messages and in seconds, members, what extract has counted. Of offline partitions it says that they are,
 * and leaves out what stands in them.
 */
export async function status(runtime: Runtime): Promise<StatusReport> {
  const { admin, groups, topics } = runtime
  const existing = new Set(await admin.listTopics())
  const lanes = laneTopics(topics)
  const delays = delayTopics(topics)
  const extractGroups = extractGroupsOf(runtime)
  const readers = [
    { group: groups.fetch, topics: lanes },
    { group: groups.delay, topics: delays },
    { group: groups.frontier, topics: [topics.html] },
    ...extractGroups.map((group) => ({ group, topics: [topics.html] })),
  ]
  const standings: GroupStanding[] = []
  for (const { group, topics: read } of readers) {
    const present = read.filter((topic) => existing.has(topic))
    if (present.length > 0) standings.push(await groupStanding(runtime, group, present))
  }
  const open = new Map(standings.flatMap((each) => each.holdingUp).map((each) => [partitionId(each.topic, each.partition), each]))
  // Whoever reads these is not known here.
  const outputs = [topics.records, topics.outcomes, topics.deadLetters].filter((topic) => existing.has(topic))
  const openInOutputs = (await Promise.all(outputs.map((topic) => openTransactions(runtime, topic)))).flat()
  const offline = await admin.offlinePartitions([...lanes, ...delays, topics.html, ...outputs, topics.control])
  const isControlUp = !offline.some(({ topic }) => topic === topics.control)
  const hasControl = existing.has(topics.control) && isControlUp
  const [workers, fetch, pausedSites] = await Promise.all([
    workersOf(runtime),
    fetchStatus(runtime),
    hasControl ? pausedSitesOf(runtime) : [],
  ])
  const stoppedCrawls = hasControl ? stoppedCrawlNames(await runtime.control()) : []
  const openReplays = hasControl ? (await Promise.all(extractGroups.map((group) => openRequests(runtime, group)))).flat() : []
  const report = {
    clusterId: runtime.clusterId,
    at: runtime.clock.now(),
    groups: standings.flatMap(({ partitions }) => partitions),
    summary: standings.map(({ summary }) => summary),
    workers: workers ?? [],
    fetch,
    pausedSites,
    stoppedCrawls,
    isStateUp: workers !== undefined,
    isControlUp,
  }
  return {
    ...report,
    stalls: stallsOf({
      ...report,
      fetchGroup: groups.fetch,
      openReplays,
      openTransactions: [...open.values(), ...openInOutputs],
      topics: offline,
    }),
    extractors: standings.flatMap(({ extractors }) => extractors),
  }
}

interface GroupStanding {
  readonly partitions: readonly PartitionStatus[]
  readonly summary: GroupStatus
  readonly extractors: StatusReport['extractors']
  readonly holdingUp: readonly OpenTransaction[]
}

/** How far one group is on the topics that it reads. */
async function groupStanding(runtime: Runtime, group: string, topics: readonly string[]): Promise<GroupStanding> {
  const { admin, groups } = runtime
  const lags = liveLag(await admin.lag(group, topics, 'led'))
  const waiting = await Promise.all(lags.map((lag) => oldestWaiting(admin, lag)))
  const isExtract = extractGroupsOf(runtime).includes(group)
  const partitions = lags.map((lag, index) => {
    const oldest = waiting[index]
    return partitionStatus(group, lag, oldest === undefined ? null : ageOf(runtime, oldest), isExtract || group === groups.frontier)
  })
  const ages = partitions.flatMap(({ lagSeconds }) => lagSeconds ?? [])
  const totals = isExtract ? groupTotals(group, lags) : undefined
  const described = await admin.describeGroup(group)
  const summary = {
    group,
    state: described.state,
    members: described.members.length,
    lag: partitions.reduce((sum, { lag }) => sum + lag, 0),
    oldestSeconds: ages.length === 0 ? null : Math.max(...ages),
    oldestUrl: await oldestUrl(runtime, waiting),
    ...(totals === undefined ? {} : { gone: totals.gone }),
  }
  const extractors = (totals?.extractors ?? []).map((each) => ({ extractor: each.extractor, ...(each.totals ?? NOT_KNOWN) }))
  return { partitions, summary, extractors, holdingUp: await holdingUp(runtime, lags) }
}

const NOT_KNOWN = { pages: null, records: null, none: null, deadLetters: null } as const

/** Undefined where the store does not answer: a status must be told then above all. */
async function workersOf(runtime: Runtime): Promise<readonly WorkerHeartbeat[] | undefined> {
  try {
    return await liveWorkers(runtime)
  } catch (error) {
    if (isStateAway(error)) return undefined
    throw error
  }
}

async function fetchStatus({ dataDir, clock }: Runtime): Promise<FetchStatus | null> {
  const answers = await askWorkers<FetchView>(dataDir, { ask: 'view' }, { clock })
  if (answers.length === 0) return null
  const views = answers.map(({ answer }) => answer)
  const sum = (of: (view: FetchView) => number): number => views.reduce((total, view) => total + of(view), 0)
  const siteWaits: Record<string, number> = {}
  for (const view of views)
    for (const [reason, count] of Object.entries(view.siteWaits)) siteWaits[reason] = (siteWaits[reason] ?? 0) + count
  return {
    answered: views.length,
    runnable: sum(({ runnable }) => runnable),
    waiting: sum(({ waiting }) => waiting),
    inFlight: sum(({ inFlight }) => inFlight),
    sites: sum(({ sites }) => sites),
    siteWaits,
    stalledBy: [...new Set(views.flatMap(({ stalledBy }) => stalledBy ?? []))],
    proxiesOut: longestOut(views.flatMap(({ proxiesOut }) => proxiesOut ?? [])),
    // A worker of an earlier version does not tell.
    unwrittenMs: Math.max(0, ...views.map(({ unwrittenMs }) => unwrittenMs ?? 0)),
  }
}

/** Pure. Shape: by name. */
export function longestOut(all: readonly ProxyOut[]): readonly ProxyOut[] {
  const byProxy = new Map<string, ProxyOut>()
  for (const each of all) if (each.forMs >= (byProxy.get(each.proxy)?.forMs ?? 0)) byProxy.set(each.proxy, each)
  return [...byProxy.values()].sort((a, b) => (a.proxy < b.proxy ? -1 : 1))
}

async function pausedSitesOf(runtime: Runtime): Promise<readonly string[]> {
  const control = await runtime.control()
  return control.withPrefix(subject.site('')).flatMap((command) => {
    const isPaused = command.kind !== 'delete' && parseSiteOverride(commandPayload(command))?.paused === true
    return isPaused ? [command.subject.slice(subject.site('').length)] : []
  })
}

function partitionStatus(group: string, lag: PartitionLag, lagSeconds: number | null, isRunnable: boolean): PartitionStatus {
  return {
    group,
    topic: lag.topic,
    partition: lag.partition,
    committed: lag.committed?.toString() ?? null,
    end: lag.end.toString(),
    lag: Number(lag.lag),
    lagSeconds,
    runnable: isRunnable ? Number(lag.lag) : lag.lag === 0n ? 0 : null,
  }
}

/** Whole seconds. */
function ageOf({ clock }: Runtime, { timestamp }: KafkaMessage): number {
  return Math.max(0, Math.round((clock.now() - timestamp) / 1000))
}

/** Of the message that waits longest among the first of each partition. Shape: null where none waits, or none can be read out of it. */
async function oldestUrl({ codec }: Runtime, waiting: readonly (KafkaMessage | undefined)[]): Promise<string | null> {
  const [oldest] = waiting.filter((message) => message !== undefined).toSorted((a, b) => a.timestamp - b.timestamp)
  if (oldest === undefined) return null
  try {
    return await messageUrl(codec, { key: oldest.key?.toString() ?? null, value: oldest.value })
  } catch (error) {
    // A schema that can't be asked for: all the rest is told the same.
    if (isMillraceError(error)) return null
    throw error
  }
}
