import { isMillraceError } from '../kernel/errors.ts'
import { commandPayload } from './command.ts'
import type { Command } from './generated/types.ts'

/** What an operator has done about a dead letter. */
export type DeadLetterAction = 'requeued' | 'dropped'

/** Dead letters of one partition that are dealt with; the payload of a command. */
export interface DeadLetterMark {
  readonly action: DeadLetterAction
  readonly partition: number
  /** Ranges of offsets, both ends included: `17-20,25`. */
  readonly offsets: string
  /** Largest timestamp of these messages: a topic that was made anew has later ones at the same offsets. Epoch ms. */
  readonly newestMs: number
}

interface Range {
  readonly from: bigint
  readonly to: bigint
  readonly newestMs: number
  readonly resolved: Resolved
  /** Largest end of this range and those before it, by their beginning. */
  reach: bigint
}

export interface Resolved {
  readonly action: DeadLetterAction
  /** Epoch ms. */
  readonly at: number
}

/** Shape: offsets in any order, each once or more. */
export function offsetRanges(offsets: readonly bigint[]): string {
  const sorted = [...new Set(offsets)].sort((a, b) => (a < b ? -1 : 1))
  const ranges: { from: bigint; to: bigint }[] = []
  for (const offset of sorted) {
    const last = ranges.at(-1)
    if (last !== undefined && last.to + 1n === offset) last.to = offset
    else ranges.push({ from: offset, to: offset })
  }
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)).join(',')
}

/**
 * Which dead letters are dealt with, out of the commands that say so. A log can't forget one message, so that it is dealt with is
 * said on `control`: for good, and for everybody.
 */
export class ResolvedLetters {
  readonly #ranges = new Map<number, Range[]>()
  #isSorted = true

  /** A command that is no mark is passed over: a newer release may know more. */
  add(command: Command): void {
    const mark = readMark(command)
    if (mark === undefined) return
    const ranges = this.#ranges.get(mark.partition) ?? []
    this.#ranges.set(mark.partition, ranges)
    const resolved = { action: mark.action, at: command.at }
    for (const part of mark.offsets.split(',')) {
      const [, from = '', to = from] = /^(\d{1,19})(?:-(\d{1,19}))?$/.exec(part) ?? []
      if (from !== '') ranges.push({ from: BigInt(from), to: BigInt(to), newestMs: mark.newestMs, resolved, reach: 0n })
    }
    this.#isSorted = false
  }

  /** Undefined: it is open. */
  get(letter: { readonly partition: number; readonly offset: bigint; readonly timestamp: number }): Resolved | undefined {
    this.#sort()
    const ranges = this.#ranges.get(letter.partition) ?? []
    let low = 0
    let high = ranges.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((ranges[middle]?.from ?? 0n) <= letter.offset) low = middle + 1
      else high = middle
    }
    // Marks of a former life of the topic may lie over those of this one.
    for (let index = low - 1; index >= 0; index -= 1) {
      const range = ranges[index]
      if (range === undefined || range.reach < letter.offset) return undefined
      if (range.to >= letter.offset && range.newestMs >= letter.timestamp) return range.resolved
    }
    return undefined
  }

  #sort(): void {
    if (this.#isSorted) return
    for (const ranges of this.#ranges.values()) {
      ranges.sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))
      let reach = -1n
      for (const range of ranges) {
        if (range.to > reach) reach = range.to
        range.reach = reach
      }
    }
    this.#isSorted = true
  }
}

function readMark(command: Command): DeadLetterMark | undefined {
  const payload = payloadOf(command)
  if (typeof payload !== 'object' || payload === null) return undefined
  const { action, partition, offsets, newestMs } = payload
  const isMark =
    (action === 'requeued' || action === 'dropped') &&
    Number.isSafeInteger(partition) &&
    typeof offsets === 'string' &&
    typeof newestMs === 'number'
  return isMark ? (payload as DeadLetterMark) : undefined
}

function payloadOf(command: Command): Partial<DeadLetterMark> | null {
  try {
    return commandPayload(command) as Partial<DeadLetterMark> | null
  } catch (error) {
    if (isMillraceError(error, 'MESSAGE_INVALID')) return null
    throw error
  }
}
