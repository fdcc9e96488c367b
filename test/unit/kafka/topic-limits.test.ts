import { describe, expect, it } from 'vitest'
import { BATCH_OVERHEAD_BYTES, messageBytes } from '../../../src/kafka/outgoing.ts'
import { TopicLimits } from '../../../src/kafka/topic-limits.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const message = (topic: string, bytes: number) => ({ topic, partition: 0, key: null, value: Buffer.alloc(bytes) })

describe('limits of topics', () => {
  it('are the configured ones, or what is less than a message that was refused', () => {
    const limits = new TopicLimits((topic) => (topic === 'small' ? 500 : 10_000), new ManualClock())
    const large = message('large', 3_000)
    limits.refused([large])
    limits.refused([message('small', 900)])
    expect(limits.maxBatchBytes('large')).toBe(messageBytes(large) + BATCH_OVERHEAD_BYTES - 1)
    expect([limits.maxBatchBytes('small'), limits.maxBatchBytes('other')]).toEqual([500, 10_000])
  })

  it('say nothing of a single message where one of several was refused: pieces get smaller until it is known', () => {
    const limits = new TopicLimits(() => 10_000, new ManualClock())
    const piece = [message('a', 1_000), message('b', 2_000)]
    limits.refused(piece)
    expect(limits.maxBatchBytes('a')).toBe(10_000)
    expect(limits.pieceBytes).toBe(Math.floor((1_000 + 2_000 + 2 * 36) / 2))
  })

  it('never rise by a refusal of what was sent before less was known', () => {
    const limits = new TopicLimits(() => 10_000, new ManualClock())
    limits.refused([message('a', 500)])
    limits.refused([message('a', 200), message('b', 200)])
    const known = [limits.maxBatchBytes('a'), limits.pieceBytes]
    limits.refused([message('a', 900)])
    limits.refused([message('a', 900), message('b', 900)])
    expect([limits.maxBatchBytes('a'), limits.pieceBytes]).toEqual(known)
  })

  it('are learnt anew after some minutes, since `topics apply` may have raised them', async () => {
    const clock = new ManualClock()
    const limits = new TopicLimits(() => 10_000, clock)
    limits.refused([message('a', 1_000)])
    limits.refused([message('a', 10), message('a', 10)])
    await clock.advance(299_000)
    expect(limits.maxBatchBytes('a')).toBeLessThan(10_000)
    await clock.advance(1_000)
    expect([limits.maxBatchBytes('a'), limits.pieceBytes]).toEqual([10_000, 1_048_576])
  })
})
