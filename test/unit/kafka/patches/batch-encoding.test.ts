import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { patchBatchEncoding } from '../../../../src/kafka/patches/batch-encoding.ts'
import type { KafkajsModules } from '../../../../src/kafka/patches/kafkajs-modules.ts'
import { withFreshKafkajs } from '../../../support/stock-kafkajs.ts'

type Encode = (input: object) => Promise<Buffer>

/** A produce request as it goes to the socket. */
function encoderOf(modules: KafkajsModules): Encode {
  const createRequest = modules.load('protocol/request.js') as (input: object) => Promise<{ buffer: Buffer; size(): number }>
  const produce = modules.load('protocol/requests/produce/v7/request.js') as (input: object) => object
  return async (input) => {
    const encoder = await createRequest({ correlationId: 77, clientId: 'who', request: produce(input) })
    expect(encoder.size()).toBe(encoder.buffer.length)
    return encoder.buffer
  }
}

const stock = withFreshKafkajs(encoderOf)
const patched = withFreshKafkajs((modules) => {
  patchBatchEncoding(modules)
  return encoderOf(modules)
})

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 400 }).map((array) => Buffer.from(array)),
  fc.string({ unit: 'binary', maxLength: 200 }),
)
const headers = fc.dictionary(fc.string({ maxLength: 20 }), fc.oneof(bytes, fc.array(bytes, { maxLength: 3 })), {
  maxKeys: 4,
  noNullPrototype: true,
})
const message = fc.record(
  {
    key: fc.option(bytes),
    value: fc.option(bytes),
    headers,
    timestamp: fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }).map(String),
  },
  { requiredKeys: ['key', 'value'] },
)
const topicData = fc.array(
  fc.record({
    topic: fc.string({ minLength: 1, maxLength: 30 }),
    partitions: fc.array(
      fc.record({
        partition: fc.nat({ max: 100 }),
        firstSequence: fc.nat({ max: 1_000_000 }),
        messages: fc.array(message, { minLength: 1, maxLength: 150 }),
      }),
      { maxLength: 3 },
    ),
  }),
  { maxLength: 3 },
)
const request = fc.record({
  acks: fc.constantFrom(-1, 0, 1),
  timeout: fc.nat({ max: 100_000 }),
  transactionalId: fc.option(fc.string({ minLength: 1, maxLength: 40 }), { nil: undefined }),
  producerId: fc.bigInt({ min: -1n, max: 2n ** 62n }).map(String),
  producerEpoch: fc.nat({ max: 32_767 }),
  compression: fc.constantFrom(0, 1),
  topicData,
})

afterEach(() => {
  vi.useRealTimers()
})

describe('the patch of batch encoding', () => {
  it('writes any produce request as the client itself does, byte for byte', async () => {
    // A message without a time has that of its sending.
    vi.useFakeTimers({ now: 1_800_000_000_000, toFake: ['Date'] })
    await fc.assert(
      fc.asyncProperty(request, async (input) => {
        expect((await patched(input)).equals(await stock(input))).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  it('writes a large message as the client does', async () => {
    const value = Buffer.alloc(3_000_000, 'large ')
    const topicData = [
      { topic: 'html', partitions: [{ partition: 3, firstSequence: 0, messages: [{ key: 'k', value, timestamp: '1800000000000' }] }] },
    ]
    const input = { acks: -1, timeout: 30_000, producerEpoch: 0, compression: 0, topicData }
    expect((await patched(input)).equals(await stock(input))).toBe(true)
  })

  it('fills no buffer with zeroes on the way, of which the client fills several times what it sends', async () => {
    const messages = Array.from({ length: 64 }, (_, index) => ({
      key: `k${index}`,
      value: Buffer.alloc(20_000, index),
      timestamp: '1800000000000',
    }))
    const input = { acks: -1, timeout: 30_000, compression: 0, topicData: [{ topic: 'html', partitions: [{ partition: 0, messages }] }] }
    const zeroedBy = async (encode: Encode): Promise<number> => {
      const alloc = vi.spyOn(Buffer, 'alloc')
      try {
        await encode(input)
        return alloc.mock.calls.reduce((sum, [size]) => sum + size, 0)
      } finally {
        alloc.mockRestore()
      }
    }
    expect(await zeroedBy(patched)).toBeLessThan(100)
    expect(await zeroedBy(stock)).toBeGreaterThan(64 * 20_000)
  })
})
