import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assignStickily, decodeOwned, encodeOwned, type MemberClaim } from '../../../src/kafka/assigner.ts'

const TOPICS = ['urls.high', 'urls', 'urls.low']
const counts = (count: number) => new Map(TOPICS.map((topic) => [topic, count]))
const member = (memberId: string, owned: readonly number[] = []): MemberClaim => ({ memberId, topics: TOPICS, owned })

const group = fc
  .record({
    count: fc.integer({ min: 1, max: 40 }),
    owned: fc.array(fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 12 }), { minLength: 1, maxLength: 8 }),
  })
  .map(({ count, owned }) => ({ count, members: owned.map((numbers, index) => member(`m${index}`, numbers)) }))

describe('the sticky assigner', () => {
  it('gives every partition to exactly one member, the same numbers of all topics, evenly', () => {
    fc.assert(
      fc.property(group, ({ count, members }) => {
        const assignments = assignStickily(members, counts(count))
        const sizes: number[] = []
        const seen: number[] = []
        for (const { memberId } of members) {
          const topics = assignments.get(memberId)
          expect(topics).toBeDefined()
          const numbers = topics?.get('urls') ?? []
          for (const topic of TOPICS) expect(topics?.get(topic) ?? []).toEqual(numbers)
          sizes.push(numbers.length)
          seen.push(...numbers)
        }
        expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, index) => index))
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
      }),
    )
  })

  it('moves only what has to move when a member comes or goes', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 8 }),
        (count, before, after) => {
          const ids = (size: number) => Array.from({ length: size }, (_, index) => `m${index}`)
          const first = assignStickily(
            ids(before).map((id) => member(id)),
            counts(count),
          )
          const second = assignStickily(
            ids(after).map((id) => member(id, first.get(id)?.get('urls') ?? [])),
            counts(count),
          )
          const kept = ids(Math.min(before, after)).reduce(
            (sum, id) => sum + (second.get(id)?.get('urls') ?? []).filter((number) => first.get(id)?.get('urls')?.includes(number)).length,
            0,
          )
          // Each that stays keeps all it had up to its new share.
          const possible = ids(Math.min(before, after)).reduce(
            (sum, id) => sum + Math.min(first.get(id)?.get('urls')?.length ?? 0, second.get(id)?.get('urls')?.length ?? 0),
            0,
          )
          expect(kept).toBe(possible)
        },
      ),
    )
  })

  it('decides the same whatever the order in which members are listed', () => {
    fc.assert(
      fc.property(group, ({ count, members }) => {
        expect(assignStickily([...members].reverse(), counts(count))).toEqual(assignStickily(members, counts(count)))
      }),
    )
  })

  it('gives a topic only to members that read it', () => {
    const old: MemberClaim = { memberId: 'old', topics: ['urls'], owned: [0, 1, 2, 3] }
    const assignments = assignStickily(
      [old, member('new')],
      new Map([
        ['urls', 4],
        ['urls.high', 4],
        ['nobody', 2],
      ]),
    )
    expect(assignments.get('old')?.get('urls.high')).toBeUndefined()
    expect(assignments.get('new')?.get('urls.high')).toEqual([0, 1, 2, 3])
    expect([...(assignments.get('old')?.get('urls') ?? []), ...(assignments.get('new')?.get('urls') ?? [])].sort()).toEqual([0, 1, 2, 3])
    expect([...assignments.values()].some((topics) => topics.has('nobody'))).toBe(false)
  })

  it('reads the owned numbers of a member, and nothing out of data that is not ours', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 1_000_000 })), (numbers) => {
        expect(decodeOwned(encodeOwned(numbers))).toEqual(numbers)
      }),
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 20 }), (bytes) => {
        expect(Array.isArray(decodeOwned(Buffer.from(bytes)))).toBe(true)
      }),
    )
    expect(decodeOwned(null)).toEqual([])
    expect(decodeOwned(Buffer.from('2:1,2'))).toEqual([])
  })
})
