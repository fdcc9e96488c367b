import { hasCorpus } from '../support/corpus.ts'
import type { BenchBroker } from './fetch-deployment.ts'
import { type Goal, median, print, printTable, short } from './figures.ts'
import { loadAverage } from './machine-usage.ts'
import type { PageLoopReport } from './page-loop.ts'
import { type ExtractRound, pageLoop, ReplayDeployment, WARM_PAGES } from './replay-deployment.ts'
import { type Engine, engines } from './replay-engines.ts'
import { type BenchExtractor, SHORT, WIDE } from './replay-extractors.ts'

export interface ReplayOptions {
  readonly rounds: number
  /** Stored pages of a round. */
  readonly pages: number
}

/** What one contender took, by round. */
type Taken = Pick<ExtractRound, 'pages' | 'cpuSeconds' | 'seconds'> & Partial<ExtractRound>

/** G1: the extract command over a full html topic, against the same extractor over the same pages in memory. */
export async function replayOverhead(broker: BenchBroker, options: ReplayOptions): Promise<Goal[]> {
  const goals: Goal[] = []
  for (const extractor of [SHORT, WIDE]) goals.push(...(await against(broker, options, extractor, 'bare')))
  return goals
}

/** G2: the same, against `cheerio.load` and ten selectors for each page. */
export function replayObvious(broker: BenchBroker, options: ReplayOptions): Promise<Goal[]> {
  return against(broker, options, WIDE, 'obvious')
}

async function against(
  broker: BenchBroker,
  options: ReplayOptions,
  extractor: BenchExtractor,
  program: 'bare' | 'obvious',
): Promise<Goal[]> {
  if (!hasCorpus) {
    print(`\n${program === 'bare' ? 'G1' : 'G2'} skipped: there is no corpus of real pages`)
    return []
  }
  const taken = new Map<string, Taken[]>()
  const note = (name: string, round: Taken): void => void taken.set(name, [...(taken.get(name) ?? []), round])
  const contenders = engines()
  const deployment = await ReplayDeployment.open(broker, {
    pages: options.pages,
    rounds: options.rounds * contenders.length,
    extractors: [extractor],
  })
  let recordBytes = 0
  try {
    for (let round = 0; round < options.rounds; round += 1) {
      const loops = new Map<string, PageLoopReport>()
      for (const engine of contenders) {
        const name = loopOf(program, engine)
        const loop =
          loops.get(name) ??
          (await pageLoop(program, { extractor, warmPages: WARM_PAGES, pages: loopPages(options.pages), native: engine.isNative }))
        if (!loops.has(name)) note(name, loop)
        loops.set(name, loop)
        recordBytes = meanBytes(loop)
        const figures = await deployment.round({ extractor, engine })
        await deployment.verify(extractor, figures.recordsFrom, loop.records)
        note(engine.name, figures)
      }
    }
  } finally {
    await deployment.close()
  }
  return report(program, options, taken, contenders, recordBytes)
}

/** Name of the loop that an engine is held against: the same engine where it is the same extractor. */
function loopOf(program: 'bare' | 'obvious', { name }: Engine): string {
  return program === 'bare' ? `the same extractor in memory, ${name}` : 'cheerio.load and ten selectors'
}

/** The loop needs no more pages than it takes to be sure of its figure. */
function loopPages(pages: number): number {
  return Math.min(pages, 4_000)
}

function meanBytes({ records }: PageLoopReport): number {
  return records.reduce((total, { length }) => total + length, 0) / records.length
}

function report(
  program: 'bare' | 'obvious',
  { rounds, pages }: ReplayOptions,
  taken: ReadonlyMap<string, readonly Taken[]>,
  contenders: readonly Engine[],
  recordBytes: number,
): Goal[] {
  const middle = (name: string, of: (round: Taken) => number): number => median((taken.get(name) ?? []).map(of))
  const cpuMs = (name: string): number => middle(name, (round) => (round.cpuSeconds / round.pages) * 1_000)
  const wallMs = (name: string): number => middle(name, (round) => (round.seconds / round.pages) * 1_000)
  const loops = [...new Set(contenders.map((engine) => loopOf(program, engine)))]
  print(
    `\n${rounds} rounds of ${pages} stored pages (the loop: ${loopPages(pages)}), records of ${Math.round(recordBytes)} bytes, one extraction process; medians, load ${short(loadAverage())}`,
  )
  printTable(
    ['', 'CPU ms/page', 'of it parsing', 'wall ms/page', 'broker CPU ms/page', 'loop/this, CPU', 'loop/this, wall'],
    [
      ...loops.map((name) => [name, cpuMs(name), '', wallMs(name), '', 1, 1]),
      ...contenders.map((engine) => [
        `extract, ${engine.name}`,
        cpuMs(engine.name),
        middle(engine.name, (round) => ((round.parsingCpuSeconds ?? 0) / round.pages) * 1_000),
        wallMs(engine.name),
        middle(engine.name, (round) => ((round.brokerCpuSeconds ?? 0) / round.pages) * 1_000),
        cpuMs(loopOf(program, engine)) / cpuMs(engine.name),
        wallMs(loopOf(program, engine)) / wallMs(engine.name),
      ]),
    ],
  )
  return contenders.map((engine) => ({
    name:
      program === 'bare'
        ? `G1 CPU of the same extractor in memory / replay, ${engine.name}, records of ${(recordBytes / 1_000).toFixed(1)} KB`
        : `G2 CPU of cheerio.load and ten selectors / replay, ${engine.name}`,
    value: cpuMs(loopOf(program, engine)) / cpuMs(engine.name),
    target: { atLeast: program === 'bare' ? overheadTarget(recordBytes, engine.isNative) : engine.isNative ? 3 : 1.4 },
  }))
}

function overheadTarget(recordBytes: number, isNative: boolean): number {
  if (recordBytes <= 4_000) return isNative ? 0.85 : 0.9
  return isNative ? 0.8 : 0.85
}
