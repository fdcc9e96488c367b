import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../kernel/clock.ts'
import type { Observer } from '../kernel/observe.ts'
import { makeFolder } from '../machine/make-folder.ts'
import { readJsonFile, temporaryBeside, writeJsonFile } from './atomic-file.ts'
import { runCommand, tail } from './run-command.ts'

export const KAFKA_VERSION = '4.4.0'

/**
 * The jars in the user's cache folder, one folder for each version of the pom. The folder is filled beside its place and moved there in
 * one step, so that it is whole or not there, whoever else does the same at that moment.
 */
export interface KafkaJars {
  readonly kind: 'jars'
  readonly folder: string
  /** Absolute paths, sorted: the class-data archive is bound to their order. */
  readonly jars: readonly string[]
  /** Changes with any path, size or time of change: Java passes over a class-data archive of jars that differ in one of them, silently. */
  readonly fingerprint: string
}

export interface NoJars {
  readonly kind: 'none'
  readonly reason: string
}

interface Marker {
  readonly kafkaVersion: string
  readonly files: Readonly<Record<string, number>>
}

/** The cached jars, when they are all there in their full length. */
export function cachedJars(cacheDir: string): KafkaJars | undefined {
  return readJars(jarsFolder(cacheDir))
}

/**
 * The jars from the cache, else through Maven. Errors: as values; `signal.reason` when aborted. Emits DependencyInstalling before it
 * downloads.
 */
export async function resolveJars(options: {
  cacheDir: string
  clock: Clock
  observer: Observer
  signal?: AbortSignal
}): Promise<KafkaJars | NoJars> {
  const folder = jarsFolder(options.cacheDir)
  const cached = readJars(folder)
  if (cached !== undefined) return cached
  makeFolder(options.cacheDir)
  sweepTemporary(options.cacheDir, options.clock.now())
  const maven = await runCommand('mvn', ['-B', '-v'], { timeoutMs: 30_000, ...optionalSignal(options.signal) })
  if (maven.kind === 'missing')
    return { kind: 'none', reason: `the jars of Kafka ${KAFKA_VERSION} are not in ${options.cacheDir}, and there is no mvn on the PATH` }
  if (maven.kind === 'failed') return { kind: 'none', reason: `mvn does not run (${maven.how}): ${tail(maven.output, 3)}` }
  options.observer.emit('DependencyInstalling', { what: `Apache Kafka ${KAFKA_VERSION} (about 43 MB)`, by: 'Maven', into: folder })
  const temporary = temporaryBeside(folder)
  try {
    const args = ['-B', '-q', '-f', pomPath(), 'dependency:copy-dependencies', `-DoutputDirectory=${join(temporary, 'lib')}`]
    const copied = await runCommand('mvn', args, { timeoutMs: 600_000, ...optionalSignal(options.signal) })
    if (copied.kind !== 'done') {
      return {
        kind: 'none',
        reason: copied.kind === 'missing' ? 'mvn is gone' : `Maven could not resolve the jars (${copied.how}): ${tail(copied.output, 4)}`,
      }
    }
    writeMarker(temporary)
    return moveIntoPlace(temporary, folder)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

export function pomPath(): string {
  return fileURLToPath(new URL('../../src/embedded/pom.xml', import.meta.url))
}

function jarsFolder(cacheDir: string): string {
  const pom = createHash('sha256').update(readFileSync(pomPath())).digest('hex').slice(0, 8)
  return join(cacheDir, `kafka-${KAFKA_VERSION}-${pom}`)
}

function moveIntoPlace(temporary: string, folder: string): KafkaJars | NoJars {
  for (let attempt = 0; attempt < 5; attempt++) {
    try {
      renameSync(temporary, folder)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
    }
    const placed = readJars(folder)
    if (placed !== undefined) return placed
    // What lies there is broken: out of the way with it, in one step, and again.
    const aside = temporaryBeside(folder)
    try {
      renameSync(folder, aside)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    rmSync(aside, { recursive: true, force: true })
  }
  return { kind: 'none', reason: `the jars can't be put into ${folder}: other processes change it all the time` }
}

function writeMarker(folder: string): void {
  const files: Record<string, number> = {}
  for (const name of readdirSync(join(folder, 'lib'))) files[name] = statSync(join(folder, 'lib', name)).size
  const marker: Marker = { kafkaVersion: KAFKA_VERSION, files }
  writeJsonFile(join(folder, 'complete.json'), marker)
}

function readJars(folder: string): KafkaJars | undefined {
  const file = readJsonFile(join(folder, 'complete.json'))
  if (file.kind !== 'value' || typeof file.value !== 'object' || file.value === null) return undefined
  const { kafkaVersion, files } = file.value as Partial<Marker>
  if (kafkaVersion !== KAFKA_VERSION || files === undefined) return undefined
  const names = Object.keys(files).sort()
  const jars: string[] = []
  const fingerprint = createHash('sha256')
  for (const name of names) {
    const path = join(folder, 'lib', name)
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined || stats.size !== files[name]) return undefined
    jars.push(path)
    fingerprint.update(`${path}\0${stats.size}\0${stats.mtimeMs}\0`)
  }
  return jars.length === 0 ? undefined : { kind: 'jars', folder, jars, fingerprint: fingerprint.digest('hex') }
}

/** Takes away what a killed process left half downloaded a day ago or longer. */
function sweepTemporary(cacheDir: string, nowMs: number): void {
  for (const name of existsSync(cacheDir) ? readdirSync(cacheDir) : []) {
    if (!name.startsWith('.kafka-') || !name.endsWith('.tmp')) continue
    const path = join(cacheDir, name)
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats !== undefined && nowMs - stats.mtimeMs > 86_400_000) rmSync(path, { recursive: true, force: true })
  }
}

function optionalSignal(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal }
}
