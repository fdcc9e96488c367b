import { partitionFor } from '../url/partition.ts'

/**
 * How many partitions each topic has, as `control` says. All members must agree on it, so it is never taken from the client's view of
 * the cluster, which grows at another moment in each process.
 */
export interface PartitionLayout {
  /** Rises with every change; a task found in a wrong partition is moved at most once per version. */
  readonly version: number
  /** Errors: KAFKA_TOPIC_MISSING for a topic that the layout does not know. */
  readonly partitionsOf: (topic: string) => number
  readonly knows: (topic: string) => boolean
  /** All numbers of partitions that the topic has had, the present one last. Errors: as of `partitionsOf`. */
  readonly countsOf: (topic: string) => readonly number[]
}

/**
 * Where messages of a key can lie: a key goes to another partition when a topic grows, and what was written before stays where it is.
 * Shape: distinct, the one that is written to now last. Errors: as of `countsOf`.
 */
export function partitionsOfKey(layout: Pick<PartitionLayout, 'countsOf'>, topic: string, key: string | Uint8Array): readonly number[] {
  const newestFirst = layout
    .countsOf(topic)
    .map((count) => partitionFor(key, count))
    .reverse()
  return [...new Set(newestFirst)].reverse()
}

/** The layout in force now; asked again for each message, since it may change while a process runs. */
export type LayoutSource = () => PartitionLayout
