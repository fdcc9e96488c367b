import { hasCorpus } from '../support/corpus.ts'
import type { BenchBroker } from './fetch-deployment.ts'
import { type Goal, median, print, printTable, short } from './figures.ts'
import { loadAverage } from './machine-usage.ts'
import { pageLoop, ReplayDeployment, WARM_PAGES } from './replay-deployment.ts'
import { engines } from './replay-engines.ts'
import { WIDE } from './replay-extractors.ts'
import type { ReplayOptions } from './replay-overhead.ts'

/** One extraction process; two in one member; two members of one each. */
const SHAPES = [
  { name: 'one process', members: 1, threads: 1 },
  { name: 'two processes of one member', members: 1, threads: 2 },
  { name: 'two members', members: 2, threads: 1 },
] as const

/** G7: pages per second with two extraction processes, against one. */
export async function replayScaling(broker: BenchBroker, { rounds, pages }: ReplayOptions): Promise<Goal[]> {
  if (!hasCorpus) {
    print('\nG7 skipped: there is no corpus of real pages')
    return []
  }
  const goals: Goal[] = []
  for (const engine of engines()) {
    const speeds = new Map<string, number[]>(SHAPES.map(({ name }) => [name, []]))
    const cpu = new Map<string, number[]>(SHAPES.map(({ name }) => [name, []]))
    const deployment = await ReplayDeployment.open(broker, { pages, rounds: rounds * SHAPES.length, extractors: [WIDE] })
    try {
      const { records } = await pageLoop('bare', { extractor: WIDE, warmPages: 0, pages: 1 })
      for (let round = 0; round < rounds; round += 1) {
        for (const { name, members, threads } of SHAPES) {
          const figures = await deployment.round({ extractor: WIDE, engine, members, threads })
          await deployment.verify(WIDE, figures.recordsFrom, records)
          speeds.get(name)?.push(figures.pages / figures.seconds)
          cpu.get(name)?.push((figures.cpuSeconds / figures.pages) * 1_000)
        }
      }
    } finally {
      await deployment.close()
    }
    const speed = (name: string): number => median(speeds.get(name) ?? [])
    print(
      `\n${rounds} rounds of ${pages} stored pages after ${WARM_PAGES} warm ones for each member, ${engine.name}; medians, load ${short(loadAverage())}`,
    )
    printTable(
      ['', 'pages/s', 'CPU ms/page', 'against one'],
      SHAPES.map(({ name }) => [name, speed(name), median(cpu.get(name) ?? []), speed(name) / speed('one process')]),
    )
    for (const { name } of SHAPES.slice(1))
      goals.push({
        name: `G7 pages/s of ${name} against one, ${engine.name}`,
        value: speed(name) / speed('one process'),
        target: { atLeast: 1.6 },
      })
  }
  return goals
}
