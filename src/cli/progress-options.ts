import { systemClock } from '../kernel/clock.ts'
import { durationText } from '../kernel/duration-text.ts'
import type { CommandContext } from './context.ts'
import type { ProgressOptions } from './progress.ts'

/** How a command shows its progress, by its flags and by where stderr goes. */
export function progressOptions(context: CommandContext): ProgressOptions {
  const style = context.globals.quiet ? 'none' : context.globals.json ? 'json' : context.interactive ? 'line' : 'log'
  return {
    write: (text) => process.stderr.write(text),
    style,
    clock: systemClock,
    columns: () => process.stderr.columns ?? 80,
    duration: durationText,
  }
}
