import { describe, expect, it } from 'vitest'
import { type CursorStart, PartitionCursor } from '../../../src/kafka/log-cursor.ts'
import type { FetchedLog } from '../../../src/kafka/log-fetch.ts'
import type { KafkaMessage } from '../../../src/kafka/message.ts'

const cursor = (start: Partial<CursorStart> = {}): PartitionCursor =>
  new PartitionCursor({ topic: 't', partition: 0, position: 0n, end: 10n, until: undefined, follow: false, ...start })

const message = (offset: bigint): KafkaMessage => ({ topic: 't', partition: 0, offset, timestamp: 0, key: null, value: null, headers: {} })

const log = (from: bigint, next: bigint, offsets: readonly bigint[], end = 10n): FetchedLog => ({
  topic: 't',
  partition: 0,
  from,
  next,
  end,
  records: [],
  messages: () => offsets.map(message),
})

const offsetsOf = (events: Iterable<{ kind: string; messages?: readonly KafkaMessage[] }>) =>
  [...events].map(({ kind, messages }) => (messages === undefined ? kind : messages.map(({ offset }) => offset)))

describe('cursor of a partition', () => {
  it('moves behind markers at the tail and then announces the end once', () => {
    const at = cursor()
    expect(offsetsOf(at.take(log(0n, 10n, [0n, 1n]), true))).toEqual([[0n, 1n], 'end'])
    expect([at.position, at.finished, [...at.reached()]]).toEqual([10n, true, []])
  })

  it('stops at until, in the middle of a batch', () => {
    const at = cursor({ until: 4n })
    expect(offsetsOf(at.take(log(0n, 8n, [2n, 3n, 4n, 5n]), true))).toEqual([[2n, 3n], 'end'])
    expect([at.position, at.finished]).toEqual([4n, true])
  })

  it('goes on behind the end it announced when it follows, up to until', () => {
    const at = cursor({ follow: true, until: 12n })
    expect(offsetsOf(at.take(log(0n, 10n, [9n]), true))).toEqual([[9n], 'end'])
    expect(at.finished).toBe(false)
    expect(offsetsOf(at.take(log(10n, 14n, [10n, 12n], 14n), true))).toEqual([[10n]])
    expect(at.finished).toBe(true)
  })

  it('passes an answer to a place that it left', () => {
    const at = cursor()
    at.moveTo(5n)
    expect(offsetsOf(at.take(log(0n, 3n, [0n]), true))).toEqual([])
    expect(at.position).toBe(5n)
  })

  it('asks alone when answers keep coming without it, and then steps over a batch that shows no record', () => {
    const at = cursor({ end: 2n })
    for (let answer = 0; answer < 3; answer += 1) expect(offsetsOf(at.take(log(0n, 0n, [], 2n), false))).toEqual([])
    expect([at.starved, at.position]).toEqual([true, 0n])
    // Left out of a shared answer is not empty.
    expect(offsetsOf(at.take(log(0n, 0n, [], 2n), false))).toEqual([])
    expect(at.position).toBe(0n)
    expect(offsetsOf(at.take(log(0n, 0n, [], 2n), true))).toEqual([])
    expect(offsetsOf(at.take(log(1n, 1n, [], 2n), true))).toEqual(['end'])
  })

  it('waits at the end of what can be read', () => {
    const at = cursor({ position: 3n, follow: true, end: 3n })
    for (let answer = 0; answer < 9; answer += 1) [...at.take(log(3n, 3n, [], 3n), true)]
    expect([at.starved, at.position]).toEqual([false, 3n])
  })
})
