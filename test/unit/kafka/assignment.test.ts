import { describe, expect, it } from 'vitest'
import { begunAnew, joined, left, NO_ASSIGNMENT } from '../../../src/kafka/assignment.ts'
import { partitionId } from '../../../src/kernel/brand.ts'

const partitions = (...numbers: number[]) => numbers.map((partition) => ({ topic: 't', partition }))
const numbers = (assigned: readonly { partition: number }[]) => assigned.map(({ partition }) => partition)

describe('assignments', () => {
  const first = joined(NO_ASSIGNMENT, { memberId: 'a', partitions: partitions(0, 1, 2) })

  it('gains all partitions at the first join, each under an epoch of its own', () => {
    expect(numbers(first.change.gained)).toEqual([0, 1, 2])
    expect(new Set(first.change.gained.map(({ epoch }) => epoch)).size).toBe(3)
    expect(first.change.kept).toEqual([])
    expect(first.change.lost).toEqual([])
  })

  it('keeps the epoch of partitions that the same member had before', () => {
    const second = joined(first.after, { memberId: 'a', partitions: partitions(1, 2, 3) })
    expect(second.change.kept).toEqual(first.change.gained.slice(1))
    expect(numbers(second.change.lost)).toEqual([0])
    expect(numbers(second.change.gained)).toEqual([3])
    expect(second.change.gained[0]?.epoch).toBeGreaterThan(3)
  })

  it('loses and gains everything under a new member id: it was expelled meanwhile', () => {
    const second = joined(first.after, { memberId: 'b', partitions: partitions(0, 1) })
    expect(second.change.kept).toEqual([])
    expect(numbers(second.change.lost)).toEqual([0, 1, 2])
    expect(second.change.gained.map(({ epoch }) => epoch)).toEqual([4, 5])
  })

  it('never gives an epoch twice, even after all was lost', () => {
    const gone = left(first.after)
    expect(numbers(gone.change.lost)).toEqual([0, 1, 2])
    const back = joined(gone.after, { memberId: 'a', partitions: partitions(0) })
    expect(back.change.kept).toEqual([])
    expect(back.change.gained[0]?.epoch).toBe(4)
  })

  it('can begin one partition anew', () => {
    const { after, change } = begunAnew(first.after, partitionId('t', 1))
    expect(change.lost).toEqual([{ topic: 't', partition: 1, epoch: 2 }])
    expect(change.gained).toEqual([{ topic: 't', partition: 1, epoch: 4 }])
    expect(after.owned.size).toBe(3)
    expect(begunAnew(first.after, partitionId('t', 9)).change.gained).toEqual([])
  })
})
