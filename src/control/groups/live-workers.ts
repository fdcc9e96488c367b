import type { Clock } from '../../kernel/clock.ts'
import { hostIdentity, isGone } from '../../machine/process-identity.ts'
import type { WorkerHeartbeat } from '../../state/state-store.ts'
import type { Runtime } from '../runtime/runtime.ts'

/** Which process a heartbeat is of. */
type Owner = Pick<WorkerHeartbeat, 'host' | 'pid' | 'pidStartedAt'>

/** The heartbeat of a process that was killed stands for a while; false where it is known to have ended, which only its own host knows. */
export function isWorkerGone({ host, pid, pidStartedAt }: Owner): boolean {
  return host === hostIdentity() && isGone({ pid, pidStartedAt })
}

/** Workers with a heartbeat, but for those that are known to have been killed. Errors: as of the state store. */
export async function liveWorkers(runtime: Pick<Runtime, 'state'>): Promise<readonly WorkerHeartbeat[]> {
  const state = await runtime.state()
  return (await state.workers()).filter((worker) => !isWorkerGone(worker))
}

export interface SwitchOptions {
  /** Extractor and version. */
  readonly name: string
  readonly version: number
  /** Live workers of the extractor before they heard of the version. */
  readonly expected: readonly WorkerHeartbeat[]
  /** Live workers of the extractor now. */
  readonly workers: () => Promise<readonly WorkerHeartbeat[]>
  /** Called once, when it has lasted some seconds: for whom it waits. */
  readonly onWaiting?: (text: string) => void
  readonly isGone?: (owner: Owner) => boolean
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** A worker drains, leaves and joins again; it tells of its new version with its next heartbeat at the latest. */
const SWITCH_MS = 30_000
const TELL_AFTER_MS = 3_000
const LOOK_EVERY_MS = 500

/**
 * Waits until every live worker of an extractor runs a version. One between two versions has no heartbeat and is waited for, as long as
 * its process may be there; 30 s at most. Shape: the workers as they report at last.
 */
export async function switchedWorkers(options: SwitchOptions): Promise<readonly WorkerHeartbeat[]> {
  const { name, version, expected, workers, onWaiting, isGone: gone = isWorkerGone, clock, signal } = options
  const startMono = clock.mono()
  let isTold = false
  for (;;) {
    const now = await workers()
    const missing = expected.filter((worker) => !now.some((other) => isSameProcess(worker, other)) && !gone(worker))
    const others = now.filter(({ extractors }) => extractors[name] !== version)
    const waitedMs = clock.mono() - startMono
    if ((missing.length === 0 && others.length === 0) || signal.aborted || waitedMs > SWITCH_MS) return now
    if (!isTold && waitedMs >= TELL_AFTER_MS) {
      isTold = true
      const shown = ({ pid, host }: Owner): string => `process ${pid} on ${host}`
      // A killed one on another machine can't be told from one that leaves and joins.
      const silent = missing.map((worker) => `${shown(worker)} (silent: it changes over, or was killed)`)
      const list = [...others.map(shown), ...silent].join(', ')
      onWaiting?.(`waiting for ${list} to run ${name} version ${version}, ${SWITCH_MS / 1000} s at most; it is promoted already`)
    }
    await clock.sleep(LOOK_EVERY_MS)
  }
}

export function isSameProcess(one: Owner, other: Owner): boolean {
  return one.host === other.host && one.pid === other.pid && one.pidStartedAt === other.pidStartedAt
}
