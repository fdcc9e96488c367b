import type { Producer } from 'kafkajs'
import { MillraceError } from '../kernel/errors.ts'
import { type KafkaClient, METADATA_MAX_AGE_MS } from './client.ts'

/** A connected producer of kafkajs that sends once and leaves repeating to its caller. */
export async function connectProducer(client: KafkaClient): Promise<Producer> {
  const producer = client.kafka.producer({
    allowAutoTopicCreation: false,
    idempotent: false,
    metadataMaxAge: METADATA_MAX_AGE_MS,
    // Every message names its partition; the default would hash the key of each one again.
    createPartitioner: () => explicitPartition,
    // One try: we repeat, since only we know what may be repeated and for how long.
    retry: { retries: 0 },
  })
  await producer.connect()
  return producer
}

/** The partitioner of a producer whose messages all name their partition. */
export function explicitPartition({ message }: { message: { partition?: number } }): number {
  if (message.partition === undefined) throw new MillraceError('INTERNAL', 'a message without a partition reached the client')
  return message.partition
}
