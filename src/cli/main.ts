#!/usr/bin/env node
import { CommanderError } from 'commander'
import pc from 'picocolors'
import { loadConfig } from '../config/load.ts'
import { systemClock } from '../kernel/clock.ts'
import { errorText, isMillraceError, MillraceError } from '../kernel/errors.ts'
import { createObserver, type Logger, type MetricSink } from '../kernel/observe.ts'
import type { CommandContext, GlobalOptions } from './context.ts'
import { createLogger, createTerminalLogger } from './log.ts'
import { buildProgram } from './program.ts'
import { reportError } from './report-error.ts'
import { terminalText } from './terminal-text.ts'

/**
 * The command line: the only place that reads argv, listens to signals and ends the process.
 * First SIGINT, SIGTERM or SIGHUP (the terminal is gone) drains, a second one stops at once (but SIGHUP); the exit code is then 130, 143 or
 * 129.
 */
const SIGNAL_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
/** Done in part: where nobody reads on, and the command was cut short. */
const UNREAD_CODE = 3

/** After the second signal everything should be gone at once; this is for what hangs all the same. */
const LAST_RESORT_MS = 3000

async function main(argv: readonly string[]): Promise<number> {
  let globals: GlobalOptions = { set: [], json: argv.includes('--json'), quiet: false, verbose: argv.includes('--verbose'), color: true }
  let exitCode = 0
  const draining = new AbortController()
  const aborting = new AbortController()
  const signalCode = listenToSignals(draining, aborting)
  const unread = new AbortController()
  let onUnread = (): void => process.exit(signalCode() ?? exitCode)
  endWithOutput(
    () => globals,
    () => onUnread(),
  )

  const contextOf = (options: GlobalOptions): CommandContext => {
    globals = options
    let sink: MetricSink | undefined
    const metrics: MetricSink = { record: (metric, labels, value) => sink?.record(metric, labels, value) }
    const observer = createObserver({ logger: loggerOf(options), metrics, clock: systemClock })
    return {
      globals: options,
      loadConfig: (flags = {}) =>
        loadConfig({
          ...(options.config === undefined ? {} : { file: options.config }),
          sets: options.set,
          flags: { ...globalFlags(options), ...flags },
        }),
      out: (line) =>
        new Promise((resolve) => {
          if (process.stdout.write(`${terminalText(line)}\n`, () => resolve())) resolve()
        }),
      note: (line) => {
        if (!options.quiet) process.stderr.write(`${terminalText(line)}\n`)
      },
      err: (line) => void process.stderr.write(`${terminalText(line)}\n`),
      observer,
      countInto: (target) => {
        sink = target
      },
      draining: draining.signal,
      aborting: aborting.signal,
      interactive: process.stderr.isTTY === true && !options.json && !options.quiet,
      drainWhenUnread: () => {
        onUnread = () => {
          unread.abort()
          draining.abort(new Error('nobody reads standard output any more'))
        }
        return unread.signal
      },
      setExitCode: (code) => {
        exitCode = code
      },
    }
  }

  try {
    await buildProgram(contextOf, { json: globals.json }).parseAsync([...argv], { from: 'user' })
    return signalCode() ?? exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    // What a signal cut short is no failure of the command.
    const isStop = aborting.signal.aborted || error === draining.signal.reason || isMillraceError(error, 'ABORTED')
    if (isStop && (unread.signal.aborted || signalCode() !== undefined)) return signalCode() ?? UNREAD_CODE
    const report = reportError(error, globals)
    exitCode = report.exitCode
    const text = terminalText(report.text)
    const isRed = globals.color && process.stderr.isTTY && !globals.json && pc.isColorSupported
    process.stderr.write(`${isRed ? text.replace(/^error:/, pc.red('error:')) : text}\n`)
    return signalCode() ?? exitCode
  }
}

function loggerOf(options: GlobalOptions): Logger {
  const level = logLevel(options)
  if (options.json || options.verbose || process.stderr.isTTY !== true) return createLogger(level)
  // Progress is drawn on the same line.
  return createTerminalLogger(level, (line) => process.stderr.write(`\r\x1b[2K${line}\n`))
}

function logLevel(options: GlobalOptions): 'debug' | 'warn' | 'error' {
  if (options.verbose) return 'debug'
  return options.quiet ? 'error' : 'warn'
}

function globalFlags(options: GlobalOptions): Record<string, string> {
  return {
    ...(options.brokers === undefined ? {} : { brokers: options.brokers }),
    ...(options.redis === undefined ? {} : { redis: options.redis }),
    ...(options.data === undefined ? {} : { data: options.data }),
  }
}

function listenToSignals(draining: AbortController, aborting: AbortController): () => number | undefined {
  let code: number | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      code ??= SIGNAL_CODES[signal]
      if (!draining.signal.aborted) {
        if (process.stderr.isTTY) process.stderr.write('\nfinishing what is in flight; once more to stop at once\n')
        draining.abort(new Error(`stopped by ${signal}`))
        return
      }
      // A shell and the system send one each when a terminal is closed.
      if (signal === 'SIGHUP') return
      aborting.abort(new Error(`stopped by ${signal}`))
      const exit = code
      systemClock.timer(LAST_RESORT_MS, () => process.exit(exit), { unref: true })
    })
  }
  return () => code
}

/**
 * What can't be written is lost, so nothing goes on. A reader that closes early (`| head -1`) is no error: that is the command's to know.
 * Anything else is told, such as a full disk behind `> file`.
 */
function endWithOutput(globals: () => GlobalOptions, onUnread: () => void): void {
  const end = (error: NodeJS.ErrnoException): void => {
    // Of a terminal that is closed its signal tells, and what is under way has its time.
    if (error.code === 'EIO' && process.stdout.isTTY) return
    if (error.code === 'EPIPE') {
      onUnread()
      return
    }
    const code = error.code === 'ENOSPC' ? 'DISK_FULL' : 'INTERNAL'
    const failure = new MillraceError(code, `standard output can not be written: ${errorText(error)}`)
    const { text, exitCode } = reportError(failure, globals())
    process.stderr.write(`${text}\n`)
    process.exit(exitCode)
  }
  process.stdout.on('error', end)
  // A remark that finds no reader, no room on the disk or no terminal any more is lost: it is no reason to leave work undone.
  process.stderr.on('error', () => undefined)
}

main(process.argv.slice(2)).then(
  (code) => {
    // Flush what is still buffered, then end: a forgotten socket must not keep a finished command alive.
    process.exitCode = code
    process.stdout.write('', () => process.stderr.write('', () => process.exit(code)))
  },
  (error: unknown) => {
    process.stderr.write(`error: ${terminalText(errorText(error))}\n`)
    process.exit(1)
  },
)
