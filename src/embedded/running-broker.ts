import type { Clock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import { folderMark } from '../machine/folder-mark.ts'
import { describeProcess, findProcess, isAlive, isLocal, type ProcessIdentity, signalTo } from '../machine/process-identity.ts'
import { type BrokerFolder, type ProcessFile, readProcessFile, removeFile } from './broker-folder.ts'
import { brokerAnswers } from './broker-probe.ts'
import { noRoomError } from './disk-space.ts'
import { containerLabel } from './docker-engine.ts'
import { brokerMark } from './launch-spec.ts'
import { SlowStart } from './slow-start.ts'

/**
 * What the start lock's holder finds in the folder.
 * - `up`: answers, and its supervisor lives.
 * - `orphan`: answers, but its supervisor was killed.
 * - `none`: nothing runs; what was left of a dead one is put away.
 */
export type FoundBroker = { readonly kind: 'up' | 'orphan'; readonly file: ProcessFile } | { readonly kind: 'none' }

const POLL_MS = 25
/** For one that is up, or of which nothing is known; one that starts has longer. */
const ANSWER_MS = 30_000
const END_MS = 30_000
/** A supervisor that lives writes the file again several times in this. */
const LOST_MS = 3_000

interface FindOptions {
  readonly clock: Clock
  readonly observer: Observer
  readonly signal?: AbortSignal
}

/**
 * The caller holds the start lock. Errors: KAFKA_START_FAILED when a broker runs but does not answer; DISK_FULL while it rests for that;
 * `signal.reason`.
 */
export async function findBroker(folder: BrokerFolder, options: FindOptions): Promise<FoundBroker> {
  const begunMono = options.clock.mono()
  const deadline = begunMono + ANSWER_MS
  const start = new SlowStart(folder.path, options)
  let repairs = 0
  for (;;) {
    const file = readProcessFile(folder)
    if (file === undefined || file === 'broken') {
      const lost = lostBroker(folder)
      if (lost !== undefined && options.clock.mono() >= begunMono + LOST_MS) await endLost(folder, lost, options)
      else if (lost === undefined) {
        if (file === 'broken') repaired(folder, options, `${folder.process} was unreadable, and no broker runs`)
        removeFile(folder.process)
        return { kind: 'none' }
      }
      // It runs, and its supervisor writes the file again in a moment, unless that is dead too.
      if (repairs++ === 0)
        repaired(folder, options, `${folder.process} was ${file === 'broken' ? 'unreadable' : 'gone'} though the broker runs`)
    } else if (!isLocal(file.supervisor)) {
      removeFile(folder.process)
    } else if (isAlive(file.supervisor)) {
      if (file.phase === 'up' && (await brokerAnswers(file))) return { kind: 'up', file }
      const full = isAlive(file.broker) ? undefined : await noRoomError(folder.path)
      if (full !== undefined) throw full
    } else if (isAlive(file.broker) && file.phase !== 'stopping' && (await brokerAnswers(file))) {
      return { kind: 'orphan', file }
    } else {
      await putAway(folder, file, options)
      return { kind: 'none' }
    }
    const starts = file !== undefined && file !== 'broken' && file.phase === 'starting'
    if (starts ? !start.mayGoOn() : options.clock.mono() >= deadline) throw doesNotAnswer(folder, file)
    await options.clock.sleep(POLL_MS, options.signal)
  }
}

/** The broker of this folder that a supervisor started and did not live to write down. */
export function lostBroker(folder: BrokerFolder): ProcessIdentity | undefined {
  const mark = folderMark(folder.path)
  return findProcess(brokerMark(mark)) ?? findProcess(containerLabel(mark))
}

/** Ends a broker that has no supervisor. */
export async function endBroker(folder: BrokerFolder, broker: ProcessIdentity, clock: Clock): Promise<void> {
  for (const name of ['SIGTERM', 'SIGKILL'] as const) {
    signalTo(broker, name)
    const deadline = clock.mono() + END_MS
    while (isAlive(broker) && clock.mono() < deadline) await clock.sleep(POLL_MS)
    if (!isAlive(broker)) break
  }
  removeFile(folder.process)
}

async function endLost(folder: BrokerFolder, broker: ProcessIdentity, options: FindOptions): Promise<void> {
  repaired(folder, options, `a broker runs (${describeProcess(broker)}) that no supervisor knows of: it is ended`)
  await endBroker(folder, broker, options.clock)
}

async function putAway(folder: BrokerFolder, file: ProcessFile, options: FindOptions): Promise<void> {
  if (isAlive(file.broker)) {
    repaired(folder, options, `the supervisor is dead and the broker (${describeProcess(file.broker)}) does not answer: it is ended`)
    // One that has not come up serves nobody, and hears no SIGTERM before it has.
    if (file.phase === 'starting') signalTo(file.broker, 'SIGKILL')
    await endBroker(folder, file.broker, options.clock)
    return
  }
  repaired(folder, options, `the broker (${describeProcess(file.broker)}) is dead and was not stopped in order`)
  removeFile(folder.process)
  const lost = lostBroker(folder)
  if (lost !== undefined) await endLost(folder, lost, options)
}

function doesNotAnswer(folder: BrokerFolder, file: ProcessFile | 'broken' | undefined): MillraceError {
  const who = file === undefined || file === 'broken' ? 'it' : describeProcess(file.broker)
  return new MillraceError(
    'KAFKA_START_FAILED',
    `a broker runs in ${folder.path} (${who}) but can't be used: it did not answer as registered, or nothing says which process it is, for too long. ` +
      `Its log is ${folder.log}; end the process and try again`,
    { context: { folder: folder.path } },
  )
}

function repaired(folder: BrokerFolder, options: FindOptions, what: string): void {
  options.observer.emit('BrokerRepaired', { what, folder: folder.path })
}
