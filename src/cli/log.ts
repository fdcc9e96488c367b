import pino from 'pino'
import { systemClock } from '../kernel/clock.ts'
import { countText, isAre } from '../kernel/count-text.ts'
import type { LogLevel } from '../kernel/event-definition.ts'
import type { Logger } from '../kernel/observe.ts'
import { wellFormedJson } from '../kernel/well-formed-json.ts'
import { terminalLine } from './terminal-text.ts'

/** Log lines as NDJSON on stderr, for collectors; stdout is for data. */
export function createLogger(level: LogLevel, destination: pino.DestinationStream = boundedLines(process.stderr)): Logger {
  return pino(
    {
      level,
      base: null,
      hooks: { streamWrite: wellFormedJson },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: level === 'debug' ? pino.stdSerializers.err : withoutStack },
      redact: { paths: ['password', 'authorization', 'cookie', '*.password', '*.authorization', '*.cookie'], censor: '(hidden)' },
    },
    destination,
  )
}

/** Of lines that nobody has read yet. */
const MAX_UNREAD_BYTES = 1_048_576

/**
 * By the stream of the process: that of the log library would keep the lines that a full disk has not taken, and throw into whoever logs.
 * Lines that a reader is too slow for are left out and counted, as neither the work may wait for them nor memory hold them.
 */
export function boundedLines(stream: Pick<NodeJS.WriteStream, 'write' | 'writableLength'>): pino.DestinationStream {
  let leftOut = 0
  return {
    write(line) {
      if (stream.writableLength > MAX_UNREAD_BYTES) {
        leftOut += 1
        return
      }
      if (leftOut > 0) {
        const time = new Date(systemClock.now()).toISOString()
        const msg = `${countText(leftOut, 'line')} of the log ${isAre(leftOut)} left out here: standard error was not read`
        stream.write(`${JSON.stringify({ level: 'warn', time, leftOut, msg })}\n`)
        leftOut = 0
      }
      stream.write(line)
    },
  }
}

/** Stacks are for those who asked for all there is. */
function withoutStack(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { code } = error as { code?: unknown }
  return { type: error.name, message: error.message, ...(code === undefined ? {} : { code }) }
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** The same for a person at a terminal: one readable line, without stacks. */
export function createTerminalLogger(level: LogLevel, write: (line: string) => void): Logger {
  const isLevelEnabled = (of: LogLevel): boolean => LEVELS.indexOf(of) >= LEVELS.indexOf(level)
  const log =
    (of: LogLevel) =>
    (fields: object, message: string): void => {
      if (!isLevelEnabled(of)) return
      const facts = Object.entries(fields).flatMap(([name, value]) =>
        name === 'event' || value === undefined || value === '' ? [] : [`${name} ${shown(value)}`],
      )
      write(`${of}: ${message}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`)
    }
  return { isLevelEnabled, debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
}

function shown(value: unknown): string {
  const text = terminalLine(value instanceof Error ? value.message : String(value))
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}
