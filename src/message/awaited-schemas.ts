import { backoffMs } from '../kernel/backoff.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Observer } from '../kernel/observe.ts'
import { RecentSet } from '../kernel/recent-set.ts'
import type { MessageCodec } from './codec.ts'
import { HEADER, headerValue, type OriginalMessage } from './header-names.ts'
import { learnSchemas } from './learn-schemas.ts'

export interface AwaitedSchemasOptions {
  readonly codec: MessageCodec
  readonly clock: Clock
  readonly observer: Observer
}

/**
 * How long a registry may be behind the first message of a schema: its members hear of a new one a moment after each other. One that does
 * not have the schema then is not waited for again.
 */
const WAIT_MS = 30_000
const RETRY = { firstMs: 200, maxMs: 2_000 } as const
/** Schemas that were waited for in vain, by their header: what is remembered of a topic that strangers write to is bounded. */
const MISSING_KEPT = 1_000

/** Learns the schemas of messages before they are decoded, and waits for those that the registry is to have in a moment. */
export class AwaitedSchemas {
  readonly #options: AwaitedSchemasOptions
  readonly #missing = new RecentSet(MISSING_KEPT)

  constructor(options: AwaitedSchemasOptions) {
    this.#options = options
  }

  /**
   * A registry that is away is waited for as long as it takes, and one that does not have the schema of a message yet for 30 s, once for
   * each schema; `decode` then says MESSAGE_SCHEMA_UNKNOWN. What names no schema in its headers is not waited for: strangers wrote it.
   * Errors: REGISTRY_REFUSED; the reason of the signal.
   */
  async learn(messages: readonly OriginalMessage[], signal: AbortSignal): Promise<void> {
    const { codec, clock, observer } = this.#options
    const valuesOf = (given: readonly OriginalMessage[]): readonly (Buffer | null)[] => given.map(({ value }) => value)
    await learnSchemas(codec, valuesOf(messages), { clock, signal })
    const endMono = clock.mono() + WAIT_MS
    let awaited = messages
    for (let tries = 1; ; tries += 1) {
      awaited = awaited.filter((message) => codec.isUnregistered(message.value) && this.#isAwaited(message))
      const [first] = awaited
      if (first === undefined) return
      if (clock.mono() >= endMono) break
      if (tries === 1) {
        const { topic, partition, offset } = first
        observer.emit('SchemaAwaited', { topic, partition, offset, schema: schemaHeader(first) })
      }
      await clock.sleep(backoffMs(RETRY, tries, Math.random()), signal)
      await learnSchemas(codec, valuesOf(awaited), { clock, signal })
    }
    for (const message of awaited) this.#missing.add(schemaHeader(message) ?? '')
  }

  #isAwaited(message: OriginalMessage): boolean {
    const schema = schemaHeader(message)
    return schema !== undefined && !this.#missing.has(schema)
  }
}

function schemaHeader({ headers }: OriginalMessage): string | undefined {
  return headerValue(headers, HEADER.schema)
}
