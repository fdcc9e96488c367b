import type { FetchView, StallReason } from '../../fetch/fetch-view.ts'
import { within } from '../../kernel/clock.ts'
import { errorText } from '../../kernel/errors.ts'
import type { GaugeReading, GaugeSource } from '../../kernel/gauges.ts'
import type { Dependency } from '../../kernel/outage.ts'
import { delayTopics, laneTopics } from '../../message/topics.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { liveLag, oldestWaiting } from './live-lag.ts'

/** A scrape more often than this gets the lag of before: it costs requests to the broker. */
const LAG_AGE_MS = 10_000
/**
 * A scrape waits no longer for it: while brokers are away a look takes longer than Prometheus waits, and it would have no metric at all.
 */
const LAG_WAIT_MS = 1_000

const DEPENDENCIES: readonly Dependency[] = ['registry', 'blobs']
const STALL_REASONS: readonly StallReason[] = ['state-store', 'disk', ...DEPENDENCIES]

/** What a fetch worker has in memory. */
export function fetchGauges(fetch: { view(): FetchView }): GaugeSource {
  return () => {
    const { waiting, inFlight, sites, runnable, siteWaits, stalledBy, windowMessages } = fetch.view()
    const plain = { fetch_tasks_waiting: waiting, fetch_requests_in_flight: inFlight, fetch_sites: sites } as const
    return [
      ...Object.entries({ ...plain, fetch_runnable_tasks: runnable, fetch_window_messages: windowMessages }).map(
        ([name, value]) => ({ name, labels: {}, value }) as GaugeReading,
      ),
      ...Object.entries(siteWaits).map(([reason, value]) => ({ name: 'fetch_sites_waiting', labels: { reason }, value }) as const),
      ...STALL_REASONS.map((by) => ({ name: 'fetch_stalled', labels: { by }, value: stalledBy === by ? 1 : 0 }) as const),
    ]
  }
}

/**
 * How far a group is behind, by topic, and how old its oldest message is, as the last look that has come to its end saw it. What can't be
 * seen is left out: a topic of which a partition is offline, and the age then. One look at a time, beside the scrapes.
 */
export function lagGauges(runtime: Pick<Runtime, 'admin' | 'clock' | 'observer'>, group: string, topics: readonly string[]): GaugeSource {
  const { clock, observer } = runtime
  let known: readonly GaugeReading[] = []
  let lookedMono = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined
  const look = async (): Promise<void> => {
    known = await readLag(runtime, group, topics).catch((error: unknown) => {
      observer.emit('LagUnknown', { group, error: errorText(error) })
      return []
    })
    lookedMono = clock.mono()
    looking = undefined
  }
  return async () => {
    if (clock.mono() - lookedMono > LAG_AGE_MS) looking ??= look()
    if (looking !== undefined) await within(clock, LAG_WAIT_MS, looking, { unref: true })
    return known
  }
}

async function readLag(
  { admin, clock }: Pick<Runtime, 'admin' | 'clock'>,
  group: string,
  topics: readonly string[],
): Promise<readonly GaugeReading[]> {
  const lags = liveLag(await admin.lag(group, topics, 'led'))
  const readings: GaugeReading[] = []
  for (const topic of topics) {
    const seen = lags.filter((lag) => lag.topic === topic)
    // The sum of some partitions would look like work that is done, and whoever scales by it would stop workers.
    if (seen.length < (await admin.partitions(topic)).length) continue
    const value = seen.reduce((sum, { lag }) => sum + Number(lag), 0)
    readings.push({ name: 'group_lag_messages', labels: { group, topic }, value })
  }
  if (readings.length < topics.length) return readings
  const oldest = await Promise.all(lags.map((lag) => oldestWaiting(admin, lag)))
  const ages = oldest.map((message) => (message === undefined ? 0 : Math.max(0, clock.now() - message.timestamp) / 1000))
  return [...readings, { name: 'group_oldest_seconds', labels: { group }, value: Math.max(0, ...ages) }]
}

/** What the process waits for, whatever its stages. */
export function dependencyGauges(process: Pick<Runtime, 'waitsFor'>): GaugeSource {
  return () => {
    const away = process.waitsFor()
    return DEPENDENCIES.map(
      (dependency) => ({ name: 'dependency_away', labels: { dependency }, value: away.includes(dependency) ? 1 : 0 }) as const,
    )
  }
}

/** Measures what the stages of this process wait for, while the runtime is open. */
export function measureDependencies(runtime: Runtime): void {
  runtime.onClose('gauges of dependencies', runtime.gauges.add(dependencyGauges(runtime)))
}

/** Measures a group of the deployment while the runtime is open. */
export function measureGroup(runtime: Runtime, stage: string, groupId: string): void {
  const { topics } = runtime
  const read: Readonly<Record<string, readonly string[]>> = {
    fetch: laneTopics(topics),
    delay: delayTopics(topics),
  }
  runtime.onClose(`gauges of ${groupId}`, runtime.gauges.add(lagGauges(runtime, groupId, read[stage] ?? [topics.html])))
}

export function measureFetch(runtime: Runtime, fetch: { view(): FetchView }): void {
  runtime.onClose('gauges of fetch', runtime.gauges.add(fetchGauges(fetch)))
}

export function measureDelay(runtime: Runtime, delay: { readonly heldCount: number }): void {
  const read: GaugeSource = () => [{ name: 'delay_tasks_held', labels: {}, value: delay.heldCount }]
  runtime.onClose('gauges of delay', runtime.gauges.add(read))
}
