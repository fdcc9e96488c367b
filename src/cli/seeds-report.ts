import type { ProduceReport, SeedText } from '../control/crawls/produce.ts'
import { readAllSeeds } from '../control/crawls/strict-seeds.ts'
import { systemClock } from '../kernel/clock.ts'
import type { CommandContext } from './context.ts'
import { renderCount, toJson } from './render.ts'

/** Shape: undefined where a line is bad, or the input was interrupted; all of that is told, with the exit code. */
export async function strictSeeds(context: CommandContext, given: AsyncIterable<SeedText>): Promise<readonly SeedText[] | undefined> {
  const { good, bad } = await readAllSeeds(given, systemClock, context.draining)
  const interrupted = context.draining.aborted
  if (bad.count === 0 && !interrupted) return good
  if (bad.count > 0) context.setExitCode(1)
  await tellProduced(context, { produced: 0, badCount: bad.count, bad: bad.first, interrupted })
  return undefined
}

/** What `produce` has written, and what it has not. */
export async function tellProduced(context: CommandContext, report: ProduceReport): Promise<void> {
  if (context.globals.json) {
    await context.out(toJson(report))
    return
  }
  tellBadSeeds(context, report)
  const place = report.lastLine === undefined ? '' : ` after line ${renderCount(report.lastLine)}`
  if (report.interrupted) context.note(`interrupted${place}: the rest of the input was not read`)
  const skipped = `, ${renderCount(report.badCount)} bad ${report.badCount === 1 ? 'one' : 'ones'} skipped`
  await context.out(`${writtenText(report.produced)}${report.badCount > 0 ? skipped : ''}`)
}

export function writtenText(count: number): string {
  return `${renderCount(count)} ${count === 1 ? 'URL' : 'URLs'} written`
}

/** One line for each bad seed that was kept, and how many more there are; with --quiet too. */
export function tellBadSeeds(context: CommandContext, { bad, badCount }: Pick<ProduceReport, 'bad' | 'badCount'>): void {
  for (const { line, reason } of bad) context.err(`${line === undefined ? '' : `line ${line}: `}${reason}`)
  if (badCount > bad.length) context.err(`and ${renderCount(badCount - bad.length)} more bad lines`)
}
