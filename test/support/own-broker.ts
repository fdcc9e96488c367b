import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrokerFolder, brokerFolder } from '../../src/embedded/broker-folder.ts'
import { probeBroker } from '../../src/embedded/broker-probe.ts'
import { findRuntime } from '../../src/embedded/broker-runtime.ts'
import { prepareLog } from '../../src/embedded/data-folder.ts'
import { bootstrapSnapshot } from '../../src/embedded/format-template.ts'
import { endFormerRegistration, FENCE_BEFORE_START_MS, isRegistered } from '../../src/embedded/former-registration.ts'
import { javaLaunch, type LaunchSpec } from '../../src/embedded/launch-spec.ts'
import { choosePort } from '../../src/embedded/ports.ts'
import { brokerProperties, fencingProperties, parseProperties, renderProperties } from '../../src/embedded/server-properties.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { folderMark } from '../../src/machine/folder-mark.ts'
import { brokerOptions, RecordingObserver } from './embedded.ts'
import { eventually } from './eventually.ts'

/**
 * An Apache Kafka of one test that is nobody's embedded broker: it may be stopped, killed and hung, and no supervisor starts it again.
 * Its second listener is for a proxy: whoever comes in by it is told the address of the proxy, and so never gets past it. With `users`
 * it asks for a password instead, and those users may do what `allow` has allowed, which is nothing at first; with `tls` it speaks TLS,
 * and asks for a certificate.
 */
export class OwnBroker {
  readonly port: number
  /** Where a proxy has to lead to. */
  readonly proxiedPort: number
  /** Where that proxy has to listen. */
  readonly proxyPort: number
  readonly #folder: string
  readonly #data: string
  readonly #fenced: string
  readonly #mark: string
  readonly #launch: LaunchSpec
  #child: ChildProcess | undefined

  private constructor(ports: { port: number; proxiedPort: number; proxyPort: number }, folder: BrokerFolder, launch: LaunchSpec) {
    this.port = ports.port
    this.proxiedPort = ports.proxiedPort
    this.proxyPort = ports.proxyPort
    this.#folder = folder.path
    this.#data = folder.data
    this.#fenced = folder.fenced
    this.#mark = folderMark(folder.path)
    this.#launch = launch
  }

  /**
   * `users`: password by name. `tls`: PEM of its certificate and key, and of the CA whose clients it lets in. `resigns`: as a broker that
   * nobody looks after does before it ends; nor is it fenced before its start.
   */
  static async start({ users, tls, resigns = false, properties: own = {} }: OwnBrokerOptions = {}): Promise<OwnBroker> {
    const path = mkdtempSync(join(tmpdir(), 'millrace-broker-'))
    const options = brokerOptions(path, new RecordingObserver())
    const runtime = await findRuntime({ ...options, boundTo: 'java' })
    if (runtime.kind !== 'java') throw new Error('a broker that is to be killed has to be a process of this machine')
    const folder = brokerFolder(path)
    mkdirSync(folder.path, { recursive: true })
    const { identity } = prepareLog(folder, undefined, await bootstrapSnapshot(runtime.java, runtime.jars))
    const port = await choosePort()
    const controllerPort = await choosePort([port])
    const proxiedPort = await choosePort([port, controllerPort])
    const proxyPort = await choosePort([port, controllerPort, proxiedPort])
    const properties = {
      ...brokerProperties({ port, controllerPort }),
      listeners: `PLAINTEXT://127.0.0.1:${port},PROXIED://127.0.0.1:${proxiedPort},CONTROLLER://127.0.0.1:${controllerPort}`,
      'advertised.listeners': `PLAINTEXT://127.0.0.1:${port},PROXIED://127.0.0.1:${proxyPort}`,
      'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT',
      ...(users === undefined ? {} : guarded({ port, proxiedPort }, users)),
      ...(tls === undefined ? {} : encrypted({ port, proxiedPort }, tls)),
      ...(resigns ? { 'controlled.shutdown.enable': 'true' } : {}),
      ...own,
    }
    writeFileSync(folder.properties, renderProperties(properties))
    writeFileSync(folder.fencingProperties, renderProperties(fencingProperties(properties)))
    const launch = javaLaunch({ ...runtime, clusterId: identity.clusterId, mark: folderMark(folder.path), port, useArchive: true })
    const broker = new OwnBroker({ port, proxiedPort, proxyPort }, folder, resigns ? { ...launch, fencingArgs: [] } : launch)
    await broker.start()
    return broker
  }

  /** Another broker of the same cluster; the first one stays its controller. */
  async joined(): Promise<OwnBroker> {
    const path = mkdtempSync(join(tmpdir(), 'millrace-broker-'))
    const runtime = await findRuntime({ ...brokerOptions(path, new RecordingObserver()), boundTo: 'java' })
    if (runtime.kind !== 'java') throw new Error('a broker that is to be killed has to be a process of this machine')
    const folder = brokerFolder(path)
    mkdirSync(folder.path, { recursive: true })
    const { identity } = prepareLog(folder, undefined, await bootstrapSnapshot(runtime.java, runtime.jars))
    const { clusterId } = this.#launch
    const meta = { version: '1', 'node.id': '2', 'cluster.id': clusterId, 'directory.id': identity.directoryId }
    writeFileSync(join(folder.data, 'meta.properties'), renderProperties(meta))
    const port = await choosePort()
    const first = parseProperties(readFileSync(join(this.#folder, 'server.properties'), 'latin1'))
    const properties = {
      ...first,
      'process.roles': 'broker',
      'node.id': '2',
      // Its controller lives on, and is told when it ends.
      'controlled.shutdown.enable': 'true',
      listeners: `PLAINTEXT://127.0.0.1:${port}`,
      'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    }
    writeFileSync(folder.properties, renderProperties(properties))
    const launch = { ...javaLaunch({ ...runtime, clusterId, mark: folderMark(folder.path), port, useArchive: true }), fencingArgs: [] }
    const broker = new OwnBroker({ port, proxiedPort: 0, proxyPort: 0 }, folder, launch)
    await broker.start()
    return broker
  }

  /** The listener that asks for a password or a certificate. */
  get guardedAddress(): string {
    return `127.0.0.1:${this.proxiedPort}`
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  /** Shape: resolves when its process runs; it may take a while until it answers. */
  async launch(): Promise<ChildProcess> {
    const { command, args, fencingArgs } = this.#launch
    // As its supervisor does with the embedded one.
    const logs = { data: this.#data, note: this.#fenced }
    if (fencingArgs.length > 0 && isRegistered(logs)) {
      const run = { ...logs, command, args: fencingArgs, mark: this.#mark, cwd: this.#folder, limitMs: FENCE_BEFORE_START_MS }
      await endFormerRegistration({ ...run, clock: systemClock })
    }
    const log = openSync(join(this.#folder, 'broker.log'), 'a')
    const child = spawn(command, [...args], { cwd: this.#folder, stdio: ['ignore', log, log] })
    closeSync(log)
    this.#child = child
    await once(child, 'spawn')
    return child
  }

  /** Shape: resolves when it takes messages. */
  async start(): Promise<void> {
    const child = await this.launch()
    const answers = async (): Promise<boolean> => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the broker ended: see ${this.#folder}/broker.log`)
      const answer = await probeBroker('127.0.0.1', this.port, 1_000)
      return answer?.registered === true && answer.clusterId === this.#launch.clusterId
    }
    await eventually(answers, { timeoutMs: 60_000, everyMs: 50, what: 'the broker' })
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  /** The process stands still: its connections stay open and say nothing. */
  hang(): void {
    this.#child?.kill('SIGSTOP')
  }

  goOn(): void {
    this.#child?.kill('SIGCONT')
  }

  async end(): Promise<void> {
    await this.stop('SIGKILL')
    if (process.env.MILLRACE_TEST_KEEP === '1') process.stderr.write(`kept: ${this.#folder}\n`)
    else rmSync(join(this.#folder, '..'), { recursive: true, force: true })
  }
}

export interface OwnBrokerOptions {
  readonly users?: Readonly<Record<string, string>>
  readonly tls?: BrokerTls
  readonly resigns?: boolean
  /** Of Kafka, beside those of the embedded broker. */
  readonly properties?: Readonly<Record<string, string>>
}

export interface BrokerTls {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

function encrypted(ports: { port: number; proxiedPort: number }, { cert, key, ca }: BrokerTls): Record<string, string> {
  const setting = (name: string): string => `listener.name.proxied.ssl.${name}`
  return {
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${ports.port},PROXIED://127.0.0.1:${ports.proxiedPort}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,PROXIED:SSL,CONTROLLER:PLAINTEXT',
    [setting('client.auth')]: 'required',
    [setting('keystore.type')]: 'PEM',
    [setting('keystore.certificate.chain')]: cert,
    [setting('keystore.key')]: key,
    [setting('truststore.type')]: 'PEM',
    [setting('truststore.certificates')]: ca,
  }
}

/** Whoever comes in without a password may do everything. */
function guarded(ports: { port: number; proxiedPort: number }, users: Readonly<Record<string, string>>): Record<string, string> {
  const known = Object.entries(users).map(([name, password]) => `user_${name}="${password}"`)
  return {
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${ports.port},PROXIED://127.0.0.1:${ports.proxiedPort}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,PROXIED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT',
    'sasl.enabled.mechanisms': 'PLAIN',
    'listener.name.proxied.plain.sasl.jaas.config': `org.apache.kafka.common.security.plain.PlainLoginModule required ${known.join(' ')};`,
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'super.users': 'User:ANONYMOUS',
  }
}
