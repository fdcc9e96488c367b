import type { ProxyOut } from '../../fetch/proxy-ring.ts'
import type { WorkerHeartbeat } from '../../state/state-store.ts'

export interface PartitionStatus {
  readonly group: string
  readonly topic: string
  readonly partition: number
  /** Next offset to read, decimal; null where nothing is committed. */
  readonly committed: string | null
  readonly end: string
  readonly lag: number
  /** Age of the oldest message that is not committed; null where there is none. */
  readonly lagSeconds: number | null
  /** What could be worked now: of the extract and frontier groups all of it; null where only the worker knows. */
  readonly runnable: number | null
}

export interface GroupStatus {
  readonly group: string
  readonly state: string
  readonly members: number
  readonly lag: number
  readonly oldestSeconds: number | null
  /** URL of that message; null where none can be read out of it. */
  readonly oldestUrl: string | null
  /** Of extract groups: pages that retention deleted before the group had read them. */
  readonly gone?: number
}

/** What the fetch workers of this machine have in memory, together. */
export interface FetchStatus {
  /** Processes that answered. */
  readonly answered: number
  readonly runnable: number
  readonly waiting: number
  readonly inFlight: number
  readonly sites: number
  readonly siteWaits: Readonly<Record<string, number>>
  readonly stalledBy: readonly string[]
  /** Proxies that a worker leaves out, each once: by the one that does for longest. */
  readonly proxiesOut: readonly ProxyOut[]
  /** For how long Kafka has not taken what the oldest of the tasks has ended with; 0: nothing waits for it. */
  readonly unwrittenMs: number
}

export interface StatusReport {
  readonly clusterId: string
  /** Epoch ms. */
  readonly at: number
  readonly groups: readonly PartitionStatus[]
  readonly summary: readonly GroupStatus[]
  readonly workers: readonly WorkerHeartbeat[]
  /** Null where no fetch worker of this machine answered. */
  readonly fetch: FetchStatus | null
  /** Empty too where `isControlUp` is false. */
  readonly pausedSites: readonly string[]
  /** As `crawls stop` has them; empty too where `isControlUp` is false. */
  readonly stoppedCrawls: readonly string[]
  /** The state store answers. */
  readonly isStateUp: boolean
  /**
   * False where no broker leads the control topic, so that nobody can read which sites are paused, which crawls are stopped and which
   * replays are open.
   */
  readonly isControlUp: boolean
  /** Why something does not go on, for people; empty where all goes on. */
  readonly stalls: readonly string[]
  readonly extractors: readonly {
    readonly extractor: string
    /** Null, like the others: no longer known. */
    readonly pages: number | null
    readonly records: number | null
    readonly none: number | null
    readonly deadLetters: number | null
  }[]
}
