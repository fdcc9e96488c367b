import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/config/load.ts'
import { Runtime } from '../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../src/control/runtime/topics.ts'
import { readLog } from '../../src/kafka/log-reader.ts'
import type { KafkaMessage } from '../../src/kafka/message.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { type Observer, silentObserver } from '../../src/kernel/observe.ts'
import type { Outcome, Page, RecordEnvelope } from '../../src/message/generated/types.ts'
import { type CliResult, type RunningCli, runCli, startCli } from './cli.ts'
import { eventually } from './eventually.ts'
import { brokers, uniqueName } from './services.ts'

export interface DeploymentOptions {
  /** Own broker in the data folder; else the broker of the test run, with a prefix of its own. */
  readonly embedded?: boolean
  /** `path=value`, for every command. */
  readonly set?: readonly string[]
  /** `path=value`, for the commands alone: where they have to take another way than the test does. */
  readonly setForCommands?: readonly string[]
}

export type RecordOnTopic = RecordEnvelope & { readonly data: Readonly<Record<string, unknown>> }

export interface OnTopic<T> {
  readonly message: KafkaMessage
  readonly value: T
}

/** A user's working folder: the command line is started in it, and its topics are read from outside. */
export class Deployment {
  readonly folder: string
  readonly dataDir: string
  readonly prefix: string
  readonly isEmbedded: boolean
  readonly #globals: readonly string[]
  readonly #sets: readonly string[]
  readonly #running: RunningCli[] = []

  private constructor(options: DeploymentOptions) {
    this.folder = mkdtempSync(join(tmpdir(), 'millrace-e2e-'))
    this.dataDir = join(this.folder, '.millrace')
    this.isEmbedded = options.embedded === true
    this.prefix = this.isEmbedded ? 'scrape.' : `${uniqueName('e2e')}.`
    this.#sets = [
      'fetch.allowAddresses=127.0.0.0/8',
      'fetch.resolve=*.example=127.0.0.1',
      'politeness.default.ratePerSecond=500',
      ...(this.isEmbedded ? [] : [`topics.prefix=${this.prefix}`, 'topics.partitions.urls=4']),
      ...(this.isEmbedded || options.set?.some((set) => set.startsWith('brokers=')) ? [] : [`brokers=${brokers().join(',')}`]),
      ...(options.set ?? []),
    ]
    this.#globals = [...this.#sets, ...(options.setForCommands ?? [])].flatMap((set) => ['--set', set])
  }

  static async open(options: DeploymentOptions = {}): Promise<Deployment> {
    const deployment = new Deployment(options)
    if (!deployment.isEmbedded) await deployment.read(async (runtime) => void (await applyTopics(runtime)))
    return deployment
  }

  /** A file of the user's; the path that a command line would name. */
  file(name: string, text: string | Uint8Array): string {
    const path = join(this.folder, name)
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, text)
    return path
  }

  /** `set`: `path=value` for this command alone. */
  run(args: readonly string[], input?: string, set: readonly string[] = []): Promise<CliResult> {
    return runCli([...args, ...this.#globals, ...set.flatMap((each) => ['--set', each])], {
      cwd: this.folder,
      ...(input === undefined ? {} : { input }),
    })
  }

  start(args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningCli {
    const running = startCli([...args, ...this.#globals], { cwd: this.folder, env })
    this.#running.push(running)
    return running
  }

  /** Something of the library, on the same broker and folder. */
  async read<T>(use: (runtime: Runtime) => Promise<T>, observer: Observer = silentObserver): Promise<T> {
    const { config } = loadConfig({ sets: [...this.#sets, `data=${this.dataDir}`], flags: {}, environment: {} })
    const runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer })
    try {
      return await use(runtime)
    } finally {
      await runtime.close()
    }
  }

  pages(): Promise<OnTopic<Page>[]> {
    return this.read(readPages)
  }

  outcomes(): Promise<OnTopic<Outcome>[]> {
    return this.read(readOutcomes)
  }

  records(): Promise<OnTopic<RecordOnTopic>[]> {
    return this.read(readRecords)
  }

  deadLetters(): Promise<KafkaMessage[]> {
    return this.read((runtime) => committed(runtime, runtime.topics.deadLetters))
  }

  async close(options: { keepFolder?: boolean } = {}): Promise<void> {
    for (const { child, done } of this.#running) {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await done
    }
    // To look at what a failure has left behind.
    if (process.env.MILLRACE_TEST_KEEP === '1') process.stderr.write(`kept: ${this.folder}\n`)
    else if (options.keepFolder !== true) rmSync(this.folder, { recursive: true, force: true })
  }
}

export async function readPages(runtime: Runtime): Promise<OnTopic<Page>[]> {
  const messages = await committed(runtime, runtime.topics.html)
  return messages.map((message) => ({ message, value: runtime.codec.decode('Page', message.value) }))
}

export async function readOutcomes(runtime: Runtime): Promise<OnTopic<Outcome>[]> {
  const messages = await committed(runtime, runtime.topics.outcomes)
  return messages.map((message) => ({ message, value: runtime.codec.decode('Outcome', message.value) }))
}

export async function readRecords(runtime: Runtime): Promise<OnTopic<RecordOnTopic>[]> {
  // Record schemas are announced there.
  await runtime.control()
  const messages = await committed(runtime, runtime.topics.records)
  return messages.map((message) => ({ message, value: runtime.codec.decodeAny(message.value).value as RecordOnTopic }))
}

/**
 * What a consumer with `read_committed` sees of a topic, up to its present end. A commit is answered before its marks are seen, so an open
 * transaction has some time to be none, on a busy machine too; one that a test leaves open is read up to.
 */
export async function committed(runtime: Runtime, topic: string): Promise<KafkaMessage[]> {
  const ends = (isolation: 'read_committed' | 'read_uncommitted') => runtime.admin.endOffsets(topic, isolation)
  const areClosed = async (): Promise<boolean> => {
    const [stable, all] = [await ends('read_committed'), await ends('read_uncommitted')]
    return [...all].every(([partition, offset]) => stable.get(partition) === offset)
  }
  await eventually(areClosed, { timeoutMs: 10_000 }).catch(() => undefined)
  const messages: KafkaMessage[] = []
  const from = new Map([[topic, 'earliest' as const]])
  for await (const event of readLog({ client: runtime.client, clock: runtime.clock, from, isolation: 'read_committed' }))
    if (event.kind === 'batch') messages.push(...event.messages)
  return messages
}
