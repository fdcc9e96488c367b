import { hasCorpus } from '../support/corpus.ts'
import type { BenchBroker } from './fetch-deployment.ts'
import { type Goal, print, printTable, short, slope } from './figures.ts'
import { loadAverage } from './machine-usage.ts'
import { pageLoop, ReplayDeployment, WARM_PAGES } from './replay-deployment.ts'
import { engines } from './replay-engines.ts'
import { WIDE } from './replay-extractors.ts'

/** G11: resident memory of the stage over a long replay, both of its processes together, against the same extractor in a bare loop. */
export async function replayMemory(broker: BenchBroker, { pages }: { pages: number }): Promise<Goal[]> {
  if (!hasCorpus) {
    print('\nG11 skipped: there is no corpus of real pages')
    return []
  }
  const goals: Goal[] = []
  const bare = await pageLoop('bare', { extractor: WIDE, warmPages: WARM_PAGES, pages: 2_000 })
  for (const engine of engines()) {
    const deployment = await ReplayDeployment.open(broker, { pages, rounds: 1, extractors: [WIDE] })
    try {
      const { samples, recordsFrom } = await deployment.round({ extractor: WIDE, engine })
      await deployment.verify(WIDE, recordsFrom, bare.records)
      const half = samples.filter((sample) => sample.pages >= pages / 2)
      const highest = Math.max(...samples.map(({ residentMiB }) => residentMiB))
      const perTenThousand = slope(half.map((sample) => [sample.pages, sample.residentMiB])) * 10_000
      print(`\n${pages} stored pages, ${engine.name}; load ${short(loadAverage())}`)
      printTable(
        ['', 'highest RSS, MiB', 'growth over the last half, MiB per 10,000 pages'],
        [
          ['the same extractor in memory', bare.residentMiB, ''],
          [`extract, ${engine.name}, both processes`, highest, perTenThousand],
        ],
      )
      const at = (share: number): { residentMiB: number; parsingMiB: number } | undefined =>
        samples.find((sample) => sample.pages >= share * pages)
      const shares = [0.1, 0.25, 0.5, 0.75, 1]
      printTable(
        ['MiB', ...shares.map((share) => `at ${share * pages}`)],
        [
          ['both processes', ...shares.map((share) => at(share)?.residentMiB ?? Number.NaN)],
          ['of it parsing', ...shares.map((share) => at(share)?.parsingMiB ?? Number.NaN)],
        ],
      )
      goals.push(
        { name: `G11 RSS beyond the bare loop, ${engine.name}, MiB`, value: highest - bare.residentMiB, target: { atMost: 100 } },
        { name: `G11 growth per 10,000 pages, ${engine.name}, MiB`, value: perTenThousand, target: { atMost: 1 } },
      )
    } finally {
      await deployment.close()
    }
  }
  return goals
}
