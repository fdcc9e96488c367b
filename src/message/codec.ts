import { isDeepStrictEqual } from 'node:util'
import { type Clock, systemClock } from '../kernel/clock.ts'
import { isMillraceError, MillraceError } from '../kernel/errors.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import type { AvroSchema } from './avro.ts'
import { MAX_SCHEMA_ID, readFraming, registryFrame, singleObjectFrame } from './framing.ts'
import type { Command, Outcome, Page, UrlTask } from './generated/types.ts'
import { registerSchema } from './registration.ts'
import type { RegistryPort } from './registry.ts'
import type { SchemaStore } from './schema-store.ts'
import { subjectOf } from './subjects.ts'

/** Messages of our own by the name of their schema. */
export interface MessageTypes {
  readonly UrlTask: UrlTask
  readonly Page: Page
  readonly Outcome: Outcome
  readonly Command: Command
}

export type MessageType = keyof MessageTypes

/** What its readers must be told of: commands have one schema for good. */
export type PreparedType = Exclude<MessageType, 'Command'>

export interface DecodedMessage {
  /** Full name of the schema that wrote it. */
  readonly schemaName: string
  readonly fingerprint: string
  /** As the writer's schema has it, unresolved. */
  readonly value: unknown
}

/**
 * Values to bytes and back. Writes Avro single-object encoding, or with a registry Confluent framing; reads both, always with the
 * writer's schema, resolved to the current one. Commands stand in single-object encoding with a registry too: they have one schema for
 * good, which every release knows, and what stops a site or a crawl must do so while the registry is away.
 */
export interface MessageCodec {
  readonly schemas: SchemaStore
  /** Errors: MESSAGE_INVALID naming the field; INTERNAL when, with a registry, the topic was not prepared. */
  encode<T extends MessageType>(type: T, value: MessageTypes[T], topic: string): Buffer
  /**
   * The same for a copy of a message, which a newer release may have written with fields that are not known here. Shape: in schema and
   * framing of the original, with all that stands there, where that schema has a place for what is said now; else as `encode`. `schema` is
   * that of the bytes.
   */
  encodeCopy<T extends MessageType>(type: T, value: MessageTypes[T], topic: string, original: Buffer | null): EncodedCopy
  /** The same for a record with the schema of its extractor. */
  encodeRecord(schema: AvroSchema, value: unknown, topic: string): Buffer
  /** Errors: MESSAGE_EMPTY, MESSAGE_FRAMING_UNKNOWN, MESSAGE_SCHEMA_UNKNOWN, SCHEMA_INVALID, SCHEMA_INCOMPATIBLE, MESSAGE_MALFORMED. */
  decode<T extends MessageType>(type: T, bytes: Buffer | null): MessageTypes[T]
  /** Any message whose schema is known. Errors: as `decode`. */
  decodeAny(bytes: Buffer | null): DecodedMessage
  /**
   * To be awaited before the first `encode` to that topic, so that whoever reads it can know the schema. With a registry: learns the id
   * under which it stands for the topic, once. Errors: REGISTRY_UNREACHABLE, REGISTRY_REFUSED; SCHEMA_INCOMPATIBLE naming the fields; those
   * of writing to `control` where the deployment announces its schemas there.
   */
  prepare(topic: string, schema: PreparedType | AvroSchema): Promise<void>
  /**
   * Learns the schemas that these values name and nobody here knows yet, by registry id or, where a deployment announces them, by
   * fingerprint; undefined when there is nothing to ask. One that is not there is no error here: `decode` then answers
   * MESSAGE_SCHEMA_UNKNOWN, and an id is not asked for again for a moment, for longer each time. Errors: REGISTRY_UNREACHABLE,
   * REGISTRY_REFUSED; those of reading `control`.
   */
  ensureSchemas(values: Iterable<Buffer | null>): Promise<void> | undefined
  /** The id that the value names, where the registry did not have it when it was asked for it last. */
  unregisteredId(value: Buffer | null): number | undefined
  /** content-type, millrace-schema and, where given, traceparent. */
  headers(schema: MessageType | AvroSchema, traceparent?: string): Record<string, string>
}

export interface EncodedCopy {
  readonly bytes: Buffer
  readonly schema: AvroSchema
}

export interface CodecOptions {
  readonly schemaStore: SchemaStore
  readonly registry?: RegistryPort
  readonly clock?: Pick<Clock, 'mono'>
}

/** Requests to the registry at the same time. */
const LOOKUPS_AT_ONCE = 4
/**
 * An id that the registry does not have is not asked for again for so long, and each time for twice as long, up to the most: a producer of
 * such messages would have it asked for each batch. Short at first, since all messages until then are dead letters, and one that was
 * registered just now may only not have come to this member of the registry.
 */
const UNKNOWN_MS = 100
const MAX_UNKNOWN_MS = 5_000
const UNKNOWN_KEPT = 5_000

export function createMessageCodec({ schemaStore, registry, clock = systemClock }: CodecOptions): MessageCodec {
  const byId = new Map<number, AvroSchema>()
  const ids = new Map<string, number>()
  const unusable = new Map<number, MillraceError>()
  /** By id. */
  const unknown = new RecentMap<number, { readonly untilMono: number; readonly waitMs: number }>(UNKNOWN_KEPT)
  const schemaOf = (schema: MessageType | AvroSchema): AvroSchema => (typeof schema === 'string' ? schemaStore.current(schema) : schema)
  const command = schemaStore.current('Command')

  const frame = (schema: AvroSchema, value: unknown, topic: string): Buffer => {
    const body = schema.encode(value)
    if (registry === undefined || schema === command) return singleObjectFrame(schema.fingerprint, body)
    const id = ids.get(idKey(topic, schema))
    if (id === undefined) throw new MillraceError('INTERNAL', `the topic ${topic} was not prepared for ${schema.name}`)
    return registryFrame(id, body)
  }

  const writerOf = (bytes: Buffer | null): { bytes: Buffer; writer: AvroSchema; bodyStart: number } => {
    const framing = readFraming(bytes)
    const writer = framing.kind === 'single-object' ? schemaStore.byFingerprint(framing.fingerprint) : byId.get(framing.schemaId)
    if (writer === undefined) {
      const reason = framing.kind === 'registry' ? unusable.get(framing.schemaId) : undefined
      throw reason ?? unknownSchema(framing, registry !== undefined)
    }
    return { bytes: bytes ?? Buffer.alloc(0), writer, bodyStart: framing.bodyStart }
  }

  /** Shape: undefined where the schema of the original has no place for what differs, or there is none, as of JSON. */
  const changedCopy = (reader: AvroSchema, value: object, original: Buffer | null): EncodedCopy | undefined => {
    try {
      const { bytes, writer, bodyStart } = writerOf(original)
      if (writer === reader) return undefined
      const read = writer.decode(bytes, bodyStart, reader) as Readonly<Record<string, unknown>>
      const changed = Object.entries(value).filter(([name, own]) => !isDeepStrictEqual(own, read[name]))
      const body = writer.encode({ ...(writer.decode(bytes, bodyStart) as object), ...Object.fromEntries(changed) })
      return { bytes: Buffer.concat([bytes.subarray(0, bodyStart), body]), schema: writer }
    } catch (error) {
      if (isMillraceError(error)) return undefined
      throw error
    }
  }

  const decodeAs = (reader: AvroSchema | undefined, value: Buffer | null): DecodedMessage => {
    const { bytes, writer, bodyStart } = writerOf(value)
    return { schemaName: writer.name, fingerprint: writer.fingerprint, value: writer.decode(bytes, bodyStart, reader) }
  }

  /**
   * Text of the schema with that id. A registry with access rights by subject may refuse somebody else's: that is his message's trouble and
   * no reason to stop, as long as one of our own is not refused as well.
   */
  const textOf = async (port: RegistryPort, id: number): Promise<string | undefined> => {
    try {
      return await port.schemaById(id)
    } catch (error) {
      const [own] = ids.values()
      if (!isMillraceError(error, 'REGISTRY_REFUSED') || own === undefined || own === id) throw error
      await port.schemaById(own)
      return undefined
    }
  }

  const learn = async (id: number): Promise<void> => {
    const text = registry === undefined ? undefined : await textOf(registry, id)
    const before = unknown.get(id)
    if (text === undefined) {
      const waitMs = before === undefined ? UNKNOWN_MS : Math.min(before.waitMs * 2, MAX_UNKNOWN_MS)
      unknown.set(id, { untilMono: clock.mono() + waitMs, waitMs })
      return
    }
    unknown.delete(id)
    try {
      // By its own text: the registry tells schemas apart that differ in a logical type alone, which have one fingerprint.
      byId.set(id, schemaStore.sameOrOwn(text))
    } catch (error) {
      // A schema that can't be used makes its messages dead letters; it must not hold up the others.
      if (!isMillraceError(error, 'SCHEMA_INVALID')) throw error
      unusable.set(id, error)
    }
  }

  const isAnswered = (id: number): boolean => byId.has(id) || unusable.has(id) || (unknown.get(id)?.untilMono ?? 0) > clock.mono()

  return {
    schemas: schemaStore,
    encode: (type, value, topic) => frame(schemaStore.current(type), value, topic),
    encodeCopy(type, value, topic, original) {
      const schema = schemaStore.current(type)
      return changedCopy(schema, value, original) ?? { bytes: frame(schema, value, topic), schema }
    },
    encodeRecord: frame,
    decode: (type, bytes) => decodeAs(schemaStore.current(type), bytes).value as never,
    decodeAny: (bytes) => decodeAs(undefined, bytes),
    async prepare(topic, given) {
      const schema = schemaOf(given)
      const key = idKey(topic, schema)
      if (registry === undefined || ids.has(key)) return
      const id = await registerSchema(registry, subjectOf(topic, schema), schema)
      ids.set(key, id)
      byId.set(id, schema)
    },
    ensureSchemas(values) {
      if (registry === undefined) return undefined
      const missing = [...missingIds(values, isAnswered)]
      return missing.length === 0 ? undefined : eachOf(missing, LOOKUPS_AT_ONCE, learn)
    },
    unregisteredId: (value) => {
      const id = registryId(value)
      return id !== undefined && unknown.has(id) ? id : undefined
    },
    headers(given, traceparent) {
      const schema = schemaOf(given)
      return {
        'content-type': 'application/avro',
        'millrace-schema': `${schema.name}:${schema.fingerprint}`,
        ...(traceparent === undefined ? {} : { traceparent }),
      }
    },
  }
}

function idKey(topic: string, schema: AvroSchema): string {
  return `${topic} ${schema.fingerprint}`
}

function* missingIds(values: Iterable<Buffer | null>, isAnswered: (id: number) => boolean): Iterable<number> {
  const seen = new Set<number>()
  for (const value of values) {
    const id = registryId(value)
    if (id === undefined || isAnswered(id) || seen.has(id)) continue
    seen.add(id)
    yield id
  }
}

/** The id of a registry that the value begins with; undefined where it is in another framing, or no registry has such an id. */
function registryId(value: Buffer | null): number | undefined {
  if (value === null || value[0] !== 0 || value.length < 5) return undefined
  const id = value.readUInt32BE(1)
  return id > MAX_SCHEMA_ID ? undefined : id
}

async function eachOf<T>(items: readonly T[], atOnce: number, run: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values()
  const worker = async (): Promise<void> => {
    for (const item of queue) await run(item)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
}

function unknownSchema(framing: ReturnType<typeof readFraming>, hasRegistry: boolean): MillraceError {
  if (framing.kind === 'single-object') {
    return new MillraceError(
      'MESSAGE_SCHEMA_UNKNOWN',
      `the message was written with the schema ${framing.fingerprint}, which is neither built in nor announced`,
    )
  }
  const why = hasRegistry ? 'which the registry does not have, or does not show, as an Avro schema' : 'and no registry is configured'
  return new MillraceError('MESSAGE_SCHEMA_UNKNOWN', `the message was written with the registry id ${framing.schemaId}, ${why}`)
}
