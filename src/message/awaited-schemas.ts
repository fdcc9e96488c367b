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
  /** What a registry that is away does, or a broker with the announcements: it is waited for where not given. */
  readonly whenAway?: 'wait' | 'throw'
}

/**
 * How long a registry may be behind the first message of a schema: its members hear of a new one a moment after each other. One that does
 * not have the schema then is not waited for again.
 */
const WAIT_MS = 30_000
/** After a wait in vain none begins for so long: else messages with ids that nobody has would hold up the topic, one after the other. */
const REST_MS = 270_000
const RETRY = { firstMs: 200, maxMs: 2_000 } as const
/** Ids that were waited for in vain: what is remembered of a topic that strangers write to is bounded. */
const MISSING_KEPT = 1_000

/** Learns the schemas of messages before they are decoded, and waits for those that the registry is to have in a moment. */
export class AwaitedSchemas {
  readonly #options: AwaitedSchemasOptions
  readonly #missing = new RecentSet(MISSING_KEPT)
  /** Of the wait that was begun last, unless its schema has come. Whoever comes meanwhile has what is left of it. */
  #endMono = Number.NEGATIVE_INFINITY

  constructor(options: AwaitedSchemasOptions) {
    this.#options = options
  }

  /**
   * A registry that does not have the schema of a message yet is waited for, for 30 s, once for each id, and after a wait in vain for none
   * for some minutes; `decode` then says MESSAGE_SCHEMA_UNKNOWN. What names no schema in its headers is not waited for: strangers wrote it.
   * Errors: REGISTRY_REFUSED; the reason of the signal; with `throw` what was away.
   */
  async learn(messages: readonly OriginalMessage[], signal: AbortSignal): Promise<void> {
    const { clock, observer } = this.#options
    await this.#ask(messages, signal)
    let awaited = this.#awaitedOf(messages)
    const [first] = awaited
    if (first === undefined) return
    const endMono = this.#endOfWait()
    for (let tries = 1; clock.mono() < endMono; tries += 1) {
      if (tries === 1) {
        const { topic, partition, offset } = first
        observer.emit('SchemaAwaited', { topic, partition, offset, schema: schemaHeader(first) })
      }
      await clock.sleep(backoffMs(RETRY, tries, Math.random()), signal)
      await this.#ask(awaited, signal)
      awaited = this.#awaitedOf(awaited)
      if (awaited.length > 0) continue
      this.#endMono = Number.NEGATIVE_INFINITY
      return
    }
    for (const { value } of awaited) this.#missing.add(String(this.#options.codec.unregisteredId(value)))
  }

  async #ask(messages: readonly OriginalMessage[], signal: AbortSignal): Promise<void> {
    const { codec, clock, whenAway } = this.#options
    const values = messages.map(({ value }) => value)
    if (whenAway === 'throw') await codec.ensureSchemas(values)
    else await learnSchemas(codec, values, { clock, signal })
  }

  #awaitedOf(messages: readonly OriginalMessage[]): readonly OriginalMessage[] {
    return messages.filter((message) => {
      const id = this.#options.codec.unregisteredId(message.value)
      return id !== undefined && schemaHeader(message) !== undefined && !this.#missing.has(String(id))
    })
  }

  #endOfWait(): number {
    const now = this.#options.clock.mono()
    if (now >= this.#endMono + REST_MS) this.#endMono = now + WAIT_MS
    return this.#endMono
  }
}

function schemaHeader({ headers }: OriginalMessage): string | undefined {
  return headerValue(headers, HEADER.schema)
}
