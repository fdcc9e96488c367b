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

/** One figure: what it takes, and what it gives. Each prints its own table. */
type Bench = (broker: BenchBroker, rounds: number) => Promise<Goal[]>

const BENCHES: Readonly<Record<string, Readonly<Record<string, Bench>>>> = {
  fetch: {
    throughput: (broker, rounds) => fetchThroughput(broker, { rounds, pages: 4_000, latencyMs: 0, concurrency: 64 }),
    lanes: (broker) => fetchLanes(broker, 60),
    fairness: (broker) => fetchFairness(broker, 40),
    pace: (broker) => fetchPace(broker, 60),
    isolation: (broker) => fetchIsolation(broker, { hugeTasks: 100_000, seconds: 40 }),
    crawlee: (broker, rounds) => fetchCrawlee(broker, { rounds, pages: 4_000 }),
    memory: (broker) => fetchMemory(broker, { many: 1_000_000, seconds: 60 }),
    explain: (broker) => fetchExplain(broker, { tasks: 1_000_000 }),
    leaks: () => fetchLeaks(100_000),
    latency: (broker, rounds) => fetchThroughput(broker, { rounds, pages: 4_000, latencyMs: 200, concurrency: 64 }),
  },
}

const ROUNDS = 5

async function main(args: readonly string[]): Promise<number> {
  const rounds = Number(args.find((arg) => arg.startsWith('--rounds='))?.slice('--rounds='.length) ?? ROUNDS)
  const [area = '', ...names] = args.filter((arg) => !arg.startsWith('--'))
  const benches = Object.hasOwn(BENCHES, area) ? (BENCHES[area] ?? {}) : {}
  const unknown = names.filter((name) => !Object.hasOwn(benches, name))
  if (Object.keys(benches).length === 0 || unknown.length > 0 || !(rounds >= 1)) {
    print(`usage: npm run bench -- AREA [NAME ...] [--rounds=${ROUNDS}]`)
    for (const [known, own] of Object.entries(BENCHES)) print(`  ${known}: ${Object.keys(own).join(', ')}`)
    return 2
  }
  const chosen = names.length === 0 ? Object.keys(benches) : names
  const broker = await BenchBroker.start()
  const goals: Goal[] = []
  try {
    for (const name of chosen) goals.push(...((await benches[name]?.(broker, rounds)) ?? []))
  } finally {
    await broker.stop()
  }
  print('')
  printGoals(goals)
  return goals.every(isMet) ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2))
