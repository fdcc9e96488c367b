import type { Page } from '../../src/message/generated/types.ts'
import type { CliResult, RunningCli } from './cli.ts'
import { Deployment } from './deployment.ts'
import { eventually } from './eventually.ts'
import { childrenOf, kill, processesOf } from './processes.ts'
import { SeededRandom } from './random.ts'
import { countReplays, type ReplayFigures, type ReplayPass } from './replay-oracle.ts'
import { BOOK_1, BOOK_2, bookHtml, caughtUp, type ShopPage, storePages } from './stored-shop.ts'

export type ReplayMode = 'in place' | 'shadow'

export interface ReplayRunOptions {
  /** Decides everything that is left to chance here; the machine decides the rest. */
  readonly seed: number
  readonly mode: ReplayMode
  /** Stored before the replay begins. */
  readonly pages: number
  readonly timeoutMs: number
}

export interface ReplayRunReport {
  readonly violations: readonly string[]
  readonly figures: ReplayFigures
  /** Commands and workers that ended by themselves with an error. */
  readonly gaveUp: readonly string[]
  readonly seconds: number
}

interface Ended {
  readonly replayId: string
  readonly records: number
  readonly deadLetters: number
  readonly partitions: readonly { readonly partition: number; readonly from: string; readonly until: string }[]
}

/** Every seventeenth book has no price: a dead letter in any version. */
const isBrokenIndex = (index: number): boolean => index % 17 === 0
const indexOf = ({ url }: Page): number => Number(url.slice(url.lastIndexOf('/') + 1))

function shopPage(index: number): ShopPage {
  return isBrokenIndex(index) ? { index, html: bookHtml(index).replaceAll('price', 'cost') } : { index }
}

const LIVE_EVERY_MS = 60

/**
 * A live extract group with pages that flow all the time, and a replay of what had been stored before; something is done to them
 * meanwhile, and then it is counted from outside.
 */
export class ReplayRun {
  readonly deployment: Deployment
  readonly random: SeededRandom
  readonly gaveUp: string[] = []
  readonly struck: string[] = []
  readonly workers: RunningCli[] = []
  replay: RunningCli | undefined
  /** All of them, those that were killed too. */
  readonly #replays: RunningCli[] = []
  readonly #options: ReplayRunOptions
  readonly #begun = performance.now()
  readonly #passes: ReplayPass[] = []
  readonly #flow = new AbortController()
  #flowing: Promise<void> = Promise.resolve()
  #stored = 0

  private constructor(options: ReplayRunOptions, deployment: Deployment) {
    this.#options = options
    this.deployment = deployment
    this.random = new SeededRandom(options.seed)
    deployment.file('book.yaml', BOOK_1)
    deployment.file('book2.yaml', BOOK_2)
  }

  /** Shape: all pages are extracted by the first version, two workers with the second one run, and pages flow. */
  static async open(options: ReplayRunOptions, prepare: (dataDir: string) => void = () => undefined): Promise<ReplayRun> {
    const deployment = await Deployment.open({ embedded: true, set: ['topics.partitions.urls=4', 'extract.threads=1'] })
    const run = new ReplayRun(options, deployment)
    try {
      prepare(deployment.dataDir)
      await deployment.run(['up'])
      await deployment.run(['topics', 'apply'])
      await run.#store(options.pages)
      const first = deployment.start(['extract', '--extractor', 'book.yaml'])
      await caughtUp(deployment)
      first.child.kill('SIGTERM')
      await first.done
      await run.addWorker()
      await run.addWorker()
      run.#flowing = run.#flowPages()
      return run
    } catch (error) {
      await run.close()
      throw error
    }
  }

  /** Shape: resolves when the new member has its partitions. */
  async addWorker(): Promise<RunningCli> {
    const worker = this.startWorker()
    await this.#until(() => hasEnded(worker) || worker.stderr().includes('extract is running'), 'an extract worker', 60_000)
    return worker
  }

  startWorker(): RunningCli {
    const worker = this.deployment.start(['extract', '--verbose', '--extractor', 'book2.yaml'])
    this.workers.push(worker)
    return worker
  }

  /** A command that ends when the replay is done; the same line again when it has been cut short. */
  startReplay(replayId: string, options: { readonly rate?: number; readonly domain?: string } = {}): RunningCli {
    const how = this.#options.mode === 'shadow' ? ['--shadow'] : ['--in-place', '--wait']
    const rate = options.rate === undefined ? [] : ['--rate', String(options.rate)]
    const domain = options.domain === undefined ? [] : ['--domain', options.domain]
    const line = ['replay', 'run', ...how, '--extractor', 'book2.yaml', '--id', replayId, ...rate, ...domain, '--json']
    this.replay = this.deployment.start(line)
    this.#replays.push(this.replay)
    return this.replay
  }

  /** Runs it to its end whatever is done meanwhile; `disturb` ends when it has done all it wants. */
  async replayed(replayId: string, disturb: () => Promise<void>, options: { readonly rate?: number; readonly domain?: string } = {}) {
    const from = Date.now()
    this.startReplay(replayId, options)
    await disturb()
    const current = (): RunningCli => this.replay as RunningCli
    await this.#until(
      () => current().child.exitCode === 0,
      `the end of replay ${replayId}`,
      this.#options.timeoutMs,
      () => {
        this.restartEnded()
        if (!hasEnded(current()) || current().child.exitCode === 0) return
        this.#note('replay', current())
        this.startReplay(replayId, options)
      },
    )
    await this.#until(() => this.#replays.every(hasEnded), 'the end of whoever else ran it', 30_000)
    const result = await current().done
    const during = { from, until: Date.now() }
    this.#passes.push(this.#passOf(await this.#endOf(replayId, result), options.domain, during))
  }

  /** A worker that has ended by itself is started again, as its supervisor would. */
  restartEnded(): void {
    for (const [index, worker] of [...this.workers.entries()].reverse()) {
      if (!hasEnded(worker)) continue
      this.#note('extract', worker)
      this.workers.splice(index, 1)
      this.startWorker()
    }
  }

  /** True where a process was killed. */
  async killWorker(): Promise<boolean> {
    const worker = this.workers[Math.floor(this.random.next() * this.workers.length)]
    if (worker === undefined || !kill(worker.child.pid)) return false
    await worker.done
    this.workers.splice(this.workers.indexOf(worker), 1)
    this.strike('extract')
    await this.pause(this.random.next() < 0.7 ? 0 : this.random.between(200, 3_000))
    this.startWorker()
    return true
  }

  /** A member that leaves as it should. */
  async endWorker(): Promise<void> {
    const [worker] = this.workers.splice(Math.floor(this.random.next() * this.workers.length), 1)
    if (worker === undefined) return
    worker.child.kill('SIGTERM')
    const { code } = await worker.done
    if (code !== 143) this.#note('extract', worker)
  }

  killExtraction(): void {
    const parents = [...this.workers, ...(this.replay === undefined ? [] : [this.replay])]
    const children = parents.flatMap(({ child }) => childrenOf(child.pid, 'extraction-process'))
    const victim = children[Math.floor(this.random.next() * children.length)]
    if (kill(victim)) this.strike('extraction')
  }

  async killReplay(): Promise<void> {
    const replay = this.replay
    if (replay === undefined || hasEnded(replay) || !kill(replay.child.pid)) return
    await replay.done
    this.strike('replay')
  }

  strike(what: string): void {
    this.struck.push(`${this.#seconds()} s ${what}`)
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms))
  }

  /** Ends the flow and the workers, and counts. */
  async report(): Promise<ReplayRunReport> {
    this.#flow.abort()
    await this.#flowing
    const isThrough = (): Promise<boolean> =>
      this.deployment.read(async (runtime) =>
        (await runtime.admin.lag(runtime.groups.extract(), [runtime.topics.html])).every(({ lag }) => lag === 0n),
      )
    await this.#until(isThrough, 'live work to catch up', this.#options.timeoutMs, () => this.restartEnded())
    for (const { child } of this.workers) child.kill('SIGTERM')
    const results = await Promise.all(this.workers.map(({ done }) => done))
    const violations = results
      .filter(({ code }) => code !== 143)
      .map(({ code, stderr }) => `a worker that was told to end ended with ${code}: ${stderr.slice(-2_000)}`)
    const counted = await countReplays({
      deployment: this.deployment,
      passes: this.#passes,
      isBroken: (page) => isBrokenIndex(indexOf(page)),
    })
    violations.push(...counted.violations)
    await this.deployment.run(['down'])
    violations.push(...(await this.#leftovers()))
    return { violations, figures: counted.figures, gaveUp: this.gaveUp, seconds: Math.round((performance.now() - this.#begun) / 1_000) }
  }

  async close(options: { readonly keepFolder?: boolean } = {}): Promise<void> {
    this.#flow.abort()
    await this.#flowing.catch(() => undefined)
    await this.deployment.run(['down'])
    await this.deployment.close(options)
  }

  async #store(count: number): Promise<void> {
    const pages = Array.from({ length: count }, (_, index) => shopPage(this.#stored + index))
    await this.deployment.read((runtime) => storePages(runtime, pages))
    this.#stored += count
  }

  /** A page at a time, in one connection; another one where the broker was away for too long. */
  async #flowPages(): Promise<void> {
    while (!this.#flow.signal.aborted) {
      try {
        await this.deployment.read(async (runtime) => {
          while (!this.#flow.signal.aborted) {
            await storePages(runtime, [shopPage(this.#stored)])
            this.#stored += 1
            await this.pause(LIVE_EVERY_MS)
          }
        })
      } catch (error) {
        this.gaveUp.push(`the flow of pages: ${String(error).split('\n')[0]}`)
        await this.pause(500)
      }
    }
  }

  async #endOf(replayId: string, { stdout }: CliResult): Promise<Ended> {
    const status = await this.deployment.run(['replay', 'status', replayId, '--json'])
    const told = JSON.parse(status.stdout) as { state: string; totals: { records: number; deadLetters: number } } & Pick<
      Ended,
      'partitions'
    >
    if (told.state !== 'done') throw new Error(`replay ${replayId} ended, and its state is ${told.state}`)
    if (this.#options.mode === 'in place') return { replayId, ...told.totals, partitions: told.partitions }
    const { records, deadLetters } = JSON.parse(stdout) as { records: number; deadLetters: number }
    return { replayId, records, deadLetters, partitions: told.partitions }
  }

  #passOf({ replayId, records, deadLetters, partitions }: Ended, domain: string | undefined, during: ReplayPass['during']): ReplayPass {
    const isInRange = (partition: number, offset: bigint): boolean =>
      partitions.some((range) => range.partition === partition && offset >= BigInt(range.from) && offset < BigInt(range.until))
    const wanted = (page: Page): boolean => domain === undefined || new URL(page.url).hostname === domain
    const told = { records, deadLetters }
    const covers: ReplayPass['covers'] = (page, { partition, offset }) => wanted(page) && isInRange(partition, offset)
    const topic = this.#options.mode === 'in place' ? 'records' : { shadow: `${this.deployment.prefix}records.shadow.${replayId}` }
    return { replayId, topic, during, told, covers }
  }

  #note(name: string, { child, stderr }: RunningCli): void {
    if (child.exitCode === null) return
    const said =
      stderr()
        .split('\n')
        .find((line) => line.startsWith('error')) ?? stderr().slice(-500)
    this.gaveUp.push(`${this.#seconds()} s ${name} exit ${child.exitCode}: ${said}`)
  }

  async #until(
    check: () => boolean | Promise<boolean>,
    what: string,
    timeoutMs: number,
    each: () => void = () => undefined,
  ): Promise<void> {
    try {
      await eventually(
        async () => {
          each()
          return check()
        },
        { timeoutMs, everyMs: 200, what },
      )
    } catch (error) {
      for (const [index, { stdout, stderr }] of [...this.workers, ...(this.replay === undefined ? [] : [this.replay])].entries())
        this.deployment.file(`process-${index}.log`, stdout() + stderr())
      const said = this.replay?.stderr().slice(-2_000) ?? ''
      throw new Error(
        `seed ${this.#options.seed}: ${String(error)}\nstruck: ${this.struck.join(', ')}\ngave up: ${this.gaveUp.join(', ')}\nreplay: ${said}`,
        { cause: error },
      )
    }
  }

  async #leftovers(): Promise<string[]> {
    const find = (): string[] => processesOf(this.deployment.folder)
    try {
      await eventually(() => find().length === 0, { timeoutMs: 15_000, everyMs: 100, what: 'all processes to end' })
      return []
    } catch {
      return find().map((command) => `left running: ${command.slice(0, 200)}`)
    }
  }

  #seconds(): string {
    return ((performance.now() - this.#begun) / 1_000).toFixed(1)
  }
}

function hasEnded({ child }: RunningCli): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
