import { type PartitionId, partitionId } from '../kernel/brand.ts'
import type { OutgoingMessage } from './message.ts'
import { BATCH_OVERHEAD_BYTES } from './outgoing.ts'

/** One call of `send`: settled when all its messages are acknowledged, or one of them can't be. */
export interface SendCall {
  remaining: number
  settled: boolean
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export interface SendItem {
  message: OutgoingMessage
  readonly bytes: number
  readonly call: SendCall
}

/** Messages of one partition in their order. At most one batch of a lane is on the wire, which is what keeps the order. */
export class SendLane {
  readonly topic: string
  readonly partition: number
  items: SendItem[] = []
  /** Of `items`. */
  bytes = 0
  /** Sent without other lanes, so that its failure is its own. */
  alone = false
  /** Fewer than usual after the broker refused a batch as too large. */
  maxItems = Number.POSITIVE_INFINITY
  failures = 0
  /** Since when the client does not know this partition. Monotonic ms. */
  unknownSinceMono: number | undefined

  constructor(topic: string, partition: number) {
    this.topic = topic
    this.partition = partition
  }
}

export interface LaneBatch {
  readonly lane: SendLane
  readonly items: readonly SendItem[]
}

export interface SendRequest {
  readonly codec: 'gzip' | undefined
  readonly batches: readonly LaneBatch[]
}

export interface SendQueueLimits {
  readonly maxMessages: number
  readonly maxBytes: number
  /** Largest batch that the broker takes for a topic. */
  readonly maxBatchBytes: (topic: string) => number
  readonly codec: (topic: string) => 'gzip' | undefined
}

/**
 * What waits to be sent, by partition. Pure: it decides what goes into the next request, and nothing else.
 *
 * A lane is idle (nothing in it), ready, or out: taken by `take`, or put back and waiting for `release`. Lanes are served in turn,
 * so that one busy partition can't keep the others waiting.
 */
export class SendQueue {
  readonly #limits: SendQueueLimits
  readonly #lanes = new Map<PartitionId, SendLane>()
  readonly #ready = new Set<SendLane>()
  readonly #out = new Set<SendLane>()
  /** Messages that are ready to be taken, for the decision to wait a little longer. */
  #readyCount = 0
  #readyBytes = 0

  constructor(limits: SendQueueLimits) {
    this.#limits = limits
  }

  get readyCount(): number {
    return this.#readyCount
  }

  get readyBytes(): number {
    return this.#readyBytes
  }

  push(item: SendItem): void {
    const lane = this.#lane(item.message.topic, item.message.partition)
    lane.items.push(item)
    lane.bytes += item.bytes
    if (this.#out.has(lane)) return
    this.#ready.add(lane)
    this.#readyCount += 1
    this.#readyBytes += item.bytes
  }

  /** The next request, or undefined when no lane is ready. Its lanes are out until `release` or `finish`. */
  take(): SendRequest | undefined {
    const batches: LaneBatch[] = []
    const room = { count: this.#limits.maxMessages, bytes: this.#limits.maxBytes }
    let codec: 'gzip' | undefined
    for (const lane of this.#ready) {
      const first = lane.items[0]
      if (first === undefined) {
        this.#ready.delete(lane)
        this.#forget(lane)
        continue
      }
      if (batches.length === 0) codec = this.#limits.codec(lane.topic)
      else if (lane.alone || codec !== this.#limits.codec(lane.topic)) continue
      const items = this.#takeItems(lane, room, batches.length === 0)
      if (items.length === 0) continue
      batches.push({ lane, items })
      // Whatever stays in the lane waits until this batch has come back.
      this.#ready.delete(lane)
      this.#countReady(lane, -1)
      this.#out.add(lane)
      if (lane.alone || room.count <= 0 || room.bytes <= 0) break
    }
    return batches.length === 0 ? undefined : { codec, batches }
  }

  /** The batch was not stored, or part of it stays: back to the head. The lane stays out until `release`. */
  putBack(lane: SendLane, items: readonly SendItem[]): void {
    const wanted = items.filter(({ call }) => !call.settled)
    lane.items = [...wanted, ...lane.items]
    lane.bytes += bytesOf(wanted)
  }

  /** A lane that was out may be taken again. */
  release(lane: SendLane): void {
    if (!this.#out.delete(lane)) return
    if (lane.items.length === 0) {
      this.#forget(lane)
      return
    }
    this.#ready.add(lane)
    this.#countReady(lane, 1)
  }

  /** Takes back what a call has not on the wire. Shape: the items that were removed. */
  removeCall(call: SendCall): SendItem[] {
    const matches = (item: SendItem): boolean => item.call === call
    const removed: SendItem[] = []
    for (const lane of this.#lanes.values()) {
      if (!lane.items.some(matches)) continue
      const gone = lane.items.filter(matches)
      if (this.#ready.has(lane)) this.#countReady(lane, -1)
      lane.items = lane.items.filter((item) => !matches(item))
      lane.bytes -= bytesOf(gone)
      if (this.#ready.has(lane)) this.#countReady(lane, 1)
      for (const item of gone) removed.push(item)
    }
    return removed
  }

  /** Takes the head of a ready lane, as far as there is room. The counts of the lane itself are the caller's. */
  #takeItems(lane: SendLane, room: { count: number; bytes: number }, first: boolean): SendItem[] {
    const limit = this.#limits.maxBatchBytes(lane.topic)
    let batchBytes = BATCH_OVERHEAD_BYTES
    let taken = 0
    for (const item of lane.items) {
      const fits = room.count > 0 && item.bytes <= room.bytes && batchBytes + item.bytes <= limit && taken < lane.maxItems
      // A message larger than a request goes by itself; `send` has checked it against its topic's limit.
      if (!fits && !(first && taken === 0)) break
      taken += 1
      batchBytes += item.bytes
      room.count -= 1
      room.bytes -= item.bytes
    }
    if (taken === 0) return []
    this.#countReady(lane, -1)
    const items = lane.items.splice(0, taken)
    lane.bytes -= bytesOf(items)
    this.#countReady(lane, 1)
    return items
  }

  #lane(topic: string, partition: number): SendLane {
    const id = partitionId(topic, partition)
    let lane = this.#lanes.get(id)
    if (lane === undefined) {
      lane = new SendLane(topic, partition)
      this.#lanes.set(id, lane)
    }
    return lane
  }

  #forget(lane: SendLane): void {
    this.#lanes.delete(partitionId(lane.topic, lane.partition))
  }

  #countReady(lane: SendLane, sign: 1 | -1): void {
    this.#readyCount += sign * lane.items.length
    this.#readyBytes += sign * lane.bytes
  }
}

function bytesOf(items: readonly SendItem[]): number {
  let bytes = 0
  for (const item of items) bytes += item.bytes
  return bytes
}
