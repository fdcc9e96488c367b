/**
 * The catalogue of gauges: what is measured when somebody asks, beside the events that are counted when they happen (events.ts). Names
 * without the `millrace_` prefix; labels are bounded, as there.
 */
export const GAUGES = {
  fetch_tasks_waiting: { help: 'Tasks in the queues of sites.', labels: [] },
  fetch_requests_in_flight: { help: 'Tasks whose request is under way, or whose turn it is.', labels: [] },
  fetch_sites: { help: 'Sites with tasks in this worker.', labels: [] },
  fetch_runnable_tasks: { help: 'Tasks that could start now within the pace of their sites: for autoscaling.', labels: [] },
  fetch_sites_waiting: { help: 'Sites that may not be asked now, by what the limiter said last.', labels: ['reason'] },
  fetch_stalled: {
    help: '1 while fetch waits for it: state-store and disk hold up all requests, registry what is not taken up yet, blobs pages too large for a message.',
    labels: ['by'],
  },
  dependency_away: { help: '1 while this process waits for it, whatever its stages: registry or blobs.', labels: ['dependency'] },
  fetch_window_messages: { help: 'Messages taken and not finished.', labels: [] },
  delay_tasks_held: { help: 'Tasks in memory that wait for their time.', labels: [] },
  group_lag_messages: {
    help: 'Messages behind the committed offset, of the whole group: take the maximum over processes. Left out while a partition of the topic is offline.',
    labels: ['group', 'topic'],
  },
  group_oldest_seconds: {
    help: 'Age of the oldest message that is not committed, of the whole group. Left out while a partition of its topics is offline.',
    labels: ['group'],
  },
} as const satisfies Record<string, { readonly help: string; readonly labels: readonly string[] }>

export type GaugeName = keyof typeof GAUGES

export interface GaugeReading {
  readonly name: GaugeName
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export type GaugeSource = () => readonly GaugeReading[] | Promise<readonly GaugeReading[]>

/** What a process can be asked to measure. A source that fails measures nothing, and holds up no other. */
export class Gauges {
  readonly #sources = new Set<GaugeSource>()

  /** Shape: a function that takes the source away. */
  add(source: GaugeSource): () => void {
    this.#sources.add(source)
    return () => void this.#sources.delete(source)
  }

  async read(): Promise<readonly GaugeReading[]> {
    const read = await Promise.allSettled([...this.#sources].map(async (source) => source()))
    return read.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
  }
}
