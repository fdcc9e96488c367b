import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadConfig } from '../../src/config/load.ts'
import { Runtime } from '../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../src/control/runtime/topics.ts'
import { acquireBroker } from '../../src/embedded/embedded-broker.ts'
import { readLog } from '../../src/kafka/log-reader.ts'
import type { KafkaMessage } from '../../src/kafka/message.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import type { UrlTask } from '../../src/message/generated/types.ts'
import { uuidV7 } from '../../src/message/ids.ts'
import { newUrlTask } from '../../src/message/url-task.ts'
import { canonicalUrl } from '../../src/url/canonical-url.ts'
import { brokerOptions } from '../support/embedded.ts'
import { uniqueName } from '../support/services.ts'
import { cpuSeconds, residentMiB } from './machine-usage.ts'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
/** Loaded before a program, it watches its event loop. */
export const loopProbe = fileURLToPath(new URL('./loop-probe.mjs', import.meta.url))

/** A broker of the bench's own, so that nobody else's load is in its figures. */
export class BenchBroker {
  readonly brokers: readonly string[]
  readonly pid: number
  readonly #dataDir: string
  readonly #stop: () => Promise<void>

  private constructor(brokers: readonly string[], pid: number, dataDir: string, stop: () => Promise<void>) {
    this.brokers = brokers
    this.pid = pid
    this.#dataDir = dataDir
    this.#stop = stop
  }

  static async start(): Promise<BenchBroker> {
    const dataDir = mkdtempSync(join(tmpdir(), 'millrace-bench-broker-'))
    const broker = await acquireBroker(brokerOptions(dataDir, silentObserver, 'npm run bench'))
    const process_ = JSON.parse(readFileSync(join(dataDir, 'kafka', 'process.json'), 'utf8')) as { broker?: { pid?: number } }
    return new BenchBroker(broker.brokers, process_.broker?.pid ?? 0, dataDir, async () => {
      await broker.release()
      rmSync(dataDir, { recursive: true, force: true })
    })
  }

  /** Bytes of the messages of a topic on disk, over all partitions. Its indexes are not counted: they are as large as they may become. */
  storedBytes(topic: string): number {
    const folder = join(this.#dataDir, 'kafka', 'data')
    const partitions = readdirSync(folder).filter((name) => name.slice(0, name.lastIndexOf('-')) === topic)
    const segments = partitions.flatMap((name) => readdirSync(join(folder, name)).map((file) => join(folder, name, file)))
    return segments.filter((file) => file.endsWith('.log')).reduce((sum, file) => sum + statSync(file).size, 0)
  }

  stop(): Promise<void> {
    return this.#stop()
  }
}

export interface NewTask {
  readonly url: string
  readonly lane?: UrlTask['lane']
  readonly crawlId?: string
}

/** Topics of their own on the bench's broker, and `millrace` processes that work on them. */
export class FetchDeployment {
  readonly runtime: Runtime
  readonly folder: string
  readonly #sets: readonly string[]
  readonly #programs: Program[] = []

  private constructor(runtime: Runtime, folder: string, sets: readonly string[]) {
    this.runtime = runtime
    this.folder = folder
    this.#sets = sets
  }

  /** `set`: `path=value` for every process; `file`: what can stand in the configuration file alone. */
  static async open(broker: BenchBroker, set: readonly string[] = [], file?: object): Promise<FetchDeployment> {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
    // Read from the working folder, as a user's would be.
    if (file !== undefined) writeFileSync(join(folder, 'millrace.yaml'), JSON.stringify(file))
    const sets = [
      `brokers=${broker.brokers.join(',')}`,
      `topics.prefix=${uniqueName('bench')}.`,
      'topics.partitions.urls=4',
      'fetch.allowAddresses=127.0.0.0/8',
      'fetch.resolve=*.example=127.0.0.1',
      'fetch.userAgent=millrace-bench/1.0',
      `data=${join(folder, 'data')}`,
      ...set,
    ]
    const { config } = loadConfig({ sets, flags: {}, environment: {} })
    const runtime = await Runtime.open({ config, owner: 'npm run bench', clock: systemClock, observer: silentObserver })
    await applyTopics(runtime)
    return new FetchDeployment(runtime, folder, sets)
  }

  /** A command of the program, in a process of its own. */
  start(command: string, set: readonly string[] = [], flags: readonly string[] = []): Program {
    const program = Program.start([command, ...flags], [...this.#sets, ...set], this.folder)
    this.#programs.push(program)
    return program
  }

  /** What Node is started with for a command that ends by itself. */
  arguments(command: string, args: readonly string[]): string[] {
    return [main, command, ...args, ...this.#sets.flatMap((set) => ['--set', set])]
  }

  /** As `run` does it: what belongs to a crawl is accepted once it is on its topic. */
  async produce(tasks: Iterable<NewTask>): Promise<void> {
    const publisher = await this.runtime.publisher()
    const state = await this.runtime.state()
    let batch: UrlTask[] = []
    const send = async (): Promise<void> => {
      await publisher.publish(batch)
      const crawls = new Map<string, string[]>()
      for (const { crawlId, taskId } of batch) {
        if (crawlId === null) continue
        const taskIds = crawls.get(crawlId) ?? []
        crawls.set(crawlId, taskIds)
        taskIds.push(taskId)
      }
      for (const [crawlId, taskIds] of crawls) await state.accept(crawlId, taskIds)
      batch = []
    }
    for (const { url, lane = 'normal', crawlId = null } of tasks) {
      const canonical = canonicalUrl(new URL(url))
      const taskId = uuidV7(systemClock)
      batch.push(newUrlTask({ url, canonicalUrl: canonical, taskId, lane, crawlId, enqueuedAt: Date.now() }))
      if (batch.length === 1_000) await send()
    }
    if (batch.length > 0) await send()
  }

  /** Pages on html now. */
  pageCount(): Promise<number> {
    return this.messageCount(this.runtime.topics.html)
  }

  async messageCount(topic: string): Promise<number> {
    const ends = await this.runtime.admin.endOffsets(topic, 'read_uncommitted')
    return Number([...ends.values()].reduce((sum, end) => sum + end, 0n))
  }

  /** Of the first message on, or from these offsets. */
  async *messages(topic: string, offsets: 'earliest' | ReadonlyMap<number, bigint> = 'earliest'): AsyncGenerator<KafkaMessage> {
    const from = new Map([[topic, offsets]])
    for await (const event of readLog({ client: this.runtime.client, clock: systemClock, from }))
      if (event.kind === 'batch') yield* event.messages
  }

  async close(): Promise<void> {
    for (const program of this.#programs) await program.kill()
    await this.runtime.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export interface LoopDelay {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  readonly heapMiB: number
  readonly externalMiB: number
}

/** How late the event loop of a child with the probe was since the last call. */
export async function takeLoopDelay(child: ChildProcess): Promise<LoopDelay> {
  child.send('loop-delay')
  const [delay] = (await once(child, 'message')) as [LoopDelay]
  return delay
}

/** One process of `millrace`, as a user starts it; a module loaded before it watches its event loop. */
export class Program {
  readonly pid: number
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>

  private constructor(child: ChildProcess) {
    this.#child = child
    this.pid = child.pid ?? 0
    this.#ended = once(child, 'exit')
  }

  static start(command: readonly string[], sets: readonly string[], folder: string): Program {
    const profile = process.env.MILLRACE_BENCH_PROFILE
    const flags = profile === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', profile]
    const args = [
      ...flags,
      '--import',
      loopProbe,
      main,
      ...command,
      process.env.MILLRACE_BENCH_VERBOSE === '1' ? '--verbose' : '--quiet',
      ...sets.flatMap((set) => ['--set', set]),
    ]
    const child = spawn(process.execPath, args, {
      cwd: folder,
      env: programEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      serialization: 'advanced',
    })
    const log = createWriteStream(join(folder, `${command[0]}-${child.pid}.log`))
    child.stdout?.pipe(log, { end: false })
    child.stderr?.pipe(process.env.MILLRACE_BENCH_VERBOSE === '1' ? process.stderr : log, { end: false })
    return new Program(child)
  }

  /** Errors: where the program has ended by itself. */
  assertRunning(): void {
    if (!this.isRunning)
      throw new Error(`millrace ended with ${this.#child.signalCode ?? this.#child.exitCode}: MILLRACE_BENCH_VERBOSE=1 shows why`)
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  cpuSeconds(): number {
    return cpuSeconds(this.pid)
  }

  residentMiB(): number {
    return residentMiB(this.pid)
  }

  /** Of the event loop since the last call. */
  takeLoopDelay(): Promise<LoopDelay> {
    return takeLoopDelay(this.#child)
  }

  async stop(): Promise<void> {
    if (this.isRunning) this.#child.kill('SIGTERM')
    await this.#ended
  }

  async kill(): Promise<void> {
    if (this.isRunning) this.#child.kill('SIGKILL')
    await this.#ended
  }
}

/** The program takes every MILLRACE_ variable for an option of its own. */
export function programEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('MILLRACE_')))
}

/** Polls until `check` gives something; a bench that hangs is no figure. */
export async function until<T>(what: string, check: () => Promise<T | undefined>, timeoutMs = 60_000, everyMs = 20): Promise<T> {
  const end = performance.now() + timeoutMs
  for (;;) {
    const found = await check()
    if (found !== undefined) return found
    if (performance.now() > end) throw new Error(`${what} took longer than ${timeoutMs / 1_000} s`)
    await systemClock.sleep(everyMs)
  }
}
