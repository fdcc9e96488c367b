import type { KafkaAdmin } from '../../kafka/admin.ts'
import { type LayoutSource, partitionsOfKey } from '../../kafka/layout.ts'
import { readOne } from '../../kafka/log-reader.ts'
import type { Clock } from '../../kernel/clock.ts'
import { errorText } from '../../kernel/errors.ts'
import type { Observer } from '../../kernel/observe.ts'

/** Retention deletes whole segments, every few minutes. */
const LOOKED_AT_EVERY_MS = 60_000

export interface KeptSinceOptions {
  readonly admin: Pick<KafkaAdmin, 'earliestOffsets' | 'session'>
  readonly topic: string
  readonly layout: LayoutSource
  readonly clock: Clock
  readonly observer: Observer
}

/**
 * From when on a topic still holds the messages of a key: epoch ms of the oldest message where they lie, as it was a minute ago at most.
 * Shape: 0 where nothing was deleted; infinity where that can't be told now, as of a partition whose first offset is no message.
 */
export function createKeptSince({ admin, topic, layout, clock, observer }: KeptSinceOptions): (key: string) => Promise<number> {
  const known = new Map<number, { readonly lookedMono: number; readonly since: Promise<number> }>()

  const look = async (partition: number): Promise<number> => {
    try {
      const low = (await admin.earliestOffsets(topic)).get(partition) ?? 0n
      if (low === 0n) return 0
      return (await readOne(admin.session, { topic, partition }, low))?.timestamp ?? Number.POSITIVE_INFINITY
    } catch (error) {
      observer.emit('KeptSinceUnknown', { topic, partition, error: errorText(error) })
      return Number.POSITIVE_INFINITY
    }
  }
  const sinceOf = (partition: number): Promise<number> => {
    const found = known.get(partition)
    if (found !== undefined && clock.mono() - found.lookedMono < LOOKED_AT_EVERY_MS) return found.since
    const since = look(partition)
    known.set(partition, { lookedMono: clock.mono(), since })
    return since
  }
  return async (key) => Math.max(...(await Promise.all(partitionsOfKey(layout(), topic, key).map(sinceOf))))
}
