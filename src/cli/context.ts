import type { LoadedConfig } from '../config/load.ts'
import type { OptionPath } from '../config/options.ts'
import type { MetricSink, Observer } from '../kernel/observe.ts'

/** Options that every command takes. */
export interface GlobalOptions {
  readonly config?: string
  readonly set: readonly string[]
  readonly brokers?: string
  readonly redis?: string
  readonly data?: string
  readonly json: boolean
  readonly quiet: boolean
  readonly verbose: boolean
  readonly color: boolean
}

/** What a command is given. Data goes to `out`, everything for people to `note`. */
export interface CommandContext {
  readonly globals: GlobalOptions
  /** Loads the configuration; `flags` are the options that this command has flags for. */
  loadConfig(flags?: Readonly<Partial<Record<OptionPath, string | readonly string[]>>>): LoadedConfig
  /** One line of data on stdout. Resolves when the reader has taken it, so that memory stays bounded. */
  out(line: string): Promise<void>
  /** One line for people on stderr; silent with --quiet. */
  note(line: string): void
  /** One line on stderr, with --quiet too: what went wrong, or data where stdout has other data. */
  err(line: string): void
  readonly observer: Observer
  /** From now on the metrics of events are counted here; before, and without, they are not counted. */
  countInto(sink: MetricSink): void
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP: take nothing new, finish, leave. */
  readonly draining: AbortSignal
  /** Aborted by the second one: stop at once. */
  readonly aborting: AbortSignal
  /** True when stderr is a terminal that progress can be drawn on. */
  readonly interactive: boolean
  /**
   * From now on a reader of stdout that closes it (`| head -1`) drains, as Ctrl-C does, and aborts this signal; else it ends the process.
   */
  drainWhenUnread(): AbortSignal
  /** Exit code of a command that ended without an error; 0 where it is not called. */
  setExitCode(code: number): void
}
