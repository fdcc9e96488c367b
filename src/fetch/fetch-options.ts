import type { BlobStore } from '../blobs/blob-store.ts'
import type { AssignedPartition } from '../kafka/assignment.ts'
import type { LayoutSource } from '../kafka/layout.ts'
import type { MessageProducer } from '../kafka/producer.ts'
import type { WindowEntry } from '../kafka/window-entry.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Service } from '../kernel/lifecycle.ts'
import type { Observer } from '../kernel/observe.ts'
import type { Dependency } from '../kernel/outage.ts'
import type { MessageCodec } from '../message/codec.ts'
import type { UrlTask } from '../message/generated/types.ts'
import type { TopicNames } from '../message/topics.ts'
import type { SitePolicy } from '../politeness/policy.ts'
import type { HealthRules, LeaseOwner, StateStore } from '../state/state-store.ts'
import type { AddressOf } from './address-book.ts'
import type { PageBudget } from './admission.ts'
import type { HttpExchange, HttpLimits } from './http-exchange.ts'
import type { LoopShare } from './loop-share.ts'
import type { ProxyOut } from './proxy-ring.ts'
import type { RetryPolicy } from './retry-route.ts'
import type { SpillLimits } from './spill.ts'

/** The consumer of the lanes; `WindowedConsumer` is one. */
export interface LaneConsumer extends Service {
  incompleteCount(): number
  /** The entry of each partition that holds back its commit. */
  bases(): readonly WindowEntry[]
}

export interface LaneHandlers {
  readonly onEntries: (entries: readonly WindowEntry[]) => void
  readonly onGained: (assigned: AssignedPartition) => void
  readonly onRebalancing: () => void
  readonly onLost: (assigned: AssignedPartition) => void
}

export interface FetchWorkerOptions {
  /** Builds the consumer of all lanes in the fetch group. */
  readonly createConsumer: (handlers: LaneHandlers) => LaneConsumer
  readonly producer: MessageProducer
  readonly codec: MessageCodec
  readonly topics: TopicNames
  readonly layout: LayoutSource
  readonly clusterId: string
  readonly state: StateStore
  readonly exchange: HttpExchange
  /** Proxies that the exchange leaves out now; not given: it has none. */
  readonly proxiesOut?: () => readonly ProxyOut[]
  /** What is away and waited for, that which holds up most first; not given: nothing ever. */
  readonly waitsFor?: () => readonly Dependency[]
  /** The one that the exchange enters too. */
  readonly share: LoopShare
  readonly paceOf: (url: URL, at?: number) => SitePolicy
  /** When after a moment a site has other hours; not given: its pace is the same at all of them. Units: epoch ms. */
  readonly hoursEnd?: (url: URL, at: number) => number | undefined
  /** For sites that are paced by their address. */
  readonly addressOf: AddressOf
  /** What robots.txt counts for. */
  readonly robots: 'obey' | 'ignore'
  /** Page budgets of a task; none where it has no crawl. */
  readonly budgetsOf: (task: UrlTask) => readonly PageBudget[]
  readonly isCrawlStopped: (crawlId: string) => boolean
  readonly isHopInScope: (target: URL, task: UrlTask) => boolean
  /** A site whose robots.txt asks for a longer crawl delay is parked. */
  readonly crawlDelayMaxMs: number
  readonly owner: LeaseOwner
  /** How answers change the pace of a site. */
  readonly siteHealth: HealthRules
  /** Tasks of a site that is parked and has not answered for so long fail; 0: they wait for it. */
  readonly giveUpMs: number
  readonly userAgent: string
  /** Whether cookies live longer than a chain of redirects. */
  readonly cookies: 'none' | 'crawl'
  readonly limits: HttpLimits
  /** A stored page counts as unchanged for so long after it was fetched: half the time that html keeps it. */
  readonly unchangedMs: number
  /** Epoch ms of the oldest page that html still holds where those of a canonical URL lie; infinity: not known. */
  readonly keptSince: (canonicalUrl: string) => Promise<number>
  /** Essences of the content types whose body is kept. */
  readonly keptTypes: ReadonlySet<string>
  /** Requests at the same time. */
  readonly concurrency: number
  readonly maxBytesInFlight: number
  readonly retry: RetryPolicy
  /** Largest batch that the broker takes for dead-letters. */
  readonly deadLetterMaxBytes: number
  /** How long a claim with dedup `ttl` lives. */
  readonly claimTtlMs: number
  /** Where bodies go that are too large for a message; left out: such pages fail. */
  readonly blobs?: BlobStore
  readonly spill?: SpillLimits
  readonly clock: Clock
  readonly observer: Observer
  readonly random?: () => number
}
