import { describe, expect, it } from 'vitest'
import { pageReader } from '../../../src/control/requeue-message.ts'
import type { KafkaMessage } from '../../../src/kafka/message.ts'
import type { PagePlace } from '../../../src/message/put-back.ts'

const place = (offset: bigint): PagePlace => ({ topic: 'html', partition: 0, offset })
const message: KafkaMessage = { topic: 'html', partition: 0, offset: 0n, timestamp: 0, key: null, value: null, headers: {} }

describe('the pages that dead letters name', () => {
  it('are not read where retention has deleted them, and the low offsets are looked up once', async () => {
    const asked: (bigint | 'low')[] = []
    const lows = async (): Promise<ReadonlyMap<number, bigint>> => {
      asked.push('low')
      return new Map([[0, 10n]])
    }
    const pageAt = pageReader(lows, async ({ offset }) => {
      asked.push(offset)
      return { ...message, offset }
    })
    expect(await pageAt(place(3n))).toBe('deleted')
    expect(await pageAt(place(9n))).toBe('deleted')
    expect(await pageAt(place(10n))).toMatchObject({ offset: 10n })
    expect(asked).toEqual(['low', 10n])
  })

  it('are deleted where retention comes to them during the command, and nothing where the log has not come to them', async () => {
    let low = 0n
    const pageAt = pageReader(
      async () => new Map([[0, low]]),
      async () => {
        low = 10n
        return undefined
      },
    )
    expect(await pageAt(place(5n))).toBe('deleted')
    expect(await pageAt(place(4711n))).toBeUndefined()
  })
})
