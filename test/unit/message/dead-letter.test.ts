import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { BATCH_OVERHEAD_BYTES, messageBytes } from '../../../src/kafka/outgoing.ts'
import { commandPayload, newCommand, parseSubject, subject } from '../../../src/message/command.ts'
import { type DeadLetterContext, deadLetter } from '../../../src/message/dead-letter.ts'
import type { OriginalMessage } from '../../../src/message/header-names.ts'
import { readOrigin } from '../../../src/message/header-names.ts'
import { readDeadLetter } from '../../../src/message/read-dead-letter.ts'

const LIMIT = 1_048_576
const many = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`h${index}`, Buffer.alloc(1_000)]))
const original: OriginalMessage = {
  topic: 'scrape.urls',
  partition: 3,
  offset: 9_007_199_254_740_993n,
  timestamp: 1_767_225_600_000,
  key: Buffer.from('example.test'),
  value: Buffer.from('Hello'),
  headers: { 'x-mine': Buffer.from([0xff, 0x00]), traceparent: Buffer.from('tp') },
}
const context: DeadLetterContext = {
  stage: 'fetch',
  code: 'MESSAGE_FRAMING_UNKNOWN',
  message: 'the value begins with 48',
  failedAt: 1_767_225_700_000,
}

const sizeOf = (letter: { key: Buffer | null; value: Buffer | null; headers: Readonly<Record<string, string | Buffer>> }): number =>
  (letter.key?.length ?? 0) +
  (letter.value?.length ?? 0) +
  Object.entries(letter.headers).reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 10, 0)

describe('a dead letter', () => {
  it('holds the original bytes, key and headers, and says where they came from and why', () => {
    const letter = deadLetter(original, context, LIMIT)
    expect(letter.key).toBe(original.key)
    expect(letter.value).toBe(original.value)
    expect(letter.headers).toEqual({
      'x-mine': Buffer.from([0xff, 0x00]),
      traceparent: Buffer.from('tp'),
      'millrace-orig-topic': 'scrape.urls',
      'millrace-orig-partition': '3',
      'millrace-orig-offset': '9007199254740993',
      'millrace-orig-timestamp': '1767225600000',
      'millrace-first-ms': '1767225700000',
      'millrace-stage': 'fetch',
      'millrace-error-code': 'MESSAGE_FRAMING_UNKNOWN',
      'millrace-error-message': 'the value begins with 48',
    })
  })

  it('is read back whole', () => {
    const letter = deadLetter(original, { ...context, reason: 'bad', attempt: 4, extractor: 'book:2', replayId: 'r' }, LIMIT)
    expect(readDeadLetter(letter.headers)).toEqual({
      stage: 'fetch',
      code: 'MESSAGE_FRAMING_UNKNOWN',
      message: 'the value begins with 48',
      reason: 'bad',
      attempt: 4,
      firstMs: 1_767_225_700_000,
      extractor: 'book:2',
      replay: 'r',
      original: { topic: 'scrape.urls', partition: 3, offset: 9_007_199_254_740_993n, timestamp: 1_767_225_600_000 },
      truncated: undefined,
    })
  })

  it('of a copy still names the message that its producer wrote, and when it failed first', () => {
    const retry: OriginalMessage = {
      ...original,
      topic: 'scrape.urls.delay.1m',
      partition: 0,
      offset: 5n,
      headers: { ...deadLetter(original, context, LIMIT).headers, 'millrace-attempt': '3' },
    }
    const letter = deadLetter(retry, { ...context, code: 'FETCH_FAILED', message: 'later', failedAt: 1_767_299_999_999 }, LIMIT)
    expect(readDeadLetter(letter.headers)).toMatchObject({
      code: 'FETCH_FAILED',
      message: 'later',
      attempt: 3,
      firstMs: 1_767_225_700_000,
      original: { topic: 'scrape.urls', partition: 3, offset: 9_007_199_254_740_993n },
    })
  })

  it('that would pass the limit keeps the first 64 KiB, length and sha256', () => {
    const value = Buffer.alloc(LIMIT, 'abcdefg')
    const letter = deadLetter({ ...original, value }, context, LIMIT)
    expect(letter.value?.equals(value.subarray(0, 65_536))).toBe(true)
    expect(readDeadLetter(letter.headers).truncated).toEqual({
      parts: ['value'],
      fullLength: LIMIT,
      fullSha256: createHash('sha256').update(value).digest('hex'),
    })
  })

  it('fits in the limit to the byte, whatever the original is', () => {
    const longest = Array.from({ length: 3_000 }, (_, index) => [`header-${index}`, Buffer.alloc(1_000, index)] as const)
    const monster = {
      ...original,
      key: Buffer.alloc(500_000, 1),
      value: Buffer.alloc(5_000_000, 2),
      headers: Object.fromEntries([['huge', Buffer.alloc(900_000)], ...longest]),
    }
    const letter = deadLetter(monster, { ...context, message: 'x'.repeat(100_000) }, 262_144)
    expect(sizeOf(letter)).toBeLessThan(262_144)
    expect(readDeadLetter(letter.headers).truncated?.parts).toEqual(['value', 'headers', 'key'])
    expect(letter.headers['header-0']).toBeDefined()
    for (const length of [LIMIT - 1_500, LIMIT - 1_000, LIMIT - 700, LIMIT]) {
      expect(sizeOf(deadLetter({ ...original, value: Buffer.alloc(length) }, context, LIMIT))).toBeLessThan(LIMIT)
    }
  })

  it.each([
    ['a value', { value: Buffer.alloc(65_536) }],
    ['a key', { key: Buffer.alloc(65_536), value: null }],
    ['headers', { value: null, headers: many }],
    ['all of it', { key: Buffer.alloc(40_000), value: Buffer.alloc(40_000), headers: many }],
  ])('finds in few refusals what a small topic takes: %s', (_, parts) => {
    const takes = 5_000
    let limit = LIMIT
    let refusals = 0
    for (;;) {
      const message = { topic: 't', partition: 0, ...deadLetter({ ...original, ...parts }, context, limit) }
      const bytes = messageBytes(message) + BATCH_OVERHEAD_BYTES
      expect(bytes).toBeLessThanOrEqual(limit)
      if (bytes <= takes) break
      limit = bytes - 1
      refusals += 1
    }
    expect(refusals).toBeLessThan(13)
  })

  it('of a tombstone without key is one', () => {
    const letter = deadLetter({ ...original, key: null, value: null, headers: {} }, { ...context, code: 'MESSAGE_EMPTY' }, LIMIT)
    expect(letter).toMatchObject({ key: null, value: null, headers: { 'millrace-error-code': 'MESSAGE_EMPTY' } })
  })

  it('is read from whatever headers there are', () => {
    const nothing = readDeadLetter({ 'millrace-attempt': 'x', 'millrace-orig-topic': 't', 'millrace-orig-partition': '1e3' })
    expect(nothing).toMatchObject({ attempt: undefined, original: undefined, stage: undefined })
    expect(readOrigin({ 'millrace-orig-topic': 't', 'millrace-orig-partition': '0', 'millrace-orig-offset': '-1' })).toBeUndefined()
  })
})

describe('commands', () => {
  it.each([
    [subject.layout, { kind: 'layout' }],
    [subject.site('example.test'), { kind: 'site', domain: 'example.test' }],
    [subject.replay('r-1'), { kind: 'replay', replayId: 'r-1' }],
    [subject.schema('ff984091b9c0766c'), { kind: 'schema', fingerprint: 'ff984091b9c0766c' }],
    [subject.extractor('book', 2), { kind: 'extractor', name: 'book', version: 2 }],
    [subject.crawl('a:b'), { kind: 'crawl', crawlId: 'a:b' }],
    ['site:[::1]', { kind: 'site', domain: '[::1]' }],
  ])('know the subject %s', (text, parsed) => {
    expect(parseSubject(text)).toEqual(parsed)
  })

  it.each(['', 'x', 'site:', 'extractor:book', 'extractor:book:two', 'weather:today'])('pass over the subject %j', (text) => {
    expect(parseSubject(text)).toBeUndefined()
  })

  it('carry any JSON', () => {
    const fields = { clock: { now: () => 1_767_225_600_000 }, kind: 'set' as const, subject: subject.layout, by: 'test' }
    const command = newCommand({ ...fields, payload: { partitions: { urls: 12 } } })
    expect(command).toMatchObject({ kind: 'set', subject: 'layout', at: 1_767_225_600_000, by: 'test', replyTo: null })
    expect(commandPayload(command)).toEqual({ partitions: { urls: 12 } })
    expect(commandPayload(newCommand(fields))).toBeNull()
    expect(() => commandPayload({ ...command, payload: '{' })).toThrow(expect.objectContaining({ code: 'MESSAGE_INVALID' }))
  })
})
