import { describe, expect, it } from 'vitest'
import { createTerminalLogger } from '../../../src/cli/log.ts'
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
