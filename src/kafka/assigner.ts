import type { PartitionAssigner } from 'kafkajs'
import { grouped } from '../kernel/grouped.ts'

type AssignerProtocol = typeof import('kafkajs')['AssignerProtocol']

/** What the leader of a group knows of a member. */
export interface MemberClaim {
  readonly memberId: string
  readonly topics: readonly string[]
  /** Partition numbers that it owned before the rebalance. */
  readonly owned: readonly number[]
}

/** Topic to partition numbers, per member. */
export type MemberAssignments = ReadonlyMap<string, ReadonlyMap<string, readonly number[]>>

const NAME = 'millrace-sticky-copartitioned'
const VERSION = 1

/**
 * Partitions for the members of a group: one member has the same partition number of every topic (all lanes of a site are worked in
 * one process), members differ by at most one number, and a number stays with its owner where that allows it.
 * Shape: every member is in the result; a topic that the owner of a number does not read goes to a member that reads it. Topics
 * that no member reads are left out. Deterministic for the same input in any order.
 */
export function assignStickily(members: readonly MemberClaim[], partitionCounts: ReadonlyMap<string, number>): MemberAssignments {
  const sorted = [...members].sort((a, b) => (a.memberId < b.memberId ? -1 : 1))
  const result = new Map(sorted.map(({ memberId }) => [memberId, new Map<string, number[]>()]))
  const numberCount = Math.max(0, ...partitionCounts.values())
  const ownerOf = ownersOfNumbers(sorted, numberCount)
  for (const [topic, count] of [...partitionCounts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const readers = sorted.filter(({ topics }) => topics.includes(topic))
    if (readers.length === 0) continue
    const readerOf = (number: number): MemberClaim | undefined =>
      readers.find(({ memberId }) => memberId === ownerOf[number]) ?? readers[number % readers.length]
    for (const [reader, numbers] of grouped(Array(count).keys(), readerOf))
      if (reader !== undefined) result.get(reader.memberId)?.set(topic, numbers)
  }
  return result
}

/** Member id per partition number. */
function ownersOfNumbers(sorted: readonly MemberClaim[], numberCount: number): readonly string[] {
  const claims = new Map<number, string>()
  const held = new Map<string, number[]>(sorted.map(({ memberId }) => [memberId, []]))
  for (const { memberId, owned } of sorted) {
    // Two can claim one number after one of them was expelled; the first in order has it, either is right.
    for (const number of [...new Set(owned)].sort((a, b) => a - b)) {
      if (number >= 0 && number < numberCount && !claims.has(number)) {
        claims.set(number, memberId)
        held.get(memberId)?.push(number)
      }
    }
  }
  const least = Math.floor(numberCount / Math.max(1, sorted.length))
  let larger = numberCount - least * sorted.length
  // Those who hold most keep one more than the rest, so that the fewest numbers move.
  const byHeld = [...sorted].sort((a, b) => (held.get(b.memberId)?.length ?? 0) - (held.get(a.memberId)?.length ?? 0))
  const quota = new Map(
    byHeld.map(({ memberId }) => {
      const extra = larger > 0 ? 1 : 0
      larger -= extra
      return [memberId, least + extra]
    }),
  )
  const owners: (string | undefined)[] = Array.from({ length: numberCount })
  for (const { memberId } of sorted) {
    const numbers = (held.get(memberId) ?? []).slice(0, quota.get(memberId))
    for (const number of numbers) owners[number] = memberId
    quota.set(memberId, (quota.get(memberId) ?? 0) - numbers.length)
  }
  const free = sorted.flatMap(({ memberId }) => Array.from({ length: quota.get(memberId) ?? 0 }, () => memberId))
  return owners.map((owner) => owner ?? free.shift() ?? '')
}

/**
 * The assigner for kafkajs. All members of a group should read the same topics; while versions with different topics run side by
 * side, a topic that the leader does not read waits until it does.
 */
export function stickyAssigner(protocol: AssignerProtocol, ownedNumbers: () => readonly number[]): PartitionAssigner {
  return ({ cluster }) => ({
    name: NAME,
    version: VERSION,
    protocol: ({ topics }) => ({
      name: NAME,
      metadata: protocol.MemberMetadata.encode({ version: VERSION, topics, userData: encodeOwned(ownedNumbers()) }),
    }),
    assign: async ({ members, topics }) => {
      const claims = members.map(({ memberId, memberMetadata }): MemberClaim => {
        const decoded = protocol.MemberMetadata.decode(memberMetadata)
        return { memberId, topics: decoded?.topics ?? [...topics], owned: decodeOwned(decoded?.userData) }
      })
      const counts = new Map<string, number>()
      for (const topic of new Set([...topics, ...claims.flatMap((claim) => claim.topics)])) {
        const count = cluster.findTopicPartitionMetadata(topic).length
        if (count > 0) counts.set(topic, count)
      }
      return [...assignStickily(claims, counts)].map(([memberId, assignment]) => ({
        memberId,
        memberAssignment: protocol.MemberAssignment.encode({
          version: VERSION,
          assignment: Object.fromEntries([...assignment].map(([topic, numbers]) => [topic, [...numbers]])),
          userData: Buffer.alloc(0),
        }),
      }))
    },
  })
}

/** Owned numbers as the user data of a subscription: comma-separated decimals behind a version. */
export function encodeOwned(numbers: readonly number[]): Buffer {
  return Buffer.from(`1:${numbers.join(',')}`, 'latin1')
}

/** Shape: data of another program or version counts as owning nothing, which costs moves and nothing else. */
export function decodeOwned(userData: Buffer | null | undefined): number[] {
  const text = userData?.toString('latin1') ?? ''
  if (!/^1:(\d{1,7}(,\d{1,7})*)?$/.test(text)) return []
  return text.length === 2 ? [] : text.slice(2).split(',').map(Number)
}
