import { type Command, Option } from 'commander'
import { formatDuration } from '../config/units.ts'
import { DRAIN_TIMEOUT_MS } from '../control/defaults.ts'
import { crawlName } from '../message/crawl-name.ts'
import type { CommandContext } from './context.ts'

/** What a command file exports: the definition is light, the work is imported when the command runs. */
export type CommandDefinition = (contextOf: (command: Command) => CommandContext) => Command

/** For options that may be repeated. */
export function collect(value: string, previous: readonly string[]): readonly string[] {
  return [...previous, value]
}

/** For the help of commands with options that take a `<time>`. `means`: what a duration stands for. */
export function timeForms(means: 'that long ago' | 'from now'): string {
  return `\nA <time> is like 2026-03-01T12:00:00+01:00 (in UTC where it names no zone), epoch\nmilliseconds, or a duration like 2h: ${means}.`
}

/** For `--crawl`. */
export function crawlOption(text: string): string {
  return crawlName(text, '--crawl')
}

/** `--drain-timeout` of whatever runs until a signal. */
export function drainTimeoutOption(): Option {
  return new Option('--drain-timeout <duration>', 'how long the first Ctrl-C may take').default(formatDuration(DRAIN_TIMEOUT_MS))
}
