import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OutgoingMessage } from '../../../src/kafka/message.ts'
import { BATCH_OVERHEAD_BYTES, checkMessage, messageBytes, piecesOf, unansweredPartitions } from '../../../src/kafka/outgoing.ts'

const message = (partition: number, size: number): OutgoingMessage => ({ topic: 't', partition, key: 'k', value: Buffer.alloc(size) })

describe('outgoing messages', () => {
  it('are cut into pieces that keep the order and every limit', () => {
    const limits = { maxMessages: 7, maxBytes: 4_000, maxBatchBytes: () => 2_000 }
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(3), fc.nat(1_500)), { maxLength: 60 }), (sizes) => {
        const messages = sizes.map(([partition, size]) => message(partition, size))
        const pieces = piecesOf(messages, limits)
        expect(pieces.flat()).toEqual(messages)
        for (const piece of pieces) {
          const bytes = (of: readonly OutgoingMessage[]): number => of.reduce((sum, one) => sum + messageBytes(one), 0)
          expect(piece.length).toBeGreaterThan(0)
          expect(piece.length).toBeLessThanOrEqual(7)
          expect(bytes(piece)).toBeLessThanOrEqual(4_000)
          for (const partition of [0, 1, 2, 3]) {
            expect(bytes(piece.filter((one) => one.partition === partition)) + BATCH_OVERHEAD_BYTES).toBeLessThanOrEqual(2_000)
          }
        }
      }),
    )
  })

  it('that do not fit by themselves are refused', () => {
    expect(() => piecesOf([message(0, 3_000)], { maxMessages: 5, maxBytes: 9_000, maxBatchBytes: () => 2_000 })).toThrow(
      'too large for topic t',
    )
  })

  it('are never thought smaller than they are', () => {
    const bytes = messageBytes({
      topic: 't',
      partition: 0,
      key: 'ключ',
      value: Buffer.alloc(10),
      headers: { 'x-é': 'ü', b: Buffer.alloc(4) },
    })
    // Key 8, value 10, headers 4 + 2 and 1 + 4, and the varints around them.
    expect(bytes).toBeGreaterThanOrEqual(8 + 10 + 6 + 5 + 10)
  })

  it('that no answer names are told by their partition', () => {
    const sent = [message(0, 1), message(1, 1), message(1, 1)]
    expect(unansweredPartitions(sent, [{ topicName: 't', partition: 0, errorCode: 0 }])).toEqual(['t/1'])
    expect(unansweredPartitions(sent, [])).toEqual(['t/0', 't/1'])
  })

  it.each([
    ['no topic', { topic: '' }],
    ['a negative partition', { partition: -1 }],
    ['a partition that is no whole number', { partition: 0.5 }],
    ['a value that is text', { value: 'x' as unknown as Buffer }],
    ['a timestamp that is no number', { timestamp: Number.NaN }],
  ])('with %s are refused before they are sent', (_what, fields) => {
    expect(() => checkMessage({ ...message(0, 1), ...fields })).toThrow('can not be sent')
  })
})
