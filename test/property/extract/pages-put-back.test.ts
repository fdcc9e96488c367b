import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KafkaMessage } from '../../../src/kafka/message.ts'
import { deadLetter } from '../../../src/message/dead-letter.ts'
import { HEADER, type Headers } from '../../../src/message/header-names.ts'
import { copyHeaders, isPutBack, isReadElsewhere, pageSource, pageTime } from '../../../src/message/put-back.ts'
import { readDeadLetter } from '../../../src/message/read-dead-letter.ts'

const TOPIC = 'p.html'
const PARTITIONS = 3
const FAILED = { stage: 'extract', code: 'EXTRACT_TIMEOUT', message: 'slow', failedAt: 1, extractor: 'book:1' } as const

const buffers = (headers: Headers): Record<string, Buffer> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Buffer.from(value)]))

/** A log of html, to which pages are written and put back. */
class Log {
  readonly messages: KafkaMessage[] = []
  readonly #ends = Array.from({ length: PARTITIONS }, () => 0n)

  write(partition: number, headers: Headers = {}): KafkaMessage {
    const offset = this.#ends[partition] ?? 0n
    this.#ends[partition] = offset + 1n
    const timestamp = this.messages.length
    const message = { topic: TOPIC, partition, offset, timestamp, key: null, value: null, headers: buffers(headers) }
    this.messages.push(message)
    return message
  }

  /** The message has failed, and its dead letter is put back. */
  putBack(failed: KafkaMessage, partition: number): KafkaMessage {
    const { original, copy } = readDeadLetter(deadLetter(failed, FAILED, 1_000_000).headers)
    if (original === undefined) throw new Error('a dead letter names its original')
    return this.write(partition, { ...copyHeaders(original, copy), [HEADER.only]: 'book', [HEADER.requeued]: '0:0' })
  }
}

const partition = fc.nat({ max: PARTITIONS - 1 })
/** Each step puts back the newest message of a page. */
const steps = fc.array(fc.record({ page: fc.nat({ max: 4 }), partition }), { maxLength: 30 })
const keyOf = (place: { readonly partition: number; readonly offset: bigint }): string => `${place.partition}:${place.offset}`

function written(pages: readonly number[], rounds: readonly { readonly page: number; readonly partition: number }[]) {
  const log = new Log()
  const first = pages.map((at) => log.write(at))
  const newest = [...first]
  for (const round of rounds) {
    const index = round.page % first.length
    const failed = newest[index]
    if (failed !== undefined) newest[index] = log.putBack(failed, round.partition)
  }
  return { log, first }
}

describe('a page that was put back, however often', () => {
  const logs = fc.record({ pages: fc.array(partition, { minLength: 1, maxLength: 5 }), rounds: steps })

  it('names the page that fetch has written', () => {
    fc.assert(
      fc.property(logs, ({ pages, rounds }) => {
        const { log, first } = written(pages, rounds)
        const own = new Map(first.map((message) => [keyOf(message), message]))
        for (const message of log.messages) {
          const page = own.get(keyOf(pageSource(message)))
          expect(page).toBeDefined()
          expect(pageTime(message)).toBe(page?.timestamp)
          expect(isPutBack(message.headers)).toBe(page !== message)
        }
      }),
    )
  })

  it('is read once by whoever reads a piece of time of the log, wherever its copies lie', () => {
    fc.assert(
      fc.property(logs, fc.nat({ max: 40 }), fc.nat({ max: 40 }), ({ pages, rounds }, from, length) => {
        const { log } = written(pages, rounds)
        // In the order of time, as a range since a time is, and as retention deletes.
        const range = log.messages.slice(from, from + length)
        const inRange = new Set(range.map(keyOf))
        const read = range.filter((message) => !isReadElsewhere(message, (place) => inRange.has(keyOf(place))))
        expect(read.map((message) => keyOf(pageSource(message))).sort()).toEqual(
          [...new Set(range.map((message) => keyOf(pageSource(message))))].sort(),
        )
      }),
    )
  })
})

describe('what is no copy of a page on html', () => {
  const at = { topic: TOPIC, partition: 0, offset: 7n }
  const always = (): boolean => true

  it.each<[string, Headers]>([
    ['a page that another program has copied', { [HEADER.origTopic]: TOPIC, [HEADER.origPartition]: '0', [HEADER.origOffset]: '1' }],
    ['one that was put back before copies named their page', { [HEADER.only]: 'book', [HEADER.requeued]: '0:0' }],
    [
      'one of another topic',
      {
        ...copyHeaders({ topic: 'q.html', partition: 0, offset: 1n, timestamp: 1 }, undefined),
        [HEADER.only]: 'book',
        [HEADER.requeued]: '0:0',
      },
    ],
  ])('%s is read for itself', (_, headers) => {
    const message = { ...at, headers: buffers(headers) }
    expect(pageSource(message)).toEqual(at)
    expect(isReadElsewhere(message, always)).toBe(false)
  })
})
