/**
 * How many partitions each topic has, as `control` says. All members must agree on it, so it is never taken from the client's view of
 * the cluster, which grows at another moment in each process.
 */
export interface PartitionLayout {
  /** Rises with every change; a task found in a wrong partition is moved at most once per version. */
  readonly version: number
  /** Errors: KAFKA_TOPIC_MISSING for a topic that the layout does not know. */
  readonly partitionsOf: (topic: string) => number
}

/** The layout in force now; asked again for each message, since it may change while a process runs. */
export type LayoutSource = () => PartitionLayout
