import { isAbsolute, resolve } from 'node:path'
import type { Clock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import type { BrokerVia } from './broker-folder.ts'
import { canInstallPackages, installPackages } from './debian-packages.ts'
import { askDocker } from './docker-engine.ts'
import { findJava, type Java, MIN_JAVA } from './java-runtime.ts'
import { cachedJars, type KafkaJars, resolveJars } from './kafka-jars.ts'

/** What can start a broker on this machine. */
export type BrokerRuntime = { readonly kind: 'java'; readonly java: Java; readonly jars: KafkaJars } | { readonly kind: 'docker' }

export interface FindRuntimeOptions {
  readonly dataDir: string
  readonly cacheDir: string
  readonly javaHome?: string | undefined
  readonly installMissing: boolean
  /** What the data folder was made with, where it has been used before: the other can't read its data. */
  readonly boundTo: BrokerVia | undefined
  readonly clock: Clock
  readonly observer: Observer
  readonly signal?: AbortSignal | undefined
}

/** Java with the jars, else a Docker engine, else (where allowed) Java after installing it. Errors: KAFKA_NOT_AVAILABLE naming all ways. */
export async function findRuntime(options: FindRuntimeOptions): Promise<BrokerRuntime> {
  const javaReason = options.boundTo === 'docker' ? 'the data folder was made with Docker' : ''
  const java = javaReason === '' ? await findJavaRuntime(options) : { kind: 'none' as const, reason: javaReason }
  if (java.kind === 'java') return java
  const docker =
    options.boundTo === 'java' ? { kind: 'none' as const, reason: 'the data folder was made with Java' } : await askDocker(options.signal)
  if (docker.kind === 'answers') return { kind: 'docker' }
  let reason = java.reason
  if (javaReason === '' && options.installMissing && canInstallPackages()) {
    const installed = await installJava(options)
    if (installed.kind === 'java') return installed
    reason = installed.reason
  }
  throw notAvailable(options, reason, docker.reason)
}

async function findJavaRuntime(
  options: FindRuntimeOptions,
): Promise<(BrokerRuntime & { kind: 'java' }) | { kind: 'none'; reason: string }> {
  const cacheDir = isAbsolute(options.cacheDir) ? options.cacheDir : resolve(options.cacheDir)
  const java = await findJava(options.javaHome, options.signal)
  if (java.kind === 'none') return java
  const { clock, observer, signal } = options
  const jars = await resolveJars({ cacheDir, clock, observer, ...(signal === undefined ? {} : { signal }) })
  return jars.kind === 'none' ? jars : { kind: 'java', java, jars }
}

async function installJava(options: FindRuntimeOptions): ReturnType<typeof findJavaRuntime> {
  const missing: string[] = []
  const java = await findJava(options.javaHome, options.signal)
  if (java.kind === 'none') missing.push('openjdk-17-jre-headless')
  if (cachedJars(resolve(options.cacheDir)) === undefined) missing.push('maven')
  const first = await installPackages(missing, options.observer, options.signal)
  if (first.kind === 'installed') return findJavaRuntime(options)
  if (!missing.includes('openjdk-17-jre-headless')) return { kind: 'none', reason: first.reason }
  // A release without Java 17 has a newer one as its default.
  const others = missing.map((name) => (name === 'openjdk-17-jre-headless' ? 'default-jre-headless' : name))
  const second = await installPackages(others, options.observer, options.signal)
  return second.kind === 'installed' ? findJavaRuntime(options) : { kind: 'none', reason: second.reason }
}

function notAvailable(options: FindRuntimeOptions, javaReason: string, dockerReason: string): MillraceError {
  return new MillraceError(
    'KAFKA_NOT_AVAILABLE',
    [
      'there is no Kafka to work with, and none can be started. One of these is needed:',
      '  1. brokers that run elsewhere: `brokers` in the configuration, or --brokers HOST:PORT (none are given)',
      `  2. a broker of \`millrace up\` in this data folder (none is up in ${resolve(options.dataDir)})`,
      `  3. Java ${MIN_JAVA} or newer, and Maven: ${javaReason}`,
      `  4. a Docker engine, for apache/kafka: ${dockerReason}`,
      'On Debian and Ubuntu: apt-get install openjdk-17-jre-headless maven. On macOS: brew install openjdk@17 maven',
    ].join('\n'),
    { context: { dataDir: options.dataDir } },
  )
}
