import { describe, expect, it } from 'vitest'
import { deadLetterMessage } from '../../../src/kafka/dead-letter-publisher.ts'
import type { OutgoingMessage } from '../../../src/kafka/message.ts'
import type { DeadLetterContext } from '../../../src/message/dead-letter.ts'
import { partitionFor } from '../../../src/url/partition.ts'

const message = { topic: 'p.html', partition: 9, offset: 3n, timestamp: 5, value: Buffer.from('rubbish'), headers: {} }
const context: DeadLetterContext = { stage: 'extract', code: 'MESSAGE_FRAMING_UNKNOWN', message: 'no', failedAt: 7 }

function letterOf(key: Buffer | null, maxBytes = 1_000_000): OutgoingMessage {
  return deadLetterMessage({ ...message, key }, context, { topic: 'p.dead-letters', partitionCount: 4, maxBytes })
}

describe('the partition of a dead letter', () => {
  it('is that of its key, also where the letter holds a part of the key alone', () => {
    expect(letterOf(Buffer.from('example.test')).partition).toBe(partitionFor('example.test', 4))
    const long = Buffer.alloc(3_000, 'a')
    const { partition, key } = letterOf(long, 4_096)
    expect(partition).toBe(partitionFor(long, 4))
    expect(partition).not.toBe(partitionFor(key ?? '', 4))
  })

  it('goes without a key by the partition of its message', () => {
    expect(letterOf(null).partition).toBe(1)
  })
})
