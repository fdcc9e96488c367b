import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { findRuntime } from '../../src/embedded/broker-runtime.ts'
import { runCommand } from '../../src/embedded/run-command.ts'
import { brokerOptions, RecordingObserver, testCacheDir } from './embedded.ts'
import { run, type ToolResult } from './kafka-tools.ts'
import { putInPlace } from './put-in-place.ts'

export type JavaRunner =
  | { readonly kind: 'java'; readonly run: (file: string, args: readonly string[], cwd?: string) => Promise<ToolResult> }
  | { readonly kind: 'none'; readonly reason: string }

const AVRO = 'org.apache.avro:avro:1.12.0'

/** Runs one Java source file with Kafka's client and Apache's Avro library. Shape: a reason where there is no compiler, or no library. */
export async function findJavaRunner(): Promise<JavaRunner> {
  const runtime = await findRuntime({ ...brokerOptions('.', new RecordingObserver()), boundTo: 'java' })
  if (runtime.kind !== 'java') return { kind: 'none', reason: 'there is no Java' }
  const { command } = runtime.java
  const modules = await runCommand(command, ['--list-modules'], { timeoutMs: 30_000 })
  if (modules.kind !== 'done' || !modules.output.includes('jdk.compiler')) return { kind: 'none', reason: 'this Java has no compiler' }
  const folder = join(testCacheDir(), AVRO.replaceAll(':', '-'))
  if (!existsSync(folder)) {
    const place = mkdtempSync(join(makeCache(), 'avro-'))
    const copied = await runCommand('mvn', ['-B', '-q', 'dependency:copy', `-Dartifact=${AVRO}`, `-DoutputDirectory=${place}`], {
      timeoutMs: 90_000,
    })
    if (copied.kind !== 'done') {
      rmSync(place, { recursive: true })
      return { kind: 'none', reason: copied.kind === 'missing' ? 'there is no mvn' : `Maven could not fetch ${AVRO} (${copied.how})` }
    }
    putInPlace(place, folder)
    rmSync(place, { recursive: true, force: true })
  }
  const jars = [...runtime.jars.jars, ...readdirSync(folder).map((name) => join(folder, name))]
  const options = ['-XX:TieredStopAtLevel=1', '-Dorg.slf4j.simpleLogger.defaultLogLevel=error', '-cp', jars.join(':')]
  return { kind: 'java', run: (file, args, cwd) => run(command, [...options, file, ...args], '', cwd) }
}

function makeCache(): string {
  mkdirSync(testCacheDir(), { recursive: true })
  return testCacheDir()
}
