import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type SendCall, type SendItem, SendQueue, type SendQueueLimits } from '../../../src/kafka/send-queue.ts'

const call = (): SendCall => ({ remaining: 1, settled: false, resolve: () => undefined, reject: () => undefined })
const item = (topic: string, partition: number, bytes = 100, of = call()): SendItem => ({
  message: { topic, partition, key: null, value: null },
  bytes,
  call: of,
})
const queue = (limits: Partial<SendQueueLimits> = {}): SendQueue =>
  new SendQueue({ maxMessages: 500, maxBytes: 10_000, maxBatchBytes: () => 5_000, codec: () => undefined, ...limits })

const shape = (request: ReturnType<SendQueue['take']>) =>
  request?.batches.map(({ lane, items }) => [lane.topic, lane.partition, items.length])

describe('send queue', () => {
  it('puts several partitions into one request and keeps a partition out until it is released', () => {
    const waiting = queue()
    for (const partition of [0, 1, 0]) waiting.push(item('t', partition))
    const first = waiting.take()
    expect(shape(first)).toEqual([
      ['t', 0, 2],
      ['t', 1, 1],
    ])
    waiting.push(item('t', 0))
    expect(waiting.take()).toBeUndefined()
    waiting.release(first!.batches[0]!.lane)
    expect(shape(waiting.take())).toEqual([['t', 0, 1]])
  })

  it('never makes a batch above the limit of its topic, nor a request above its own', () => {
    const waiting = queue({ maxBytes: 6_000 })
    for (let index = 0; index < 100; index += 1) waiting.push(item('t', index % 2, 1_000))
    expect(shape(waiting.take())).toEqual([
      ['t', 0, 4],
      ['t', 1, 2],
    ])
  })

  it('sends a message larger than a request by itself', () => {
    const waiting = queue({ maxBatchBytes: () => 100_000 })
    waiting.push(item('t', 0, 100))
    waiting.push(item('t', 1, 50_000))
    waiting.push(item('t', 1, 100))
    expect(shape(waiting.take())).toEqual([['t', 0, 1]])
    expect(shape(waiting.take())).toEqual([['t', 1, 1]])
  })

  it('does not mix codecs in a request', () => {
    const waiting = queue({ codec: (topic) => (topic === 'z' ? 'gzip' : undefined) })
    for (const topic of ['a', 'z', 'b']) waiting.push(item(topic, 0))
    expect(shape(waiting.take())).toEqual([
      ['a', 0, 1],
      ['b', 0, 1],
    ])
    expect(waiting.take()?.codec).toBe('gzip')
  })

  it('sends a lane alone when asked, and what was put back before what came later', () => {
    const waiting = queue()
    const [early, late] = [item('t', 0), item('t', 0)]
    waiting.push(early)
    waiting.push(item('t', 1))
    const first = waiting.take()!
    for (const { lane, items } of first.batches) {
      lane.alone = true
      waiting.putBack(lane, items)
    }
    waiting.push(late)
    expect(waiting.take()).toBeUndefined()
    for (const { lane } of first.batches) waiting.release(lane)
    const again = waiting.take()!
    expect(again.batches).toHaveLength(1)
    expect(again.batches[0]?.items).toEqual([early, late])
    expect(shape(waiting.take())).toEqual([['t', 1, 1]])
  })

  it('serves all partitions in turn', () => {
    const waiting = queue({ maxMessages: 2 })
    for (let index = 0; index < 6; index += 1) waiting.push(item('t', 0))
    waiting.push(item('t', 1))
    const first = waiting.take()!
    waiting.release(first.batches[0]!.lane)
    expect([shape(first), shape(waiting.take())]).toEqual([
      [['t', 0, 2]],
      [
        ['t', 1, 1],
        ['t', 0, 1],
      ],
    ])
  })

  it('gives out every message once and in its order, whatever fails and is put back', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('push' as const), partition: fc.nat(3), bytes: fc.integer({ min: 1, max: 3_000 }) }),
      fc.record({ kind: fc.constantFrom('take' as const, 'ack' as const, 'fail' as const) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const waiting = queue({ maxMessages: 5 })
        const pushed: SendItem[] = []
        const stored: SendItem[] = []
        const out: NonNullable<ReturnType<SendQueue['take']>>[] = []
        const take = (): void => {
          const request = waiting.take()
          if (request === undefined) return
          for (const { items } of request.batches) {
            expect(items.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(5_000)
          }
          out.push(request)
        }
        const finish = (acknowledged: boolean): void => {
          for (const { lane, items } of out.shift()?.batches ?? []) {
            if (acknowledged) stored.push(...items)
            else waiting.putBack(lane, items)
            waiting.release(lane)
          }
        }
        for (const action of steps) {
          if (action.kind === 'push') {
            const entry = item('t', action.partition, action.bytes)
            pushed.push(entry)
            waiting.push(entry)
          } else if (action.kind === 'take') take()
          else finish(action.kind === 'ack')
        }
        while (out.length > 0) finish(true)
        for (take(); out.length > 0; take()) finish(true)
        expect([waiting.readyCount, waiting.readyBytes]).toEqual([0, 0])
        for (const partition of [0, 1, 2, 3]) {
          const of = (items: SendItem[]): SendItem[] => items.filter(({ message }) => message.partition === partition)
          expect(of(stored)).toEqual(of(pushed))
        }
      }),
      { numRuns: 200 },
    )
  })

  it('removes what a call has not on the wire, and only that', () => {
    const waiting = queue()
    const [given, kept] = [call(), call()]
    waiting.push(item('t', 0, 100, given))
    waiting.push(item('t', 0, 200, kept))
    waiting.push(item('t', 1, 300, given))
    expect(waiting.removeCall(given).map(({ bytes }) => bytes)).toEqual([100, 300])
    expect([waiting.readyCount, waiting.readyBytes]).toEqual([1, 200])
    expect(shape(waiting.take())).toEqual([['t', 0, 1]])
    expect(waiting.take()).toBeUndefined()
  })
})
