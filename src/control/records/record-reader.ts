import { headerText, type KafkaMessage } from '../../kafka/message.ts'
import { isMillraceError, MillraceError } from '../../kernel/errors.ts'
import { AwaitedSchemas } from '../../message/awaited-schemas.ts'
import { HEADER } from '../../message/header-names.ts'
import { isOfRecords, RECORDS_NAMESPACE } from '../../message/subjects.ts'
import type { Runtime } from '../runtime/runtime.ts'

type ReaderParts = Pick<Runtime, 'codec' | 'clock' | 'observer'>

/**
 * Records as their writers' schemas have them. The topics of records are the user's: what lies there and is no record that can be
 * read is passed over, counted and told, and never ends the reading.
 */
export class RecordReader {
  readonly #runtime: ReaderParts
  readonly #schemas: AwaitedSchemas
  #undecodableCount = 0

  constructor(runtime: ReaderParts) {
    this.#runtime = runtime
    this.#schemas = new AwaitedSchemas(runtime)
  }

  /** Messages that could not be read. */
  get undecodableCount(): number {
    return this.#undecodableCount
  }

  /**
   * To be awaited before `read` of these. With a signal the registry and the announcements are waited for, as `AwaitedSchemas` does; false
   * says that the signal came first. Errors: REGISTRY_REFUSED; without a signal what is away, as `MessageCodec.ensureSchemas`.
   */
  async learn(messages: readonly KafkaMessage[], signal?: AbortSignal): Promise<boolean> {
    try {
      if (signal === undefined) await this.#runtime.codec.ensureSchemas(messages.map(({ value }) => value))
      else await this.#schemas.learn(messages, signal)
    } catch (error) {
      if (signal?.aborted === true) return false
      throw error
    }
    return true
  }

  /**
   * Shape: undefined for a message that is no record. Errors: with `mustKnow` MESSAGE_SCHEMA_UNKNOWN for a
   * record of an extractor, which is not broken: who keeps a place must not go past it.
   */
  read(message: KafkaMessage, { mustKnow = false } = {}): { readonly value: unknown } | undefined {
    if (message.value === null) return undefined
    const { codec, observer } = this.#runtime
    try {
      const record = codec.decodeAny(message.value)
      if (isOfRecords(record.schemaName)) return record
      throw new MillraceError(
        'SCHEMA_INCOMPATIBLE',
        `${record.schemaName} is no schema of records, whose names begin with ${RECORDS_NAMESPACE}`,
      )
    } catch (error) {
      if (!isMillraceError(error) || error.disposition !== 'dead-letter') throw error
      if (mustKnow && error.code === 'MESSAGE_SCHEMA_UNKNOWN' && headerText(message.headers, HEADER.schema) !== undefined) throw error
      this.#undecodableCount += 1
      const { topic, partition, offset } = message
      observer.emit('RecordUndecodable', { topic, partition, offset, code: error.code, text: error.message })
      return undefined
    }
  }
}
