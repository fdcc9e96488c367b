import { describe, expect, it } from 'vitest'
import { reportError } from '../../../src/cli/report-error.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'

const plain = { verbose: false, json: false }

describe('the report of an error', () => {
  it('says what failed, why, what to do and the code, and ends as the catalogue says', () => {
    const cause = new Error('the broker said no', { cause: new Error('disk is full') })
    const { exitCode, text } = reportError(new MillraceError('KAFKA_UNREACHABLE', 'a:1 does not answer', { cause }), plain)
    expect(exitCode).toBe(4)
    expect(text.split('\n')).toEqual([
      'error: a:1 does not answer',
      '  because: the broker said no',
      '  because: disk is full',
      expect.stringMatching(/^ {2}Check `brokers`.* \(KAFKA_UNREACHABLE\)$/),
    ])
  })

  it('says what to do about the error of the catalogue within a frame that has none', () => {
    const framed = new Error('fetch could not go on', { cause: new MillraceError('KAFKA_UNREACHABLE', 'a:1 does not answer') })
    const { exitCode, text } = reportError(framed, plain)
    expect(exitCode).toBe(4)
    expect(text).toMatch(/^error: fetch could not go on\n {2}because: a:1 does not answer\n {2}Check .*\(KAFKA_UNREACHABLE\)$/)
  })

  it('drops none of several errors, and repeats none', () => {
    const several = new AggregateError([new Error('one'), new Error('two'), new Error('one')], 'closing failed')
    const { text } = reportError(several, plain)
    expect(text.match(/because: .*/g)).toEqual(['because: one', 'because: two'])
  })

  it('ends on a chain of causes that bites its tail', () => {
    const error = new Error('first')
    error.cause = new Error('second', { cause: error })
    expect(reportError(error, plain).text.match(/because: .*/g)).toEqual(['because: second'])
  })

  it.each([['a text'], [undefined], [null], [42], [{ toString: () => 'odd' }], [Object.create(null)], [Symbol('s')]])(
    'takes anything that was thrown: %o',
    (thrown) => {
      expect(reportError(thrown, plain)).toMatchObject({ exitCode: 1, text: expect.stringMatching(/^error: /) })
    },
  )

  it.each([
    ['ECONNREFUSED', 'INTERNAL'],
    ['ECONNRESET', 'INTERNAL'],
    ['ETIMEDOUT', 'TIMEOUT'],
    ['ENOSPC', 'DISK_FULL'],
    ['ABORT_ERR', 'ABORTED'],
  ])('takes %s, of which nobody said whose it is, for %s', (code, expected) => {
    expect(reportError(Object.assign(new Error('connect failed'), { code }), plain).text).toContain(`(${expected})`)
  })

  it('names no more of a failure of the Kafka client than that there was one', () => {
    const error = Object.assign(new Error('not now'), { name: 'KafkaJSProtocolError', type: 'REBALANCE_IN_PROGRESS' })
    expect(reportError(error, plain).text).toContain('(KAFKA_REQUEST_FAILED)')
  })

  it('shows a stack with --verbose alone', () => {
    const error = new MillraceError('USAGE', 'wrong')
    expect(reportError(error, plain).text).not.toContain('    at ')
    expect(reportError(error, { verbose: true, json: false }).text).toContain('    at ')
  })

  it('is one JSON document with --json, with the facts of the error', () => {
    const error = new MillraceError('USAGE', 'wrong', { context: { topic: 't', offset: 2n ** 60n }, cause: new Error('deep') })
    expect(JSON.parse(reportError(error, { verbose: false, json: true }).text)).toEqual({
      error: {
        code: 'USAGE',
        message: 'wrong',
        hint: 'See --help of the command.',
        causes: ['deep'],
        context: { topic: 't', offset: '1152921504606846976' },
      },
    })
  })
})
