import { createHash } from 'node:crypto'
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readJsonFile, temporaryBeside, writeJsonFile } from './atomic-file.ts'
import type { BrokerFolder } from './broker-folder.ts'
import { containerName, dockerRunArgs } from './docker-engine.ts'
import type { Java } from './java-runtime.ts'
import type { KafkaJars } from './kafka-jars.ts'
import type { BrokerPorts } from './server-properties.ts'

/** How the supervisor starts the broker, again after a crash as well. */
export interface LaunchSpec {
  readonly command: string
  readonly args: readonly string[]
  readonly clusterId: string
  readonly port: number
  /** Arguments of the run that takes a killed broker out of service before it starts again (former-registration.ts); empty: none. */
  readonly fencingArgs: readonly string[]
  /** Name of the container, which may outlive the client that is our child; empty for Java. */
  readonly container: string
  /** A class-data archive that this run writes when it ends, and where it belongs then; empty when there is one already. */
  readonly archiveWritten: string
  readonly archivePlace: string
}

/**
 * Java in its quickest form for a short life: one compiler level and the simplest collector, and the classes loaded from an archive.
 * The first run with these jars and this Java writes the archive when it ends; it is bound to both, in this order of the class path.
 */
export function javaLaunch(options: {
  java: Java
  jars: KafkaJars
  clusterId: string
  mark: string
  port: number
  useArchive: boolean
}): LaunchSpec {
  const archive = archivePath(options.java, options.jars)
  const present = existsSync(archive)
  const written = present || !options.useArchive ? '' : temporaryBeside(archive)
  const readArgs = options.useArchive && present ? [`-XX:SharedArchiveFile=${archive}`] : []
  const writeArgs = written === '' ? [] : [`-XX:ArchiveClassesAtExit=${written}`]
  const program = (...own: string[]): string[] => [
    '-Xms64m',
    '-Xmx384m',
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    // A broker that has run out of memory answers nothing and holds its port: better it ends, and is started again.
    '-XX:+ExitOnOutOfMemoryError',
    '-XX:ErrorFile=java-crash.log',
    '-XX:-CreateCoredumpOnCrash',
    '-Xshare:auto',
    ...readArgs,
    '-Xlog:disable',
    '-Xlog:all=error:stderr',
    '-Djava.awt.headless=true',
    '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
    '-Dorg.slf4j.simpleLogger.showDateTime=true',
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ",
    ...own,
  ]
  const classes = ['-cp', options.jars.jars.join(':'), 'kafka.Kafka']
  return {
    command: options.java.command,
    args: [...program(...writeArgs, brokerMark(options.mark)), ...classes, 'server.properties'],
    clusterId: options.clusterId,
    port: options.port,
    fencingArgs: [...program(FENCING_LOG, fencingMark(options.mark)), ...classes, 'fencing.properties'],
    container: '',
    archiveWritten: written,
    archivePlace: written === '' ? '' : archive,
  }
}

/** What the fencing run is asked to say. */
const FENCING_LOG = '-Dorg.slf4j.simpleLogger.log.org.apache.kafka.controller.ReplicationControlManager=info'

/** As `brokerMark`, for the fencing run. */
export function fencingMark(mark: string): string {
  return `-Dmillrace.fencing=${mark}`
}

/**
 * An argument by which the Java process of a folder (`folderMark`) is found again when nothing says its pid any more. Not by its cluster:
 * a copy of the folder has the same, and must never end the broker of the original.
 */
export function brokerMark(mark: string): string {
  return `-Dmillrace.folder=${mark}`
}

export function dockerLaunch(clusterId: string, ports: BrokerPorts, mark: string): LaunchSpec {
  return {
    command: 'docker',
    args: dockerRunArgs(clusterId, ports, mark),
    clusterId,
    port: ports.port,
    fencingArgs: [],
    container: containerName(clusterId),
    archiveWritten: '',
    archivePlace: '',
  }
}

/** The archive for these jars and this build of Java, whether it exists or not. */
export function archivePath(java: Java, jars: KafkaJars): string {
  const key = createHash('sha256').update(`${java.build}\0${jars.fingerprint}`).digest('hex').slice(0, 16)
  return join(jars.folder, `classes-${key}.jsa`)
}

const KEPT_ARCHIVES = 3

/** Puts a finished archive in its place. Those of jars and Javas that are gone would stay for ever: the newest few are kept. */
export function placeArchive(spec: LaunchSpec): void {
  renameSync(spec.archiveWritten, spec.archivePlace)
  const folder = dirname(spec.archivePlace)
  const archives = readdirSync(folder)
    .filter((name) => /^classes-[0-9a-f]+\.jsa$/.test(name))
    .map((name) => ({ path: join(folder, name), at: statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((one, other) => other.at - one.at)
  for (const { path } of archives.slice(KEPT_ARCHIVES)) rmSync(path, { force: true })
}

export function writeLaunchSpec(folder: BrokerFolder, spec: LaunchSpec): void {
  writeJsonFile(folder.launch, spec)
}

/** For the folder with this mark. Errors: an Error when the file is missing or not what was written. */
export function readLaunchSpec(folder: BrokerFolder, mark: string): LaunchSpec {
  const file = readJsonFile(folder.launch)
  if (file.kind === 'value' && typeof file.value === 'object' && file.value !== null && 'command' in file.value) {
    const spec = file.value as LaunchSpec
    // An older version has no fencing, or names its processes by their cluster: what is started from now on is found by its folder.
    const ofFolder = (argument: string): string => {
      if (argument.startsWith('-Dmillrace.cluster=')) return brokerMark(mark)
      return argument.startsWith(fencingMark('')) ? fencingMark(mark) : argument
    }
    return { ...spec, args: spec.args.map(ofFolder), fencingArgs: (spec.fencingArgs ?? []).map(ofFolder) }
  }
  throw new Error(`${folder.launch} is ${file.kind === 'missing' ? 'missing' : 'broken'}`)
}
