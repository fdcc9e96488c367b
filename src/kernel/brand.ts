/** Nominal types: a politeness key is not any string, and an offset is not any bigint. */
declare const brand: unique symbol
export type Brand<T, Name extends string> = T & { readonly [brand]: Name }

/** What one site is for pacing: a host, a registrable domain or an address; lower-case ASCII. */
export type PolitenessKey = Brand<string, 'PolitenessKey'>

/** `topic:partition`, as a key of maps. */
export type PartitionId = Brand<string, 'PartitionId'>

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

/** Where a message lies. */
export interface MessagePlace extends TopicPartition {
  readonly offset: bigint
}

/** `topic:partition:offset`, as commands show a message; of an offset as reports have it too. */
export function placeText({ topic, partition, offset }: TopicPartition & { readonly offset: bigint | string }): string {
  return `${topic}:${partition}:${offset}`
}

export function partitionId(topic: string, partition: number): PartitionId {
  return `${topic}:${partition}` as PartitionId
}
