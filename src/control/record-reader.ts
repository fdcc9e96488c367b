import { headerText, type KafkaMessage } from '../kafka/message.ts'
import { backoffMs } from '../kernel/backoff.ts'
import { isMillraceError } from '../kernel/errors.ts'
import { RecentSet } from '../kernel/recent-set.ts'
import { HEADER } from '../message/header-names.ts'
import { learnSchemas } from '../message/learn-schemas.ts'
import type { Runtime } from './runtime.ts'

/**
 * How long a registry may be behind the first record of a schema: its members hear of a new one a moment after each other. One that does
 * not have the schema then is not waited for again.
 */
const SCHEMA_WAIT_MS = 30_000
const SCHEMA_RETRY = { firstMs: 200, maxMs: 2_000 } as const
/** Schemas that were waited for in vain, by their header: what is remembered of a topic that strangers write to is bounded. */
const MISSING_KEPT = 1_000

type ReaderParts = Pick<Runtime, 'codec' | 'clock' | 'observer' | 'control'>

/**
 * Records as their writers' schemas have them. The topics of records are the user's: what lies there and is no record that can be
 * read is passed over, counted and told, and never ends the reading.
 */
export class RecordReader {
  readonly #runtime: ReaderParts
  readonly #missing = new RecentSet(MISSING_KEPT)
  #undecodableCount = 0

  constructor(runtime: ReaderParts) {
    this.#runtime = runtime
  }

  /** Messages that could not be read. */
  get undecodableCount(): number {
    return this.#undecodableCount
  }

  /**
   * To be awaited before `read` of these. With a signal a registry that is away is waited for as long as it takes, and one that does
   * not have the schema of a record yet for 30 s, once for each schema; false says that the signal came first. Errors: REGISTRY_REFUSED;
   * without a signal REGISTRY_UNREACHABLE.
   */
  async learn(messages: readonly KafkaMessage[], signal?: AbortSignal): Promise<boolean> {
    const { codec, clock } = this.#runtime
    const values = messages.map(({ value }) => value)
    try {
      if (signal === undefined) await codec.ensureSchemas(values)
      else {
        await learnSchemas(codec, values, { clock, signal })
        await this.#awaitSchemas(messages, signal)
      }
    } catch (error) {
      if (signal?.aborted === true) return false
      throw error
    }
    return true
  }

  async #awaitSchemas(messages: readonly KafkaMessage[], signal: AbortSignal): Promise<void> {
    const { codec, clock, observer } = this.#runtime
    const endMono = clock.mono() + SCHEMA_WAIT_MS
    let awaited = messages
    for (let tries = 1; ; tries += 1) {
      awaited = awaited.filter((message) => codec.isUnregistered(message.value) && this.#isAwaited(message))
      const [first] = awaited
      if (first === undefined) return
      if (clock.mono() >= endMono) break
      if (tries === 1) {
        const { topic, partition, offset } = first
        observer.emit('RecordSchemaAwaited', { topic, partition, offset, schema: schemaHeader(first) })
      }
      await clock.sleep(backoffMs(SCHEMA_RETRY, tries, Math.random()), signal)
      await learnSchemas(
        codec,
        awaited.map(({ value }) => value),
        { clock, signal },
      )
    }
    for (const message of awaited) this.#missing.add(schemaHeader(message) ?? '')
  }

  /** Of an extractor, as the header says; what strangers write is not waited for. */
  #isAwaited(message: KafkaMessage): boolean {
    const schema = schemaHeader(message)
    return schema !== undefined && !this.#missing.has(schema)
  }

  /**
   * Shape: undefined for a message that is no record. Errors: those of the control log; with `mustKnow` MESSAGE_SCHEMA_UNKNOWN for a
   * record of an extractor, which is not broken: who keeps a place must not go past it.
   */
  async read(message: KafkaMessage, { mustKnow = false } = {}): Promise<{ readonly value: unknown } | undefined> {
    if (message.value === null) return undefined
    const { observer } = this.#runtime
    try {
      return await this.#decode(message.value)
    } catch (error) {
      if (!isMillraceError(error) || error.disposition !== 'dead-letter') throw error
      if (mustKnow && error.code === 'MESSAGE_SCHEMA_UNKNOWN' && schemaHeader(message) !== undefined) throw error
      this.#undecodableCount += 1
      const { topic, partition, offset } = message
      observer.emit('RecordUndecodable', { topic, partition, offset, code: error.code, text: error.message })
      return undefined
    }
  }

  /** The schema of a record is announced before its first record, but this process may not have read that yet. */
  async #decode(value: Buffer): Promise<{ readonly value: unknown }> {
    const { codec } = this.#runtime
    try {
      return codec.decodeAny(value)
    } catch (error) {
      if (!isMillraceError(error, 'MESSAGE_SCHEMA_UNKNOWN')) throw error
      await (await this.#runtime.control()).readToEnd()
      return codec.decodeAny(value)
    }
  }
}

function schemaHeader({ headers }: KafkaMessage): string | undefined {
  return headerText(headers, HEADER.schema)
}
