import type { Clock } from '../../kernel/clock.ts'
import { batches } from './batches.ts'
import { BadSeeds, readSeed, type SeedText } from './produce.ts'

const BATCH = { size: 1_000, lingerMs: 1_000 } as const

/**
 * Reads a whole input before anything is done with it. Shape: the good ones, in order; all that is bad. Cost: the input in memory.
 * Ends early, with what it has, when the signal aborts. Errors: those of the input.
 */
export async function readAllSeeds(
  seeds: AsyncIterable<SeedText>,
  clock: Clock,
  signal: AbortSignal,
): Promise<{ readonly good: readonly SeedText[]; readonly bad: BadSeeds }> {
  const good: SeedText[] = []
  const bad = new BadSeeds()
  for await (const batch of batches(seeds, { ...BATCH, clock, signal })) {
    for (const seed of batch) {
      const read = readSeed(seed)
      if (read.kind === 'url') good.push(seed)
      else if (read.kind === 'bad') bad.add(read.bad)
    }
  }
  return { good, bad }
}
