import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { MillraceError } from '../kernel/errors.ts'
import { folderMark } from '../machine/folder-mark.ts'
import { readJsonFile, writeFileAtomic } from './atomic-file.ts'
import {
  type BrokerFolder,
  type BrokerVia,
  type ClusterFile,
  lastLines,
  newKafkaId,
  readClusterFile,
  readProcessFile,
  removeFile,
  rotateLog,
  writeClusterFile,
} from './broker-folder.ts'
import type { AcquireBrokerOptions } from './broker-options.ts'
import type { BrokerRuntime } from './broker-runtime.ts'
import { prepareLog } from './data-folder.ts'
import { containerFolder, containerName } from './docker-engine.ts'
import { bootstrapSnapshot } from './format-template.ts'
import { archivePath, dockerLaunch, javaLaunch, type LaunchSpec, writeLaunchSpec } from './launch-spec.ts'
import { choosePort, isPortFree } from './ports.ts'
import { brokerProperties, fencingProperties, renderProperties } from './server-properties.ts'
import { SlowStart, START_MS } from './slow-start.ts'
import { spawnSupervisor } from './supervisor-process.ts'

const POLL_MS = 15
/** A line of Kafka's own, as against one of Java's. */
const KAFKA_LOG_LINE = /^\d{4}-\d\d-\d\dT\S+ \[.*\] (WARN|ERROR) /

/**
 * Starts the broker of a data folder. The caller holds the start lock and a lease, and has made sure that none runs. Shape: resolves
 * when the broker answers as registered. Errors: KAFKA_START_FAILED with the last lines of its log; DATA_DIR_BROKEN; `signal.reason`.
 */
export async function startBroker(folder: BrokerFolder, runtime: BrokerRuntime, options: AcquireBrokerOptions): Promise<ClusterFile> {
  const startedMono = options.clock.mono()
  // `up` kept the broker that is gone; who wants to keep this one says so again.
  removeFile(folder.keep)
  const repaired = (what: string): void => options.observer.emit('BrokerRepaired', { what, folder: folder.path })
  const cluster = await prepareCluster(folder, runtime, options, repaired)
  let attempt = await launch(folder, runtime, cluster, options, true)
  // Whoever killed it can do so at any moment, this one included: another supervisor goes on with the broker, which runs.
  if (attempt.kind === 'failed' && attempt.supervisorKilled) attempt = await supervised(folder, options)
  if (attempt.kind === 'failed' && !attempt.supervisorKilled && runtime.kind === 'java' && !options.signal?.aborted) {
    const archive = archivePath(runtime.java, runtime.jars)
    if (existsSync(archive) && !attempt.log.some((line) => KAFKA_LOG_LINE.test(line))) {
      // A damaged class-data archive takes Java down before Kafka says a word. Without it the start is slower; the next run writes another.
      removeFile(archive)
      attempt = await launch(folder, runtime, cluster, options, false)
      if (attempt.kind === 'up') repaired('the class-data archive was unusable and was removed')
    }
  }
  if (attempt.kind === 'failed') throw startFailed(folder, attempt)
  options.observer.emit('BrokerStarted', {
    port: cluster.port,
    clusterId: cluster.clusterId,
    ms: Math.round(options.clock.mono() - startedMono),
  })
  return cluster
}

/** Error for a start that failed, with what the broker said last. */
export function startFailed(folder: BrokerFolder, failure: { reason: string; log: readonly string[] }): MillraceError {
  const full = failure.log.some((line) => /No space left on device|Disk quota exceeded/i.test(line))
  const lines = failure.log.length === 0 ? `its log ${folder.log} is empty` : `the end of ${folder.log}:\n  ${failure.log.join('\n  ')}`
  return new MillraceError(
    full ? 'DISK_FULL' : 'KAFKA_START_FAILED',
    `Apache Kafka did not start in ${folder.path}: ${full ? 'no space is left on the disk' : failure.reason}; ${lines}`,
    { context: { folder: folder.path } },
  )
}

async function prepareCluster(
  folder: BrokerFolder,
  runtime: BrokerRuntime,
  options: AcquireBrokerOptions,
  repaired: (what: string) => void,
): Promise<ClusterFile> {
  const noted = readClusterFile(folder)
  if (noted === 'broken') repaired(`${folder.cluster} was unreadable and was written again`)
  const known = noted === 'broken' ? undefined : noted
  let identity = known === undefined ? { clusterId: newKafkaId(), directoryId: newKafkaId() } : known
  if (runtime.kind === 'java') {
    const snapshot = await bootstrapSnapshot(runtime.java, runtime.jars, options.signal)
    const prepared = prepareLog(folder, known, snapshot)
    identity = prepared.identity
    for (const what of prepared.repairs) repaired(what)
  } else if (known !== undefined) {
    await refuseCopy(folder, known.clusterId, options.signal)
  }
  const ports = await choosePorts(known, options)
  const via: BrokerVia = runtime.kind
  const cluster: ClusterFile = { clusterId: identity.clusterId, directoryId: identity.directoryId, ...ports, via }
  writeClusterFile(folder, cluster)
  const properties = brokerProperties(cluster)
  writeFileAtomic(folder.properties, renderProperties(properties))
  writeFileAtomic(folder.fencingProperties, renderProperties(fencingProperties(properties)))
  return cluster
}

/** A copy has the volume of the original as well, whose broker must not be ended for it. */
async function refuseCopy(folder: BrokerFolder, clusterId: string, signal: AbortSignal | undefined): Promise<void> {
  const user = await containerFolder(clusterId, signal)
  if (user === '' || user === folderMark(folder.path)) return
  throw new MillraceError(
    'DATA_DIR_LOCKED',
    `${folder.path} is a copy of another data folder whose broker runs, and with Docker both have one volume: stop that one first, ` +
      `or, where its folder is gone, \`docker stop ${containerName(clusterId)}\``,
    { context: { folder: folder.path } },
  )
}

async function choosePorts(
  known: ClusterFile | undefined,
  options: AcquireBrokerOptions,
): Promise<{ port: number; controllerPort: number }> {
  const wanted = options.port ?? known?.port
  let port = wanted
  if (port === undefined) port = await choosePort()
  else if (!(await isPortFree(port))) {
    if (options.port !== undefined) {
      throw new MillraceError('KAFKA_START_FAILED', `port ${port} of 127.0.0.1 is taken by another program; choose another with --port`, {
        context: { port },
      })
    }
    port = await choosePort([port])
    options.observer.emit('BrokerPortChanged', { from: wanted, port })
  }
  const knownController = known?.controllerPort
  const keep = knownController !== undefined && knownController !== port && (await isPortFree(knownController))
  return { port, controllerPort: keep ? knownController : await choosePort([port]) }
}

type LaunchResult =
  | { readonly kind: 'up' }
  | { readonly kind: 'failed'; readonly reason: string; readonly log: readonly string[]; readonly supervisorKilled: boolean }

async function launch(
  folder: BrokerFolder,
  runtime: BrokerRuntime,
  cluster: ClusterFile,
  options: AcquireBrokerOptions,
  useArchive: boolean,
): Promise<LaunchResult> {
  const { clusterId, port } = cluster
  const mark = folderMark(folder.path)
  const spec: LaunchSpec =
    runtime.kind === 'docker' ? dockerLaunch(clusterId, cluster, mark) : javaLaunch({ ...runtime, clusterId, mark, port, useArchive })
  writeLaunchSpec(folder, spec)
  removeFile(folder.process)
  removeFile(folder.failure)
  rotateLog(folder.log)
  options.observer.emit('BrokerStarting', { folder: folder.path, port, via: runtime.kind })
  return supervised(folder, options)
}

function supervised(folder: BrokerFolder, options: AcquireBrokerOptions): Promise<LaunchResult> {
  return waitUntilUp(folder, spawnSupervisor(folder), options)
}

/** Starts a supervisor for a broker that runs without one. */
export async function adoptBroker(folder: BrokerFolder, options: AcquireBrokerOptions): Promise<void> {
  const adopted = await waitUntilUp(folder, spawnSupervisor(folder), options)
  if (adopted.kind === 'failed') throw startFailed(folder, adopted)
  options.observer.emit('BrokerRepaired', { what: 'the supervisor of the broker was gone: started another', folder: folder.path })
}

async function waitUntilUp(folder: BrokerFolder, supervisor: ChildProcess, options: AcquireBrokerOptions): Promise<LaunchResult> {
  let ended = ''
  let supervisorKilled = false
  supervisor.once('error', (error) => {
    ended = `its supervisor could not be started: ${error.message}`
  })
  supervisor.once('exit', (code, name) => {
    ended = `its supervisor ended (${name ?? `exit code ${code}`})`
    supervisorKilled = name !== null
  })
  const start = new SlowStart(folder.path, options)
  for (;;) {
    const file = readProcessFile(folder)
    if (file !== undefined && file !== 'broken' && file.phase === 'up' && file.supervisor.pid === supervisor.pid) return { kind: 'up' }
    if (ended !== '') return { ...failure(folder, ended), supervisorKilled }
    if (!start.mayGoOn()) return failure(folder, `it did not answer within ${START_MS / 1000} s`)
    await options.clock.sleep(POLL_MS, options.signal)
  }
}

function failure(folder: BrokerFolder, otherwise: string): LaunchResult & { kind: 'failed' } {
  const file = readJsonFile(folder.failure)
  const noted = file.kind === 'value' ? (file.value as { reason?: unknown; log?: unknown }) : {}
  const brokerLog = Array.isArray(noted.log) ? noted.log.map(String) : lastLines(folder.log, 15)
  const log = brokerLog.length > 0 ? brokerLog : lastLines(folder.supervisorLog, 15)
  return { kind: 'failed', supervisorKilled: false, reason: typeof noted.reason === 'string' ? noted.reason : otherwise, log }
}
