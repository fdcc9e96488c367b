import { fetchCrawlee } from './fetch-crawlee.ts'
import { BenchBroker } from './fetch-deployment.ts'
import { fetchExplain } from './fetch-explain.ts'
import { fetchFairness } from './fetch-fairness.ts'
import { fetchIsolation } from './fetch-isolation.ts'
import { fetchLanes } from './fetch-lanes.ts'
import { fetchLeaks } from './fetch-leaks.ts'
import { fetchMemory } from './fetch-memory.ts'
import { fetchPace } from './fetch-pace.ts'
import { fetchThroughput } from './fetch-throughput.ts'
import { type Goal, isMet, print, printGoals } from './figures.ts'

import { replayIdle } from './replay-idle.ts'
import { replayMemory } from './replay-memory.ts'
import { replayObvious, replayOverhead } from './replay-overhead.ts'
import { replayCrawlee, replayScrapy } from './replay-peers.ts'
import { replayScaling } from './replay-scaling.ts'
import { replayStored } from './replay-stored.ts'

/** One figure: what it takes, and what it gives. Each prints its own table. */
type Bench = (broker: BenchBroker, options: BenchOptions) => Promise<Goal[]>

interface BenchOptions {
  readonly rounds: number
  /** Of the load; each bench has its own number where not given. */
  readonly pages: number | undefined
}

const BENCHES: Readonly<Record<string, Readonly<Record<string, Bench>>>> = {
  fetch: {
    throughput: (broker, { rounds, pages = 50_000 }) => fetchThroughput(broker, { rounds, pages, latencyMs: 0, concurrency: 64 }),
    lanes: (broker) => fetchLanes(broker, 60),
    fairness: (broker) => fetchFairness(broker, { seconds: 35, skew: 1_000 }),
    pace: (broker) => fetchPace(broker, 60),
    isolation: (broker) => fetchIsolation(broker, { hugeTasks: 1_000_000, seconds: 40 }),
    crawlee: (broker, { rounds, pages = 50_000 }) => fetchCrawlee(broker, { rounds, pages }),
    memory: (broker) => fetchMemory(broker, { many: 1_000_000, seconds: 60 }),
    explain: (broker) => fetchExplain(broker, { tasks: 1_000_000 }),
    leaks: () => fetchLeaks(100_000),
    latency: (broker, { rounds, pages = 20_000 }) => fetchThroughput(broker, { rounds, pages, latencyMs: 200, concurrency: 64 }),
  },
  replay: {
    overhead: (broker, { rounds, pages = 20_000 }) => replayOverhead(broker, { rounds, pages }),
    obvious: (broker, { rounds, pages = 20_000 }) => replayObvious(broker, { rounds, pages }),
    scaling: (broker, { rounds, pages = 20_000 }) => replayScaling(broker, { rounds, pages }),
    memory: (broker, { pages = 20_000 }) => replayMemory(broker, { pages }),
    stored: (broker, { pages = 10_000 }) => replayStored(broker, { pages }),
    crawlee: (broker, { rounds, pages = 4_000 }) => replayCrawlee(broker, { rounds, pages }),
    scrapy: (broker, { rounds, pages = 4_000 }) => replayScrapy(broker, { rounds, pages }),
    idle: (broker) => replayIdle(broker, { urls: 200 }),
  },
}

const ROUNDS = 5

async function main(args: readonly string[]): Promise<number> {
  const rounds = numberFlag(args, 'rounds') ?? ROUNDS
  const pages = numberFlag(args, 'pages')
  const [area = '', ...names] = args.filter((arg) => !arg.startsWith('--'))
  const benches = Object.hasOwn(BENCHES, area) ? (BENCHES[area] ?? {}) : {}
  const unknown = names.filter((name) => !Object.hasOwn(benches, name))
  if (Object.keys(benches).length === 0 || unknown.length > 0 || !(rounds >= 1) || !((pages ?? 1) >= 1)) {
    print(`usage: npm run bench -- AREA [NAME ...] [--rounds=${ROUNDS}] [--pages=NUMBER]`)
    for (const [known, own] of Object.entries(BENCHES)) print(`  ${known}: ${Object.keys(own).join(', ')}`)
    return 2
  }
  const chosen = names.length === 0 ? Object.keys(benches) : names
  const broker = await BenchBroker.start()
  const goals: Goal[] = []
  try {
    for (const name of chosen) goals.push(...((await benches[name]?.(broker, { rounds, pages })) ?? []))
  } finally {
    await broker.stop()
  }
  print('')
  printGoals(goals)
  return goals.every(isMet) ? 0 : 1
}

/** Shape: undefined where it is not given, NaN where it is no number. */
function numberFlag(args: readonly string[], name: string): number | undefined {
  const given = args.find((arg) => arg.startsWith(`--${name}=`))
  return given === undefined ? undefined : Number(given.slice(name.length + 3))
}

process.exitCode = await main(process.argv.slice(2))
