import { greatestOf, leastOf } from '../../kernel/bigint.ts'
import { countText, isAre } from '../../kernel/count-text.ts'
import { MillraceError } from '../../kernel/errors.ts'
import type { ReplayRange } from '../../message/replay-request.ts'

/** Where a replay begins, in the words of Kafka's own tool. Offsets that times stand for are looked up by the caller. */
export type ReplayStart =
  | { readonly kind: 'earliest' }
  /** First offset at or after a time, by partition. */
  | {
      readonly kind: 'offsets'
      readonly offsets: ReadonlyMap<number, bigint>
      readonly what: string
      /** Epoch ms, where a time was meant. */
      readonly at?: number
    }
  | { readonly kind: 'offset'; readonly offset: bigint }
  /** Relative to what the group has committed; negative goes back. */
  | { readonly kind: 'shift'; readonly by: bigint }

/** One partition as it stands. */
export interface PartitionFacts {
  readonly partition: number
  /** First offset that is still there. */
  readonly low: bigint
  /** High watermark. */
  readonly end: bigint
  /** Next offset of the group; undefined where nothing is committed. */
  readonly committed: bigint | undefined
  /** Epoch ms of the first message that is still there; known where a start is a time and older ones were deleted. */
  readonly oldestAt?: number | undefined
}

export interface PlannedPartition {
  readonly partition: number
  readonly from: bigint
  /** First offset that is not replayed. */
  readonly until: bigint
  /** By offsets: an end of a transaction, or what was compacted away, has one too. */
  readonly offsets: bigint
  /** Of the wanted range, what retention has deleted. */
  readonly gone: bigint
  readonly note: string | undefined
}

export interface ReplayPlan {
  readonly topic: string
  readonly partitions: readonly PlannedPartition[]
  readonly offsets: bigint
  readonly gone: bigint
  /** Of a plan without a page: what was asked for, what retention has deleted, what is left. */
  readonly nothing?: string
}

export interface PlanRequest {
  readonly topic: string
  /** The range in words. */
  readonly asked: string
  readonly start: ReplayStart
  /** By partition; the end where not given. */
  readonly until: ReadonlyMap<number, bigint> | undefined
  /** All where not given. */
  readonly partitions: readonly number[] | undefined
  /** In place nothing is replayed that the group has not read yet. */
  readonly untilCommitted: boolean
}

/**
 * The range of a replay, by partition. Pure. Shape: offsets are clamped to what is there, and the note says so; a partition with
 * nothing to replay and nothing to say is left out. Errors: REPLAY_REFUSED for a partition that does not exist, an offset behind the end of
 * every partition, or a shift of a group that has committed nothing where pages lie.
 */
export function planReplay(request: PlanRequest, facts: readonly PartitionFacts[]): ReplayPlan {
  const { start } = request
  const known = new Set(facts.map(({ partition }) => partition))
  for (const partition of [...(request.partitions ?? []), ...(start.kind === 'offsets' ? start.offsets.keys() : [])]) {
    if (!known.has(partition))
      throw new MillraceError('REPLAY_REFUSED', `topic ${request.topic} has no partition ${partition}; it has ${facts.length}, from 0`)
  }
  const chosen = facts.filter(({ partition }) => request.partitions === undefined || request.partitions.includes(partition))
  if (start.kind === 'offset' && chosen.every(({ end }) => start.offset > end)) {
    const longest = greatestOf(0n, ...chosen.map(({ end }) => end))
    throw new MillraceError(
      'REPLAY_REFUSED',
      `--to-offset: ${start.offset} lies behind the end of every partition; the longest ends at ${longest}`,
    )
  }
  const partitions = chosen.map((fact) => planPartition(request, fact)).filter(({ offsets, note }) => offsets > 0n || note !== undefined)
  const plan = { topic: request.topic, partitions, ...sums(partitions) }
  return plan.offsets > 0n ? plan : { ...plan, nothing: whyNothing(request, chosen) }
}

function whyNothing({ topic, asked, untilCommitted }: PlanRequest, facts: readonly PartitionFacts[]): string {
  const sum = (count: (fact: PartitionFacts) => bigint): bigint => facts.reduce((total, fact) => total + count(fact), 0n)
  const [gone, left] = [sum(({ low }) => low), sum(({ low, end }) => end - low)]
  const [only] = facts
  const where = facts.length === 1 && only !== undefined ? `partition ${only.partition} of ${topic}` : topic
  if (gone + left === 0n) return `asked for ${asked}; ${where} has held no page yet`
  const deleted = gone === 0n ? 'none is gone by retention' : `${gone} ${isAre(gone)} gone by retention`
  const unread = sum(({ low, end, committed }) => end - greatestOf(committed ?? low, low))
  const own = untilCommitted && unread > 0n ? `, ${unread} not read by the group yet` : ''
  const rest = left === 0n ? 'none is left' : `${left} ${isAre(left)} left${own}, and none of them is in that range`
  return `asked for ${asked}; of ${countText(gone + left, 'offset')} that ${where} has held ${deleted} and ${rest}`
}

function planPartition(request: PlanRequest, fact: PartitionFacts): PlannedPartition {
  const { partition, low, end, committed } = fact
  const wanted = startOffset(request.start, fact)
  const limit = request.untilCommitted ? (committed ?? low) : end
  const until = leastOf(request.until?.get(partition) ?? limit, limit, end)
  const from = greatestOf(wanted, low)
  const gone = greatestOf(0n, low - greatestOf(wanted, 0n))
  const offsets = greatestOf(0n, until - from)
  const left = `${offsets} ${isAre(offsets)} left`
  const notes: string[] = []
  if (gone > 0n && request.start.kind !== 'earliest')
    notes.push(`${countText(gone, 'older offset')} ${isAre(gone)} gone by retention, ${left}`)
  const { at } = request.start.kind === 'offsets' ? request.start : {}
  if (at !== undefined && fact.oldestAt !== undefined && low > 0n && fact.oldestAt > at)
    notes.push(`pages from before ${new Date(fact.oldestAt).toISOString()} are gone by retention, ${left}`)
  if (low > 0n && low === end && notes.length === 0)
    notes.push(low === 1n ? 'its only offset is gone by retention' : `all its ${low} offsets are gone by retention`)
  if (wanted > end) notes.push(`offset ${wanted} lies behind the end ${end}`)
  return {
    partition,
    from: leastOf(from, until),
    until,
    offsets,
    gone: request.start.kind === 'earliest' ? 0n : gone,
    note: notes.length === 0 ? undefined : notes.join('; '),
  }
}

/** The plan without what lies before these offsets. Pure. */
export function notBefore(plan: ReplayPlan, offsets: ReadonlyMap<number, bigint>, asked: string): ReplayPlan {
  if (plan.offsets === 0n) return plan
  const partitions = plan.partitions.flatMap((planned) => {
    const least = offsets.get(planned.partition) ?? planned.from
    if (least <= planned.from) return [planned]
    return least >= planned.until ? [] : [{ ...planned, from: least, offsets: planned.until - least, gone: 0n, note: undefined }]
  })
  const sum = sums(partitions)
  const nothing = `asked for ${asked}; of ${countText(plan.offsets, 'offset')} in that range none holds a page that was fetched as late`
  return { topic: plan.topic, partitions, ...sum, ...(sum.offsets > 0n ? {} : { nothing }) }
}

function sums(partitions: readonly PlannedPartition[]): { offsets: bigint; gone: bigint } {
  return {
    offsets: partitions.reduce((sum, { offsets }) => sum + offsets, 0n),
    gone: partitions.reduce((sum, { gone }) => sum + gone, 0n),
  }
}

function startOffset(start: ReplayStart, { partition, low, end, committed }: PartitionFacts): bigint {
  switch (start.kind) {
    case 'earliest':
      return low
    case 'offset':
      return start.offset
    case 'offsets':
      // A partition that the list does not name is not replayed.
      return start.offsets.get(partition) ?? end
    case 'shift':
      if (committed === undefined) {
        // Nothing lies there: nobody has had anything to commit.
        if (low === end) return end
        throw new MillraceError(
          'REPLAY_REFUSED',
          `--shift-by: the group has committed nothing for partition ${partition}, so there is nothing to shift from`,
        )
      }
      return committed + start.by
  }
}

/** CSV as Kafka's tool exports and reads it: `topic,partition,offset`, or with the group in front. Errors: USAGE naming the line. */
export function parseOffsetsFile(text: string, file: string, topic: string): Map<number, bigint> {
  const offsets = new Map<number, bigint>()
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    const cells = line.split(',').map((cell) => cell.trim().replace(/^"|"$/g, ''))
    const [name, partition, offset] = cells.length === 4 ? cells.slice(1) : cells
    if (cells.length < 3 || cells.length > 4 || !/^\d+$/.test(partition ?? '') || !/^\d+$/.test(offset ?? '')) {
      throw new MillraceError('USAGE', `${file}:${index + 1}: ${JSON.stringify(line)} is not topic,partition,offset`)
    }
    if (name === topic) offsets.set(Number(partition), BigInt(offset ?? 0))
  }
  if (offsets.size === 0) throw new MillraceError('USAGE', `${file}: no line names topic ${topic}`)
  return offsets
}

/** The plan as lines that `--from-file` and Kafka's own tool read. */
export function exportOffsets({ topic, partitions }: Pick<ReplayPlan, 'topic' | 'partitions'>): string[] {
  return partitions.map(({ partition, from }) => `${topic},${partition},${from}`)
}

/** The range of a request, as it was planned when the replay was first asked for. */
export function planOf(topic: string, ranges: readonly ReplayRange[]): ReplayPlan {
  const partitions = ranges.map(({ partition, from, until }) => {
    const offsets = BigInt(until) - BigInt(from)
    return { partition, from: BigInt(from), until: BigInt(until), offsets, gone: 0n, note: undefined }
  })
  return { topic, partitions, offsets: partitions.reduce((sum, { offsets }) => sum + offsets, 0n), gone: 0n }
}
