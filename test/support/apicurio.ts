import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { javaMajor } from '../../src/embedded/java-runtime.ts'
import { runCommand } from '../../src/embedded/run-command.ts'
import { testCacheDir } from './embedded.ts'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'
import { putInPlace } from './put-in-place.ts'

/** A schema registry of somebody else's, with Confluent's interface. */
export interface Apicurio {
  /** With the path of the interface. */
  readonly url: string
  readonly version: string
  stop(): Promise<void>
}

export type FoundApicurio =
  | { readonly kind: 'apicurio'; readonly version: string; readonly start: () => Promise<Apicurio> }
  | { readonly kind: 'none'; readonly reason: string }

/** The newer one needs Java 21; where there is none, the last that runs on 17. */
const RELEASES = [
  { version: '3.3.3', minJava: 21, jar: 'quarkus-run.jar' },
  { version: '3.0.9', minJava: 17, jar: 'apicurio-registry-app-3.0.9-runner.jar' },
] as const
const DOWNLOAD_MS = 90_000

/** Apicurio Registry from its archive on Maven Central, in the user's cache folder. Shape: a reason where it can't be had. */
export async function findApicurio(): Promise<FoundApicurio> {
  const javas = await findJavas()
  const release = RELEASES.find(({ minJava }) => javas.some(({ major }) => major >= minJava))
  if (release === undefined) return { kind: 'none', reason: 'there is no Java 17 or newer' }
  const java = javas.find(({ major }) => major >= release.minJava)?.command ?? 'java'
  const folder = join(testCacheDir(), `apicurio-${release.version}`)
  if (!existsSync(folder)) {
    const problem = await download(release.version, folder)
    if (problem !== undefined) return { kind: 'none', reason: problem }
  }
  const jar = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((path) => basename(path) === release.jar)
  if (jar === undefined) return { kind: 'none', reason: `there is no ${release.jar} in ${folder}` }
  return { kind: 'apicurio', version: release.version, start: () => start(java, join(folder, jar), release.version) }
}

async function findJavas(): Promise<{ command: string; major: number }[]> {
  const homes = [process.env.JAVA_HOME ?? '', ...installed()].filter((home) => home !== '')
  const found: { command: string; major: number }[] = []
  for (const command of ['java', ...homes.map((home) => join(home, 'bin', 'java')).filter((path) => existsSync(path))]) {
    const result = await runCommand(command, ['-version'], { timeoutMs: 20_000 })
    const major = result.kind === 'done' ? javaMajor(result.output) : undefined
    if (major !== undefined) found.push({ command, major })
  }
  return found
}

/** Where Debian and its like put them. */
function installed(): string[] {
  const folder = '/usr/lib/jvm'
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
}

async function download(version: string, folder: string): Promise<string | undefined> {
  mkdirSync(testCacheDir(), { recursive: true })
  const place = mkdtempSync(join(testCacheDir(), 'apicurio-'))
  try {
    process.stderr.write(`fetching what the tests need: Apicurio Registry ${version}, by Maven, into ${folder}\n`)
    const artifact = `-Dartifact=io.apicurio:apicurio-registry-app:${version}:tar.gz:all`
    const copied = await runCommand('mvn', ['-B', '-q', 'dependency:copy', artifact, `-DoutputDirectory=${place}`], {
      timeoutMs: DOWNLOAD_MS,
    })
    if (copied.kind !== 'done') return copied.kind === 'missing' ? 'there is no mvn' : `Maven could not fetch it (${copied.how})`
    const archive = readdirSync(place).find((name) => name.endsWith('.tar.gz'))
    if (archive === undefined) return 'Maven fetched no archive'
    const unpacked = await runCommand('tar', ['xzf', join(place, archive), '-C', place], { timeoutMs: DOWNLOAD_MS })
    if (unpacked.kind !== 'done') return 'the archive can not be unpacked'
    rmSync(join(place, archive))
    putInPlace(place, folder)
    return undefined
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

async function start(java: string, jar: string, version: string): Promise<Apicurio> {
  const [port, management] = [await freePort(), await freePort()]
  const folder = mkdtempSync(join(tmpdir(), 'millrace-apicurio-'))
  const child = spawn(
    java,
    [
      ...['-Xms64m', '-Xmx128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'],
      ...['-Dquarkus.http.host=127.0.0.1', `-Dquarkus.http.port=${port}`],
      ...['-Dquarkus.management.host=127.0.0.1', `-Dquarkus.management.port=${management}`],
      ...['-jar', jar],
    ],
    { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let log = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-3_000)
    })
  }
  const registry = { url: `http://127.0.0.1:${port}/apis/ccompat/v7`, version, stop: () => stop(child, folder) }
  try {
    await eventually(
      async () => {
        if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`)
        return (await fetch(`${registry.url}/subjects`)).status === 200
      },
      { timeoutMs: 90_000, everyMs: 100, what: 'Apicurio to answer' },
    )
  } catch (error) {
    await registry.stop()
    throw new Error(`Apicurio did not start:\n${log}`, { cause: error })
  }
  return registry
}

async function stop(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
}
