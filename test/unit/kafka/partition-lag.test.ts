import { describe, expect, it } from 'vitest'
import { partitionLag } from '../../../src/kafka/admin.ts'

const at = { topic: 't', partition: 0 }

describe('lag of a partition', () => {
  it.each([
    ['nothing committed counts from the first message that is still there', undefined, 100n, 150n, 50n],
    ['a committed offset', 120n, 100n, 150n, 30n],
    ['a committed offset whose messages were deleted', 20n, 100n, 150n, 50n],
    ['the end', 150n, 100n, 150n, 0n],
    ['a committed offset beyond the end, after the topic was made anew', 400n, 0n, 150n, 0n],
  ])('C155: %s', (_what, offset, low, end, lag) => {
    expect(partitionLag(at, { offset, metadata: 'm' }, low, end)).toEqual({ ...at, committed: offset, metadata: 'm', low, end, lag })
  })
})
