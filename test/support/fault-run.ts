import { applyTopics } from '../../src/control/runtime/topics.ts'
import type { CliResult, RunningCli } from './cli.ts'
import { Deployment } from './deployment.ts'
import { eventually } from './eventually.ts'
import { isCrawlOver, linkedExtractors, linkedSettings, produceSeeds } from './linked-crawl.ts'
import { type HostWishes, LinkedSite } from './linked-site.ts'
import { countFromOutside, type Figures, type Kill } from './oracle.ts'
import { SeededRandom } from './random.ts'
import { FULL_SPEED, msUntilQuiet, msUntilSpeed, SPEED_WINDOW_MS, speed } from './site-log.ts'

export type ProgramName = 'fetch' | 'delay' | 'frontier' | 'extract'

export interface FaultRunOptions {
  /** Decides the latencies of the site and whatever the test leaves to chance. */
  readonly seed: number
  /** `HOST:PORT` of the broker; the run puts topics of its own on it. */
  readonly brokers: string
  /** None: the state lies in the data folder. */
  readonly redis?: string
  /** Processes; a name may be there more than once. */
  readonly programs?: readonly ProgramName[]
  readonly hosts?: number
  readonly pagesPerHost?: number
  /** `path=value` for all, and for the programs alone. */
  readonly set?: readonly string[]
  readonly setForCommands?: readonly string[]
  /** Puts a proxy before the sites. Shape: port of the sites to port of the proxy. */
  readonly siteProxy?: (port: number) => Promise<number>
  readonly env?: (name: ProgramName) => Readonly<Record<string, string>>
}

export interface FaultReport {
  readonly violations: readonly string[]
  readonly figures: Figures
}

/** A fault that has begun; times are ms of `performance.now()`. */
export interface Fault {
  readonly what: string
  readonly at: number
  /** Requests per second of all sites together in the seconds before. */
  readonly speedBefore: number
  /** When what was broken was whole again. */
  healedAt: number | undefined
  readonly losesRequests: boolean
  readonly losesState: boolean
}

const RATE_PER_SECOND = 4
const CONCURRENCY = 2
const CRAWL = 'fault-test'
const HOSTS = 4
/** A fault comes some seconds after the first request: in the middle of the first back-off, or soon before it. */
export const WISHES: HostWishes = { crawlDelayMs: 1_000, slowPages: 20, retryAfterMs: 4_000, busyPages: 40 }

/** Partitions may change hands until then, with requests on the wire. */
const HAND_OVER_MS = 5_000

/** The seed of a fault test: MILLRACE_TEST_SEED, else one by chance, which is printed so that the run can be had again. */
export function faultSeed(): number {
  const seed = Number(process.env.MILLRACE_TEST_SEED ?? Math.floor(Math.random() * 1_000_000))
  // At once: what fails later may say nothing any more.
  process.stdout.write(`seed ${seed} (MILLRACE_TEST_SEED=${seed} does the same again)\n`)
  return seed
}

/**
 * A crawl of a few hosts by processes of the command line, while something they stand on fails; at the end it is counted from outside what
 * has become of each URL and how the sites were asked.
 */
export class FaultRun {
  readonly site: LinkedSite
  readonly deployment: Deployment
  readonly programs: { readonly name: ProgramName; readonly program: RunningCli }[] = []
  readonly faults: Fault[] = []
  readonly #options: FaultRunOptions
  readonly #begun = performance.now()

  private constructor(options: FaultRunOptions, site: LinkedSite, deployment: Deployment) {
    this.#options = options
    this.site = site
    this.deployment = deployment
  }

  /** Shape: the programs run and the seeds lie on their topic. */
  static async open(options: FaultRunOptions): Promise<FaultRun> {
    const random = new SeededRandom(options.seed)
    const site = new LinkedSite({
      hosts: options.hosts ?? HOSTS,
      pagesPerHost: options.pagesPerHost ?? 100,
      wishes: WISHES,
      latencyMs: () => Math.round(random.between(2, 90)),
    })
    await site.start()
    if (options.siteProxy !== undefined) site.beBehind(await options.siteProxy(site.port))
    const deployment = await Deployment.open({
      set: [
        `brokers=${options.brokers}`,
        ...(options.redis === undefined ? [] : [`redis=${options.redis}`]),
        ...linkedSettings(site, { ratePerSecond: RATE_PER_SECOND, concurrency: CONCURRENCY }),
        ...(options.set ?? []),
      ],
      ...(options.setForCommands === undefined ? {} : { setForCommands: options.setForCommands }),
    })
    const run = new FaultRun(options, site, deployment)
    try {
      await deployment.read(async (runtime) => void (await applyTopics(runtime)))
      for (const name of options.programs ?? ['fetch', 'delay', 'frontier', 'extract']) run.start(name)
      // Each start moves partitions, and what is on the wire then is asked for again: not what these runs count.
      await run.until(() => run.programs.every(({ program }) => program.stderr().includes('is running')), 'all programs to run', 180_000)
      await produceSeeds(deployment, site, CRAWL)
      return run
    } catch (error) {
      await run.close()
      throw error
    }
  }

  start(name: ProgramName): RunningCli {
    const extractors = name === 'extract' || name === 'frontier' ? linkedExtractors(this.deployment) : []
    const program = this.deployment.start([name, '--verbose', ...extractors], this.#options.env?.(name))
    this.programs.push({ name, program })
    return program
  }

  /** The sites are asked about as often as they allow; a machine with other work comes no nearer. */
  async untilFullSpeed(): Promise<void> {
    const wanted = 0.5 * RATE_PER_SECOND * (this.#options.hosts ?? HOSTS)
    const now = (): number => performance.now()
    await this.until(() => speed(this.site.requests, now() - SPEED_WINDOW_MS, now()) >= wanted, 'full speed', 60_000)
  }

  begin(what: string, kind: { losesRequests?: boolean; losesState?: boolean } = {}): Fault {
    const at = performance.now()
    const fault: Fault = {
      what,
      at,
      speedBefore: speed(this.site.requests, at - SPEED_WINDOW_MS, at),
      healedAt: undefined,
      losesRequests: kind.losesRequests ?? false,
      losesState: kind.losesState ?? false,
    }
    this.faults.push(fault)
    return fault
  }

  heal(fault: Fault): void {
    fault.healedAt = performance.now()
  }

  /** What is broken stays so for a while: the one wait in these runs that is for no condition. */
  async broken(ms: number): Promise<void> {
    const until = performance.now() + ms
    await this.until(() => performance.now() >= until, `${ms} ms to pass`, ms + 5_000)
  }

  /** ms from the end of the fault until a second in which the sites were asked about as often as before it. */
  async untilFullSpeedAgain(fault: Fault, withinMs: number): Promise<number> {
    const from = fault.healedAt ?? fault.at
    const again = (): number | undefined => msUntilSpeed(this.site.requests, from, FULL_SPEED * fault.speedBefore)
    await this.until(() => again() !== undefined, `full speed after: ${fault.what}`, withinMs)
    return Math.round(again() ?? Number.NaN)
  }

  /** ms from the fault until the last request before the site was left alone; the fault must last. */
  quietAfter(fault: Fault): number {
    return Math.round(msUntilQuiet(this.site.requests, fault.at, fault.healedAt ?? performance.now()))
  }

  /** Every task has come to an end, and its page was read by frontier and extract. */
  async untilEnded(timeoutMs: number): Promise<void> {
    await this.until(() => isCrawlOver(this.deployment), 'the end of the crawl', timeoutMs, 500)
  }

  /** Waits, and ends the run where a program has ended by itself. */
  async until(check: () => boolean | Promise<boolean>, what: string, timeoutMs: number, everyMs = 50): Promise<void> {
    let ended: string | undefined
    try {
      await eventually(
        async () => {
          ended = this.#endedByItself()
          return ended !== undefined || (await check())
        },
        { timeoutMs, everyMs, what },
      )
    } catch (error) {
      throw new Error(`seed ${this.#options.seed}, ${this.#seconds()} s: ${String(error)}\n${this.said()}`, { cause: error })
    }
    if (ended !== undefined) throw new Error(`seed ${this.#options.seed}, ${this.#seconds()} s: ${ended}\n${this.said()}`)
  }

  /** What the programs have written, the end of it. */
  said(): string {
    for (const [index, { name, program }] of this.programs.entries())
      this.deployment.file(`${name}-${index}.log`, program.stdout() + program.stderr())
    return this.programs
      .map(({ name, program }) => `${name}: ${program.stdout()}${withoutDetails(program.stderr()).slice(-3_000)}`)
      .join('\n')
  }

  /**
   * Waits for the end of the crawl, ends the programs, counts, and prints the figures. Shape: what did not hold, each with all that is
   * known; empty where all did.
   */
  async conclude(what: string, options: { readonly withinMs: number; readonly figures?: object }): Promise<readonly string[]> {
    await this.untilEnded(options.withinMs)
    const report = await this.report()
    this.print(what, { ...options.figures, ...report.figures })
    return report.violations.length === 0 ? [] : [...report.violations, JSON.stringify(report, undefined, 2)]
  }

  /** Ends the programs and counts. */
  async report(mayAlso: { readonly deadLetters?: number } = {}): Promise<FaultReport> {
    const results = await this.stop()
    const counted = await countFromOutside({
      deployment: this.deployment,
      site: this.site,
      crawlId: CRAWL,
      kills: this.faults.map(({ at, what, healedAt, losesRequests, losesState }): Kill => {
        const until = healedAt === undefined ? {} : { until: healedAt + HAND_OVER_MS }
        return { at, what, brokerDownSince: undefined, losesRequests: losesRequests || losesState, losesState, ...until }
      }),
      ratePerSecond: RATE_PER_SECOND,
      concurrency: CONCURRENCY,
      ...mayAlso,
    })
    const failures = results
      .filter(({ result }) => result.code !== 143)
      .map(({ name, result }) => `${name}, told to end, ended with ${result.code}: ${result.stderr.slice(-2_000)}`)
    const violations = [...counted.violations, ...failures]
    if (violations.length > 0 || process.env.MILLRACE_TEST_KEEP === '1') this.said()
    return { violations, figures: counted.figures }
  }

  async stop(): Promise<{ readonly name: ProgramName; readonly result: CliResult }[]> {
    for (const { program } of this.programs) program.child.kill('SIGTERM')
    return Promise.all(this.programs.map(async ({ name, program }) => ({ name, result: await program.done })))
  }

  /** A line for people who read the output. */
  print(what: string, figures: object): void {
    process.stdout.write(`seed ${this.#options.seed}, ${this.#seconds()} s, ${what}: ${JSON.stringify(figures)}\n`)
  }

  async close(): Promise<void> {
    await this.deployment.close()
    await this.site.stop()
  }

  #endedByItself(): string | undefined {
    const ended = this.programs.find(({ program: { child } }) => child.exitCode !== null || child.signalCode !== null)
    return ended && `${ended.name} ended by itself with ${ended.program.child.exitCode ?? ended.program.child.signalCode}`
  }

  #seconds(): string {
    return ((performance.now() - this.#begun) / 1_000).toFixed(1)
  }
}

/** The log of a program without its debug lines. */
export function withoutDetails(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.includes('"level":"debug"'))
    .join('\n')
}
