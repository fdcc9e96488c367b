import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { applyTopics } from '../../src/control/runtime/topics.ts'
import type { CliResult, RunningCli } from './cli.ts'
import { Deployment } from './deployment.ts'
import { eventually } from './eventually.ts'
import { isCrawlOver, linkedExtractors, linkedSettings, produceSeeds } from './linked-crawl.ts'
import { type HostWishes, LinkedSite } from './linked-site.ts'
import { countFromOutside, type Figures, type Kill } from './oracle.ts'
import { childrenOf, isRunning, kill, processesOf } from './processes.ts'
import { SeededRandom } from './random.ts'
import { msUntilFullSpeedAgain } from './site-log.ts'

export interface KillRunOptions {
  /** Decides everything that is left to chance here; the machine decides the rest. */
  readonly seed: number
  /** One process with all stages, or one for each. */
  readonly processes: 'run' | 'stages'
  readonly hosts: number
  readonly pagesPerHost: number
  /** Of two hosts more. */
  readonly wishes: HostWishes
  /** The state lies there, else in the data folder. */
  readonly redis?: string
  readonly kills: number
  /** Somebody looks and steers all the while: one command after the other, on the same data folder. */
  readonly commands?: boolean
  /** For the whole of it. */
  readonly timeoutMs: number
}

export interface KillRunReport {
  readonly seed: number
  readonly kills: readonly string[]
  /** After each of them. Shape: null where the crawl ended before. */
  readonly fullSpeedAfterMs: readonly (number | null)[]
  readonly violations: readonly string[]
  readonly figures: Figures
  /** Commands that ended by themselves with an error while the broker was away. */
  readonly gaveUp: readonly string[]
  readonly seconds: number
  /** That were run beside. */
  readonly commands: number
}

const RATE_PER_SECOND = 8
const CONCURRENCY = 2
const CRAWL = 'kill-test'

type Fault = 'program' | 'broker' | 'program and broker' | 'extraction' | 'supervisor'
const FAULTS: Readonly<Record<Fault, number>> = { program: 8, broker: 4, 'program and broker': 2, extraction: 3, supervisor: 2 }
/** A supervisor gives up on a broker that ends more often than this within five minutes. */
const BROKER_KILLS = 4
const STEERING = [
  ['status'],
  ['sites', 'show', 'HOST'],
  ['explain', 'http://HOST/'],
  ['audit', '--crawl', CRAWL],
  ['dead-letters', 'stats'],
  ['sites', 'reset', 'HOST'],
]

/** A crawl of a site of some hosts while its processes are killed, and the count from outside when it has ended. */
export async function killRun(options: KillRunOptions): Promise<KillRunReport> {
  const latencies = new SeededRandom(options.seed ^ 0x5bd1e995)
  const site = new LinkedSite({
    hosts: options.hosts,
    pagesPerHost: options.pagesPerHost,
    wishes: options.wishes,
    latencyMs: () => Math.round(latencies.between(2, 90)),
  })
  await site.start()
  const deployment = await Deployment.open({
    embedded: true,
    set: [
      ...linkedSettings(site, { ratePerSecond: RATE_PER_SECOND, concurrency: CONCURRENCY }),
      ...(options.redis === undefined ? [] : [`redis=${options.redis}`]),
    ],
  })
  const begun = performance.now()
  let keepFolder = false
  try {
    const driver = new KillDriver(options, site, deployment)
    const { violations, figures } = await driver.run()
    if (violations.length > 0) {
      // Such a run may not come again: what it left is all there is to learn from.
      keepFolder = true
      driver.keepLogs()
      violations.push(`kept: ${deployment.folder}`)
    }
    return {
      seed: options.seed,
      kills: driver.kills.map(({ at, what }) => `${((at - begun) / 1000).toFixed(1)} s ${what}`),
      fullSpeedAfterMs: driver.kills.map(({ at }) => msUntilFullSpeedAgain(site.requests, at)),
      violations,
      figures,
      gaveUp: driver.gaveUp,
      commands: driver.commands,
      seconds: Math.round((performance.now() - begun) / 1000),
    }
  } catch (error) {
    // Its broker may be at work still.
    keepFolder = true
    throw error
  } finally {
    await deployment.close({ keepFolder })
    await site.stop()
  }
}

class KillDriver {
  readonly kills: Kill[] = []
  /** Programs that ended by themselves, with what they had in hand. */
  readonly #ends: Kill[] = []
  /** ms of `performance.now()`. */
  readonly #endedAt = new Map<RunningCli, number>()
  readonly gaveUp: string[] = []
  commands = 0
  readonly #options: KillRunOptions
  readonly #site: LinkedSite
  readonly #deployment: Deployment
  readonly #random: SeededRandom
  readonly #deadline: number
  readonly #programs = new Map<string, RunningCli>()
  readonly #started: { name: string; running: RunningCli }[] = []
  #brokerKills = 0
  #brokerDownSince: number | undefined
  #seeded = false
  #isOver = false

  constructor(options: KillRunOptions, site: LinkedSite, deployment: Deployment) {
    this.#options = options
    this.#site = site
    this.#deployment = deployment
    this.#random = new SeededRandom(options.seed)
    this.#deadline = performance.now() + options.timeoutMs
    deployment.file('seeds.txt', site.seeds().join('\n'))
  }

  async run(): Promise<{ violations: string[]; figures: Figures }> {
    const violations: string[] = []
    this.#startAll()
    const seeding = this.#options.processes === 'stages' ? this.#produceSeeds() : Promise.resolve()
    await seeding
    const steering = this.#options.commands === true ? this.#steer() : Promise.resolve([])
    while (this.kills.length < this.#options.kills) {
      // Mostly in the middle of the work, at times while it starts.
      if (this.#random.next() < 0.8) await this.#asking()
      await this.#running(this.#random.between(50, 2_500))
      if (this.#hasEnded()) break
      await this.#strike()
    }
    violations.push(...(await this.#untilEnd()))
    this.#isOver = true
    violations.push(...(await steering))
    const counted = await countFromOutside({
      deployment: this.#deployment,
      site: this.#site,
      crawlId: CRAWL,
      kills: [...this.kills, ...this.#ends].sort((a, b) => a.at - b.at),
      ratePerSecond: RATE_PER_SECOND,
      concurrency: CONCURRENCY,
      othersRead: true,
    })
    violations.push(...counted.violations, ...(await this.#leftovers()))
    return { violations, figures: counted.figures }
  }

  /** Commands may fail while the broker is away, but never for what they find in the state. */
  async #steer(): Promise<string[]> {
    const problems: string[] = []
    for (let index = 0; !this.#isOver; index += 1) {
      const host = this.#site.hosts()[index % 4] ?? ''
      const args = STEERING[index % STEERING.length]?.map((each) => each.replace('HOST', host)) ?? []
      const { code, stderr } = await this.#deployment.run(args)
      this.commands += 1
      if (/STATE_BROKEN|INTERNAL/.test(stderr)) problems.push(`${args.join(' ')} ended with ${code}: ${stderr}`)
    }
    return problems
  }

  /** What the programs said, those that were killed included, in the folder of the deployment. */
  keepLogs(): void {
    for (const [index, { name, running }] of this.#started.entries())
      this.#deployment.file(`${name}-${index + 1}.log`, running.stdout() + running.stderr())
  }

  #startAll(): void {
    const names = this.#options.processes === 'run' ? ['run'] : ['fetch', 'extract', 'frontier', 'delay']
    for (const name of names) this.#start(name)
  }

  #start(name: string): void {
    const running = this.#deployment.start([
      name,
      '--verbose',
      ...this.#runArguments(name),
      ...(takesExtractors(name) ? linkedExtractors(this.#deployment) : []),
    ])
    running.child.once('exit', () => this.#endedAt.set(running, performance.now()))
    this.#programs.set(name, running)
    this.#started.push({ name, running })
  }

  /** As a user would: the same line again, or without the seeds once all have been taken. */
  #runArguments(name: string): string[] {
    if (name !== 'run') return []
    this.#seeded ||= this.#site.hosts().every((host) => this.#site.requests.some((request) => request.host === host))
    if (!this.#seeded) return ['--crawl', CRAWL, '--seeds', 'seeds.txt']
    return this.#random.next() < 0.5 ? ['--crawl', CRAWL] : []
  }

  async #produceSeeds(): Promise<void> {
    await this.#deployment.read(async (runtime) => void (await applyTopics(runtime)))
    await produceSeeds(this.#deployment, this.#site, CRAWL)
  }

  /** Until the site is asked for something again. */
  async #asking(): Promise<void> {
    const before = this.#site.requests.length
    const until = performance.now() + 20_000
    while (this.#site.requests.length === before && performance.now() < until && !this.#hasEnded()) await this.#running(50)
  }

  /** Lets them work for a while; a program that has given up is started again, as its supervisor would. */
  async #running(ms: number): Promise<void> {
    const until = performance.now() + ms
    while (performance.now() < until && !this.#hasEnded()) {
      this.#restartEnded()
      await new Promise((resolve) => setTimeout(resolve, Math.min(50, Math.max(1, until - performance.now()))))
    }
  }

  #hasEnded(): boolean {
    return this.#options.processes === 'run' && this.#programs.get('run')?.child.exitCode === 0
  }

  #restartEnded(): void {
    for (const [name, program] of this.#programs) {
      const { exitCode, signalCode } = program.child
      if (exitCode === null && signalCode === null) continue
      if (exitCode === 0 && name === 'run') continue
      if (exitCode !== null) {
        const at = this.#endedAt.get(program) ?? performance.now()
        this.#ends.push(this.#killNow(`${name} gave up`, { losesRequests: losesRequests(name), at }))
        this.gaveUp.push(
          `${name} exit ${exitCode}: ${
            program
              .stderr()
              .split('\n')
              .filter((line) => line.startsWith('error'))[0] ?? program.stderr()
          }`,
        )
      }
      this.#start(name)
    }
  }

  async #strike(): Promise<void> {
    let fault = this.#random.pick(FAULTS)
    const takesBroker = fault.includes('broker')
    if (takesBroker && this.#brokerKills >= BROKER_KILLS) fault = 'program'
    const names = [...this.#programs.keys()]
    const victim = names[Math.floor(this.#random.next() * names.length)] ?? 'run'
    if (fault.includes('broker')) this.#killBroker()
    if (fault.includes('program')) await this.#killProgram(victim)
    if (fault === 'extraction') this.#killExtraction()
    if (fault === 'supervisor') this.#killSupervisor()
  }

  async #killProgram(name: string): Promise<void> {
    const program = this.#programs.get(name)
    const at = performance.now()
    if (program === undefined || !kill(program.child.pid)) return
    await program.done
    this.kills.push(this.#killNow(name, { losesRequests: losesRequests(name), at }))
    // Some start again at once, some after their leases have been swept and the broker has been stopped.
    await new Promise((resolve) => setTimeout(resolve, this.#random.next() < 0.7 ? 0 : this.#random.between(200, 3_000)))
    this.#restartEnded()
  }

  #killBroker(): void {
    const wasUp = this.#brokerFile()?.phase === 'up'
    const pid = this.#brokerProcess('broker')
    if (!kill(pid)) return
    this.#brokerKills += 1
    // One that had not come back yet has been away since the kill before.
    if (wasUp || this.#brokerDownSince === undefined) this.#brokerDownSince = performance.now()
    this.kills.push(this.#killNow('broker'))
  }

  #killSupervisor(): void {
    if (kill(this.#brokerProcess('supervisor'))) this.kills.push(this.#killNow('supervisor'))
  }

  #killExtraction(): void {
    const children = [...this.#programs.values()].flatMap(({ child }) => childrenOf(child.pid, 'extraction-process'))
    if (children.some(kill)) this.kills.push(this.#killNow('extraction'))
  }

  /** Shape: what was on its way to the site at `at` is in its log by now. */
  #killNow(what: string, { losesRequests = false, at = performance.now() } = {}): Kill {
    // Requests that were answered since then have not been acknowledged for certain; it is back after some seconds, or later where its
    // supervisor was killed as well.
    const since = this.#brokerDownSince
    const file = this.#brokerFile()
    const isAway = file?.phase !== 'up' || !isRunning(file.broker?.pid)
    const down = since !== undefined && (isAway || at - since < 10_000) ? since : undefined
    return { at, what, until: performance.now(), brokerDownSince: down, losesRequests }
  }

  #brokerProcess(which: 'broker' | 'supervisor'): number | undefined {
    return this.#brokerFile()?.[which]?.pid
  }

  #brokerFile(): { phase?: string; broker?: { pid?: number }; supervisor?: { pid?: number } } | undefined {
    try {
      return JSON.parse(readFileSync(join(this.#deployment.dataDir, 'kafka', 'process.json'), 'utf8'))
    } catch (error) {
      // None runs at the moment.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  async #untilEnd(): Promise<string[]> {
    const left = (): number => Math.max(1, this.#deadline - performance.now())
    if (this.#options.processes === 'run') {
      await this.#untilOrStuck(async () => this.#hasEnded(), left())
      const result = await (this.#programs.get('run') as RunningCli).done
      return result.code === 0 ? [] : [`the last run ended with ${result.code}: ${result.stderr}`]
    }
    await this.#untilOrStuck(() => isCrawlOver(this.#deployment, CRAWL), left())
    const results: CliResult[] = []
    for (const program of this.#programs.values()) program.child.kill('SIGTERM')
    for (const program of this.#programs.values()) results.push(await program.done)
    return results
      .filter(({ code }) => code !== 143)
      .map(({ code, stderr }) => `a stage that was told to end ended with ${code}: ${stderr}`)
  }

  async #untilOrStuck(check: () => Promise<boolean>, timeoutMs: number): Promise<void> {
    try {
      await eventually(
        async () => {
          this.#restartEnded()
          return check()
        },
        { timeoutMs, everyMs: 100, what: 'the end of the crawl' },
      )
    } catch (error) {
      this.keepLogs()
      const said = [...this.#programs].map(([name, { stdout, stderr }]) => `${name}: ${stdout()}${stderr().slice(-2_000)}`)
      throw new Error(
        `seed ${this.#options.seed}: ${String(error)}\nkills: ${this.kills.map(({ what }) => what).join(', ')}\ngave up: ${this.gaveUp.join(', ')}\n${said.join('\n')}`,
        {
          cause: error,
        },
      )
    }
  }

  /** Whatever was killed, nothing may stay behind: no broker, no supervisor, no extraction process. */
  async #leftovers(): Promise<string[]> {
    const find = (): string[] => processesOf(this.#deployment.folder)
    try {
      await eventually(() => find().length === 0, { timeoutMs: 15_000, everyMs: 100, what: 'all processes to end' })
      return []
    } catch {
      return find().map((command) => `left running: ${command.slice(0, 200)}`)
    }
  }
}

function losesRequests(name: string): boolean {
  return name === 'run' || name === 'fetch'
}

function takesExtractors(name: string): boolean {
  return name === 'run' || name === 'extract' || name === 'frontier'
}
