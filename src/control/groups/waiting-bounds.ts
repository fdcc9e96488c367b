import { decodeOffsetMap } from '../../kafka/offset-map.ts'
import { greatestOf } from '../../kernel/bigint.ts'
import { type MessagePlace, type PartitionId, partitionId, type TopicPartition } from '../../kernel/brand.ts'
import { delayTopics, laneTopics } from '../../message/topics.ts'
import type { Runtime } from '../runtime/runtime.ts'

/**
 * How far the fetch and delay groups have come, at one moment: what had not ended at it is waiting, even where a stage hands it on to
 * another topic meanwhile.
 */
export interface WaitingBounds {
  /** True for a message that its group has not finished: at or above the committed offset, and not completed in its map. */
  isWaiting(message: MessagePlace): boolean
  /** First offset that is not finished, and the end of the log; undefined for a partition that is not there. */
  rangeOf(at: TopicPartition): { readonly first: bigint; readonly end: bigint } | undefined
}

export async function waitingBounds(runtime: Runtime): Promise<WaitingBounds> {
  const { topics, groups, admin } = runtime
  const lanes = laneTopics(topics)
  const delays = delayTopics(topics)
  // The ends of all logs after the commits of both groups: what goes from a lane to a delay topic, or back, lies before one of the ends.
  const commits = await Promise.all([admin.committedOffsets(groups.fetch, lanes), admin.committedOffsets(groups.delay, delays)])
  const lags = (await Promise.all([admin.lagBehind(commits[0], lanes), admin.lagBehind(commits[1], delays)])).flat()
  const bounds = new Map<
    PartitionId,
    { readonly base: bigint; readonly first: bigint; readonly end: bigint; readonly span: bigint; readonly incomplete: ReadonlySet<number> }
  >()
  for (const { topic, partition, committed, low, end, metadata } of lags) {
    const base = committed ?? low
    const decoded = decodeOffsetMap(metadata, base, end)
    const map = decoded.kind === 'map' ? decoded.map : { span: 0, incomplete: [] }
    bounds.set(partitionId(topic, partition), {
      base,
      first: greatestOf(base, low),
      end,
      span: BigInt(map.span),
      incomplete: new Set(map.incomplete),
    })
  }
  return {
    isWaiting({ topic, partition, offset }) {
      const bound = bounds.get(partitionId(topic, partition))
      if (bound === undefined || offset < bound.base) return false
      return offset - bound.base >= bound.span || bound.incomplete.has(Number(offset - bound.base))
    },
    rangeOf: ({ topic, partition }) => bounds.get(partitionId(topic, partition)),
  }
}
