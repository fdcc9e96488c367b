import { describe, expect, it } from 'vitest'
import { deadLetterTable } from '../../../src/cli/dead-letter-table.ts'
import type { NamedDeadLetter } from '../../../src/control/dead-letters/dead-letters.ts'

const INFO = {
  message: undefined,
  reason: undefined,
  attempt: 1,
  firstMs: 0,
  extractor: undefined,
  replay: undefined,
  original: undefined,
  copy: undefined,
  truncated: undefined,
}

function letter(changed: Partial<Omit<NamedDeadLetter, 'info'>>, info: Partial<NamedDeadLetter['info']>): NamedDeadLetter {
  const at = { partition: 1, offset: 7n, timestamp: 0, bytes: 10, resolved: undefined }
  return {
    ...at,
    key: 'a.example',
    url: 'http://a.example/1',
    ...changed,
    info: { ...INFO, stage: 'fetch', code: 'FETCH_FAILED', ...info },
  }
}

const lines = (letters: readonly NamedDeadLetter[]): string[] => deadLetterTable(letters).split('\n')

describe('the table of dead letters', () => {
  it('has the reason and the URL of a task on its line', () => {
    const reset = letter({}, { reason: 'connection-reset', message: 'other side closed (UND_ERR_SOCKET)' })
    const status = letter({}, { reason: 'http-500', message: 'http://a.example/1 answered with status 500' })
    expect(lines([reset, status])).toEqual([
      'P:N  TIME                 STAGE  CODE          REASON                                                URL',
      '1:7  1970-01-01T00:00:00  fetch  FETCH_FAILED  connection-reset: other side closed (UND_ERR_SOCKET)  http://a.example/1',
      '1:7  1970-01-01T00:00:00  fetch  FETCH_FAILED  http-500: answered with status 500                    http://a.example/1',
    ])
  })

  it('has a chain of redirects whole, as far as it goes, behind what is wrong with it', () => {
    const message = 'more than 10 redirects: http://a.example/1 -> http://a.example/2 -> http://a.example/1'
    expect(lines([letter({}, { reason: 'too-many-redirects', message })])[1]).toContain(
      'too-many-redirects: more than 10 redirects: http://a.exampl…  http://a.example/1',
    )
  })

  it('has whose failure a page is, and what it is', () => {
    const missing = letter(
      { key: 'http://a.example/1' },
      {
        stage: 'extract',
        code: 'EXTRACT_FIELD_MISSING',
        extractor: 'book:2',
        message: 'the required field title is empty; it comes from h1',
      },
    )
    expect(lines([missing])[1]).toBe(
      '1:7  1970-01-01T00:00:00  extract  EXTRACT_FIELD_MISSING  book:2     the required field title is empty; it comes from h1  http://a.example/1',
    )
  })

  it('has the key of what is no task, and says what is wrong with it', () => {
    const poison = letter({ url: null, key: 'k' }, { code: 'MESSAGE_EMPTY', reason: 'malformed', message: 'the message has no value' })
    expect(lines([poison])[1]).toMatch(/ MESSAGE_EMPTY {2}malformed: the message has no value {2}\(key k\)$/)
    expect(lines([letter({ url: null, key: null }, {})])[1]).toMatch(/ FETCH_FAILED$/)
  })

  it('is as wide as its longest line may be, and no message of another program steers the terminal', () => {
    const long = letter({ url: `http://a.example/${'x'.repeat(2_000)}` }, { reason: 'r', message: `\u001b[2J\n${'y'.repeat(2_000)}` })
    const line = lines([long])[1] ?? ''
    expect(line.length).toBeLessThan(450)
    expect(line).toContain('r: \ufffd[2J yyy')
    expect(line).toMatch(/y… {2}http:\/\/a\.example\/x+…$/)
  })
})
