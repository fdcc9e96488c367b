import type { Clock } from '../kernel/clock.ts'
import { type KafkaClient, METADATA_MAX_AGE_MS } from './client.ts'
import { ClusterSession, partitionsOf } from './cluster-session.ts'

/** Number of partitions per topic, remembered for as long as the client's metadata is. Connects when first asked. */
export class PartitionCounts {
  readonly #session: ClusterSession
  readonly #clock: Clock
  readonly #known = new Map<string, { count: Promise<number>; untilMono: number }>()

  constructor(client: KafkaClient, clock: Clock) {
    this.#session = new ClusterSession({ client, clock })
    this.#clock = clock
  }

  /** Errors: KAFKA_TOPIC_MISSING, KAFKA_UNREACHABLE; neither is remembered. */
  get(topic: string): Promise<number> {
    const now = this.#clock.mono()
    const known = this.#known.get(topic)
    if (known !== undefined && now < known.untilMono) return known.count
    const count = this.#ask(topic)
    this.#known.set(topic, { count, untilMono: now + METADATA_MAX_AGE_MS })
    count.catch(() => this.#known.delete(topic))
    return count
  }

  close(): Promise<void> {
    return this.#session.close()
  }

  async #ask(topic: string): Promise<number> {
    const partitions = await this.#session.run(`reading the partitions of topic ${topic}`, (cluster) => partitionsOf(cluster, [topic]))
    return partitions.get(topic)?.length ?? 0
  }
}
