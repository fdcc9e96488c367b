import pino from 'pino'
import type { Logger } from '../kernel/observe.ts'

/** Log lines as NDJSON on stderr, where people and collectors both can read them; stdout is for data. */
export function createLogger(level: 'debug' | 'info' | 'warn' | 'error' | 'silent'): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: pino.stdSerializers.err },
      redact: { paths: ['password', 'authorization', 'cookie', '*.password', '*.authorization', '*.cookie'], censor: '(hidden)' },
    },
    pino.destination({ dest: 2, sync: true }),
  )
}
