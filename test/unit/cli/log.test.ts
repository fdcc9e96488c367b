import { describe, expect, it } from 'vitest'
import { boundedLines, createLogger, createTerminalLogger } from '../../../src/cli/log.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import type { LogLevel } from '../../../src/kernel/event-definition.ts'

function logged(level: LogLevel, fields: object): string[] {
  const lines: string[] = []
  const logger = createTerminalLogger(level, (line) => void lines.push(line))
  logger.debug(fields, 'it is odd')
  logger.warn(fields, 'it is bad')
  return lines
}

describe('a log line at a terminal', () => {
  it('says level, text and the facts that are there', () => {
    expect(logged('debug', { event: 'X', topic: 't', partition: 0, gone: undefined, empty: '' })).toEqual([
      'debug: it is odd (topic t, partition 0)',
      'warn: it is bad (topic t, partition 0)',
    ])
    expect(logged('warn', {})).toEqual(['warn: it is bad'])
    expect(logged('error', {})).toEqual([])
  })

  it('is one line that steers no terminal', () => {
    expect(logged('warn', { text: 'a\nerror: b\x1b[2J' })).toEqual(['warn: it is bad (text a error: b\ufffd[2J)'])
  })

  it('has no stack, and is bounded', () => {
    const error = new MillraceError('KAFKA_UNREACHABLE', 'a:1 does not answer')
    expect(logged('warn', { error })).toEqual(['warn: it is bad (error a:1 does not answer)'])
    expect(logged('warn', { text: 'x'.repeat(1000) })[0]).toHaveLength('warn: it is bad (text …)'.length + 300)
  })
})

describe('log lines for a collector', () => {
  it('are left out while nobody reads them, and counted once somebody does', () => {
    const written: string[] = []
    const stream = { writableLength: 0, write: (text: string): boolean => written.push(text) > 0 }
    const logger = createLogger('warn', boundedLines(stream))
    logger.warn({}, 'first')
    stream.writableLength = 2 * 1_048_576
    logger.warn({}, 'second')
    logger.warn({}, 'third')
    expect(written).toHaveLength(1)
    stream.writableLength = 0
    logger.warn({}, 'fourth')
    const lines = written.map((text) => JSON.parse(text) as { msg: string; level: string; leftOut?: number })
    expect(lines.map(({ msg }) => msg)).toEqual(['first', '2 lines of the log are left out here: standard error was not read', 'fourth'])
    expect(lines[1]).toMatchObject({ level: 'warn', leftOut: 2 })
  })
})
