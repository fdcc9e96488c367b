import { DeadLetterPublisher } from '../kafka/dead-letter-publisher.ts'
import { OutcomePublisher } from '../kafka/outcome-publisher.ts'
import { TaskPublisher } from '../kafka/task-publisher.ts'
import { backoffMs } from '../kernel/backoff.ts'
import { nextTarget } from '../message/redirect-chain.ts'
import { liftedAt } from '../politeness/policy.ts'
import { AdmissionDesk } from './admission.ts'
import { ChainClaims } from './chain-claims.ts'
import { claimCheckOf } from './claim-check.ts'
import { ConditionalRequests } from './conditional-requests.ts'
import { CookieJars } from './cookie-jars.ts'
import type { FetchWorkerOptions } from './fetch-options.ts'
import { FetchTask } from './fetch-task.ts'
import { finishedTtlMs } from './finished-ttl.ts'
import { Handover } from './handover.ts'
import { LoadControl } from './load-control.ts'
import { MOST_PAUSED_MS } from './paused-timer.ts'
import type { QueuedTask } from './queued-task.ts'
import { createRobotsGate } from './robots-fetch.ts'
import type { Scheduler } from './scheduler.ts'
import { Settler } from './settler.ts'
import { SiteLeases } from './site-leases.ts'
import type { StoreGate } from './store-gate.ts'
import { TaskEndings } from './task-endings.ts'

/** What the parts share with the worker that they are for. */
export interface PartsOwner {
  readonly scheduler: Scheduler<QueuedTask>
  readonly gate: StoreGate
  /** Runs what nobody waits for. */
  readonly work: (run: () => Promise<void>) => void
  readonly signal: AbortSignal
  readonly random: () => number
}

export interface FetchParts {
  readonly publisher: TaskPublisher
  readonly outcomes: OutcomePublisher
  /** What is written when a task is at its end, or at the end of an attempt. */
  readonly endings: TaskEndings
  readonly settler: Settler
  readonly handover: Handover
  /** What is done with a task whose turn has come. */
  readonly task: FetchTask
}

const LEASE_MARGIN_MS = 5_000

/**
 * The parts of a fetch worker that are the same for each of its tasks, put together: from the turn of a task to what is written for it.
 * None of them knows a queue, and whose turn it is; that is the worker's.
 */
export function fetchParts(options: FetchWorkerOptions, { scheduler, gate, work, signal, random }: PartsOwner): FetchParts {
  const { clock, observer, codec, layout, topics, producer, state, retry, limits } = options
  const publisher = new TaskPublisher({ topics, codec, producer, layout, clock })
  const outcomes = new OutcomePublisher({ topics, codec, layout })
  const ttlMs = finishedTtlMs(retry.maxDelayMs)
  const settler = new Settler({ producer, state, gate, finishedTtlMs: ttlMs, signal, clock })
  const endings = new TaskEndings({
    publisher,
    outcomes,
    deadLetters: new DeadLetterPublisher({ topics, layout, maxBytes: options.deadLetterMaxBytes }),
    settler,
    state,
    gate,
    retry,
    random,
    clock,
    observer,
    budgetIdsOf: (task) => options.budgetsOf(task).map(({ id }) => id),
    liftedAtOf: (task) => {
      const target = nextTarget(task)
      return target === undefined ? 0 : liftedAt(options.paceOf(target))
    },
  })
  const leaseMs = limits.totalMs + MOST_PAUSED_MS + LEASE_MARGIN_MS
  const leases = new SiteLeases({ ...options, gate, leaseMs, rules: options.siteHealth })
  const robots = createRobotsGate({ ...options, leases, gate })
  const handover = new Handover({ state, gate, leaseMs, work, clock })
  const task = new FetchTask({
    ...options,
    load: new LoadControl({ scheduler, maxInFlight: options.concurrency, observer, clock }),
    cookies: new CookieJars({ keep: options.cookies, observer }),
    conditional: new ConditionalRequests({ ...options, gate }),
    desk: new AdmissionDesk({ ...options, holdMs: ttlMs, handover, gate, leases, robotsOf: (url) => robots.check(url, signal) }),
    endings,
    leases,
    backOffMs: (attempt) => backoffMs({ firstMs: retry.firstDelayMs, maxMs: retry.maxDelayMs }, attempt, random()),
    claimCheck: claimCheckOf({ ...options, random, signal }),
    chains: new ChainClaims({ ...options, gate }),
  })
  return { publisher, outcomes, endings, settler, handover, task }
}
