import { randomBytes } from 'node:crypto'
import { closeSync, copyFileSync, fstatSync, openSync, readSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isMillraceError, MillraceError } from '../kernel/errors.ts'
import { isOfFolder } from '../machine/folder-mark.ts'
import { makeFolder } from '../machine/make-folder.ts'
import { type ProcessIdentity, parseIdentity } from '../machine/process-identity.ts'
import { readJsonFile, writeJsonFile } from './atomic-file.ts'

/**
 * The folder of the embedded broker and the files in it. Each has one writer:
 *
 * - `start.lock.<n>`  whoever starts, joins or stops the broker
 * - `leases/`         one file for each user (its own process)
 * - `cluster.json`    cluster id, directory id and ports, kept over restarts (the holder of the lock)
 * - `launch.json`     the command line of the broker (the holder of the lock)
 * - `keep`            there while `up` keeps the broker (the holder of the lock)
 * - `process.json`    the running broker (its supervisor); missing when none runs
 * - `fenced.json`     how far the controller's log went when the broker was taken out of service (the supervisor)
 * - `failure.json`    why the last start failed (the supervisor)
 * - `data/`           the logs (Kafka)
 */
export interface BrokerFolder {
  readonly path: string
  readonly leases: string
  readonly cluster: string
  readonly launch: string
  readonly keep: string
  readonly process: string
  readonly failure: string
  readonly data: string
  readonly properties: string
  readonly fencingProperties: string
  readonly fenced: string
  readonly log: string
  readonly supervisorLog: string
}

export function brokerFolder(dataDir: string): BrokerFolder {
  const path = resolve(dataDir, 'kafka')
  return {
    path,
    leases: join(path, 'leases'),
    cluster: join(path, 'cluster.json'),
    launch: join(path, 'launch.json'),
    keep: join(path, 'keep'),
    process: join(path, 'process.json'),
    failure: join(path, 'failure.json'),
    data: join(path, 'data'),
    properties: join(path, 'server.properties'),
    fencingProperties: join(path, 'fencing.properties'),
    fenced: join(path, 'fenced.json'),
    log: join(path, 'broker.log'),
    supervisorLog: join(path, 'supervisor.log'),
  }
}

export function createBrokerFolder(folder: BrokerFolder): void {
  makeFolder(folder.leases)
}

/** Name of the lock in the broker's folder. */
export const START_LOCK = 'start.lock'

/** What starts the broker: Java with the jars, or a Docker engine. Data written by one can't be read by the other. */
export type BrokerVia = 'java' | 'docker'

export interface ClusterFile {
  readonly clusterId: string
  readonly directoryId: string
  readonly port: number
  readonly controllerPort: number
  readonly via: BrokerVia
}

/** `starting`: runs, does not answer yet. `up`: answers. `stopping`: was told to end. */
export type BrokerPhase = 'starting' | 'up' | 'stopping'

export interface ProcessFile {
  readonly phase: BrokerPhase
  readonly clusterId: string
  readonly port: number
  readonly supervisor: ProcessIdentity
  readonly broker: ProcessIdentity
}

/** Undefined when missing; `broken` when it is there and not what was written. */
export type StateFile<T> = T | 'broken' | undefined

export function readClusterFile(folder: BrokerFolder): StateFile<ClusterFile> {
  const file = readJsonFile(folder.cluster)
  if (file.kind !== 'value') return file.kind === 'missing' ? undefined : 'broken'
  const { clusterId, directoryId, port, controllerPort, via } = (file.value ?? {}) as Record<string, unknown>
  if (!isId(clusterId) || !isId(directoryId) || !isPort(port) || !isPort(controllerPort)) return 'broken'
  if (via !== 'java' && via !== 'docker') return 'broken'
  return { clusterId, directoryId, port, controllerPort, via }
}

export function writeClusterFile(folder: BrokerFolder, cluster: ClusterFile): void {
  writeJsonFile(folder.cluster, cluster)
}

/** The folder is the one that its supervisor began in, which may have moved since (`folderMark`). Errors: those of the file system. */
export function writeProcessFile(folder: BrokerFolder, mark: string, file: ProcessFile): void {
  writeJsonFile(folder.process, { folder: mark, ...file })
}

/** A note that was copied along with its folder counts as missing: it names the broker of the other folder. */
export function readProcessFile(folder: BrokerFolder): StateFile<ProcessFile> {
  const file = readJsonFile(folder.process)
  if (file.kind !== 'value') return file.kind === 'missing' ? undefined : 'broken'
  const { folder: mark, phase, clusterId, port, supervisor, broker } = (file.value ?? {}) as Record<string, unknown>
  const parsedSupervisor = parseIdentity(supervisor)
  const parsedBroker = parseIdentity(broker)
  if (parsedSupervisor === undefined || parsedBroker === undefined || !isId(clusterId) || !isPort(port)) return 'broken'
  if (phase !== 'starting' && phase !== 'up' && phase !== 'stopping') return 'broken'
  if (!isOfFolder(folder.path, mark)) return undefined
  return { phase, clusterId, port, supervisor: parsedSupervisor, broker: parsedBroker }
}

/** Kafka's ids: 16 bytes in base64url. */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9_-]{22}$/.test(value)
}

/** A random id as Kafka makes them: 16 bytes in base64url, never with a leading dash, which its tools would take for an option. */
export function newKafkaId(): string {
  for (;;) {
    const id = randomBytes(16).toString('base64url')
    if (!id.startsWith('-')) return id
  }
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536
}

/** Size at which the log starts anew; two files are kept, so the folder never holds more than twice this. */
const MAX_LOG_BYTES = 8 * 1024 * 1024

/** Moves the log of the last run aside; the one before it goes. */
export function rotateLog(path: string): void {
  try {
    renameSync(path, `${path}.1`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Empties a log that has grown too long while its writer (in append mode) goes on. */
export function boundLog(path: string, maxBytes = MAX_LOG_BYTES): void {
  try {
    if (statSync(path).size <= maxBytes) return
    copyFileSync(path, `${path}.1`)
    truncateSync(path, 0)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // Without room for the copy the old lines are given up.
    if (code === 'ENOSPC' || code === 'EDQUOT') truncateSync(path, 0)
    else if (code !== 'ENOENT') throw error
  }
}

/** The last lines of a log, oldest first, without the frames of stacks; empty when there is none. */
export function lastLines(path: string, count: number): string[] {
  let handle: number
  try {
    handle = openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  try {
    const size = fstatSync(handle).size
    const buffer = Buffer.alloc(Math.min(size, 32 * 1024))
    readSync(handle, buffer, 0, buffer.length, size - buffer.length)
    const lines = buffer.toString('utf8').split('\n')
    return lines.filter((line) => line.trim() !== '' && !/^\s+at |^\s+\.\.\. \d+ more/.test(line)).slice(-count)
  } finally {
    closeSync(handle)
  }
}

export function removeFile(path: string): void {
  rmSync(path, { force: true })
}

/** Puts a failure of the file system into the words of the catalogue; anything else comes back as it is. */
export function brokenFolderError(path: string, error: unknown): unknown {
  if (isMillraceError(error)) return error
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new MillraceError('DISK_FULL', `no space is left on the disk of ${path}`, { cause: error, context: { path } })
  }
  const reason = code === undefined ? undefined : REASONS[code]
  if (reason === undefined) return error
  return new MillraceError('DATA_DIR_UNUSABLE', `the data folder ${path} can't be used: ${reason}`, {
    cause: error,
    context: { path },
  })
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'its file system takes no new folders there',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'it lies on a read-only file system',
  ENOTDIR: 'a part of its path is a file, not a folder',
  EEXIST: 'a file lies where a folder was expected',
  EISDIR: 'a folder lies where a file was expected',
  ELOOP: 'its path runs through a circle of symbolic links',
  ENAMETOOLONG: 'its path is too long',
}
