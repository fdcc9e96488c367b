import { existsSync } from 'node:fs'
import type { Clock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import { describeProcess, isAlive, isLocal, ownIdentity } from '../machine/process-identity.ts'
import { writeJsonFile } from './atomic-file.ts'
import {
  type BrokerFolder,
  brokenFolderError,
  brokerFolder,
  createBrokerFolder,
  readClusterFile,
  readProcessFile,
  removeFile,
  START_LOCK,
} from './broker-folder.ts'
import type { AcquireBrokerOptions, EmbeddedBroker } from './broker-options.ts'
import { type BrokerRuntime, findRuntime } from './broker-runtime.ts'
import { adoptBroker, startBroker } from './broker-start.ts'
import { type HeldLock, waitForLock } from './file-lock.ts'
import { addLease, liveLeases } from './leases.ts'
import { endBroker, type FoundBroker, findBroker } from './running-broker.ts'
import { START_MS } from './slow-start.ts'
import { SupervisorWatch } from './supervisor-watch.ts'

/** Longer than any start of another process; installing and downloading happen outside the lock. */
const LOCK_MS = START_MS + 60_000
/** The supervisor kills it after 30 s, and takes it out of service then. */
const STOP_WAIT_MS = 60_000
const POLL_MS = 25

/**
 * The broker of this data folder, for as long as the caller needs it: the one that is up, else a new one.
 *
 * Errors: KAFKA_NOT_AVAILABLE when nothing here can start one; KAFKA_START_FAILED with the last lines of its log; DATA_DIR_BROKEN;
 * DATA_DIR_UNUSABLE; DATA_DIR_LOCKED when another process has held its start lock for eleven minutes; DISK_FULL; USAGE when it is up on
 * another port than the one asked for; `signal.reason`.
 */
export async function acquireBroker(options: AcquireBrokerOptions): Promise<EmbeddedBroker> {
  const folder = brokerFolder(options.dataDir)
  try {
    createBrokerFolder(folder)
    let runtime: BrokerRuntime | undefined
    for (;;) {
      const broker = await joinOrStart(folder, runtime, options)
      if (broker !== undefined) return broker
      const cluster = readClusterFile(folder)
      const boundTo = cluster === undefined || cluster === 'broken' ? undefined : cluster.via
      runtime = await findRuntime({ ...options, boundTo })
    }
  } catch (error) {
    throw brokenFolderError(folder.path, error)
  }
}

/** Starts the broker where none is up and leaves it running (`millrace up`). */
export async function keepBroker(options: Omit<AcquireBrokerOptions, 'keep'>): Promise<{ port: number; clusterId: string }> {
  const broker = await acquireBroker({ ...options, keep: true })
  await broker.release({ wait: false })
  return { port: broker.port, clusterId: broker.clusterId }
}

/**
 * Stops the broker, also a kept one (`millrace down`). Shape: false when none ran. Errors: DATA_DIR_LOCKED naming the users when
 * others work with it; nothing was done then.
 */
export async function downBroker(options: { dataDir: string; clock: Clock; observer: Observer; signal?: AbortSignal }): Promise<boolean> {
  const folder = brokerFolder(options.dataDir)
  if (!existsSync(folder.path)) return false
  try {
    const lock = await lockStart(folder, 'millrace down', options)
    let found: 'none' | 'stopping'
    try {
      found = await orderDown(folder, options)
    } finally {
      lock.release()
    }
    if (found === 'none') return false
    await untilDown(folder, options)
    options.observer.emit('BrokerStopped', { folder: folder.path })
    return true
  } catch (error) {
    throw brokenFolderError(folder.path, error)
  }
}

/** Under the start lock: the supervisor stops a broker that nobody uses or keeps; one without a supervisor is ended here. */
async function orderDown(
  folder: BrokerFolder,
  options: { clock: Clock; observer: Observer; signal?: AbortSignal },
): Promise<'none' | 'stopping'> {
  const users = liveLeases(folder)
  if (users.length > 0) {
    const list = users.map((user) => `\`${user.owner}\` (${describeProcess(user.process)})`).join(', ')
    throw new MillraceError(
      'DATA_DIR_LOCKED',
      `the broker in ${folder.path} is in use by ${list}: stop these first; the last one ends the broker unless \`millrace up\` keeps it`,
      { context: { folder: folder.path } },
    )
  }
  removeFile(folder.keep)
  const file = readProcessFile(folder)
  // Not asked whether it answers: one that hangs is stopped as well.
  if (file !== undefined && file !== 'broken' && isLocal(file.supervisor) && isAlive(file.supervisor)) return 'stopping'
  const found = await findBroker(folder, options)
  if (found.kind === 'none') return 'none'
  if (found.kind === 'orphan') await endBroker(folder, found.file.broker, options.clock)
  return 'stopping'
}

/** Undefined when none is up and `runtime` is not known yet. */
async function joinOrStart(
  folder: BrokerFolder,
  runtime: BrokerRuntime | undefined,
  options: AcquireBrokerOptions,
): Promise<EmbeddedBroker | undefined> {
  const lock = await lockStart(folder, options.owner, options)
  let removeLease: (() => void) | undefined
  try {
    const found = await findBroker(folder, options)
    if (found.kind === 'none' && runtime === undefined) return undefined
    // Before anything is started: its supervisor must find a user.
    removeLease = addLease(folder, options.owner)
    const up = await bringUp(folder, found, runtime, options)
    if (options.keep === true) writeJsonFile(folder.keep, { process: ownIdentity(), owner: options.owner })
    const broker = handle(folder, up, removeLease, options)
    removeLease = undefined
    return broker
  } finally {
    removeLease?.()
    lock.release()
  }
}

async function bringUp(
  folder: BrokerFolder,
  found: FoundBroker,
  runtime: BrokerRuntime | undefined,
  options: AcquireBrokerOptions,
): Promise<{ port: number; clusterId: string }> {
  if (found.kind === 'none') {
    if (runtime === undefined) throw new MillraceError('INTERNAL', 'a broker can not be started before a way to start it was found')
    return startBroker(folder, runtime, options)
  }
  if (options.port !== undefined && found.file.port !== options.port) {
    throw new MillraceError(
      'USAGE',
      `the broker in ${folder.path} is already up on port ${found.file.port}, not ${options.port}: \`millrace down\` first`,
    )
  }
  if (found.kind === 'orphan') await adoptBroker(folder, options)
  return found.file
}

function handle(
  folder: BrokerFolder,
  up: { port: number; clusterId: string },
  removeLease: () => void,
  options: AcquireBrokerOptions,
): EmbeddedBroker {
  let released = false
  const watch = new SupervisorWatch(folder, options)
  return {
    brokers: [`127.0.0.1:${up.port}`],
    clusterId: up.clusterId,
    port: up.port,
    lost: watch.lost,
    release: async ({ wait = true } = {}) => {
      if (released) return
      released = true
      await watch.release()
      removeLease()
      if (!wait || existsSync(folder.keep) || liveLeases(folder).length > 0) return
      await untilDown(folder, { clock: options.clock })
      options.observer.emit('BrokerStopped', { folder: folder.path })
    },
  }
}

/** Resolves when no broker runs here any more, or when a new user has joined meanwhile and it stays. */
async function untilDown(folder: BrokerFolder, options: { clock: Clock; signal?: AbortSignal }): Promise<void> {
  const deadline = options.clock.mono() + STOP_WAIT_MS
  for (;;) {
    const file = readProcessFile(folder)
    if (file === undefined) return
    if (file !== 'broken' && (!isLocal(file.supervisor) || !isAlive(file.supervisor))) return
    if (existsSync(folder.keep) || liveLeases(folder).length > 0) return
    if (options.clock.mono() >= deadline) {
      throw new MillraceError(
        'TIMEOUT',
        `the broker in ${folder.path} has not ended within ${STOP_WAIT_MS / 1000} s; its log is ${folder.log}`,
      )
    }
    await options.clock.sleep(POLL_MS, options.signal)
  }
}

async function lockStart(
  folder: BrokerFolder,
  what: string,
  options: { clock: Clock; observer: Observer; signal?: AbortSignal },
): Promise<HeldLock> {
  const { clock, signal } = options
  const lock = await waitForLock({
    folder: folder.path,
    name: START_LOCK,
    what,
    waitMs: LOCK_MS,
    clock,
    ...(signal === undefined ? {} : { signal }),
  })
  if (lock.takenOverFrom !== undefined) {
    const dead = describeProcess(lock.takenOverFrom.process)
    options.observer.emit('BrokerRepaired', {
      what: `the start lock was left by \`${lock.takenOverFrom.what}\` (${dead}), which is dead`,
      folder: folder.path,
    })
  }
  return lock
}
