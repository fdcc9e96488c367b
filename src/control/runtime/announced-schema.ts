import type { ControlLog, LoggedCommand } from '../../kafka/control-log.ts'
import { errorText, isMillraceError, MillraceError } from '../../kernel/errors.ts'
import type { Observer } from '../../kernel/observe.ts'
import { openedOnce } from '../../kernel/opened-once.ts'
import { RecentSet } from '../../kernel/recent-set.ts'
import type { AvroSchema } from '../../message/avro.ts'
import type { MessageCodec, PreparedType } from '../../message/codec.ts'
import { commandPayload, parseSubject } from '../../message/command.ts'
import { namedFingerprint } from '../../message/framing.ts'
import type { SchemaStore } from '../../message/schema-store.ts'

/**
 * Fingerprints that nobody has announced when `control` was read for them: what is remembered of topics that strangers write to is bounded.
 */
const UNANNOUNCED_KEPT = 1_000

/**
 * The codec of a deployment, whose members may be of several releases: before it writes with a schema of ours it has that announced, and
 * where a value names one that is not known here it reads `control` to its end first. What nobody has announced by then is not looked for
 * again: who follows `control` hears of it. Commands have one schema for good, or announcements themselves could not be read. A `control`
 * that is not there, or that this user may not read, tells of no schema: whoever can't do without it has opened it before. A user who may
 * not write to it writes all the same, since only members of older releases need to be told.
 */
export function withAnnouncements(
  codec: MessageCodec,
  parts: {
    readonly announce: (schema: AvroSchema) => Promise<void>
    readonly control: () => Promise<Pick<ControlLog, 'readToEnd'>>
    readonly observer: Observer
  },
): MessageCodec {
  const announced = new Map<PreparedType, () => Promise<void>>()
  const unannounced = new RecentSet(UNANNOUNCED_KEPT)
  const isUnheardOf = (fingerprint: string | undefined): fingerprint is string =>
    fingerprint !== undefined && codec.schemas.byFingerprint(fingerprint) === undefined && !unannounced.has(fingerprint)
  const hear = async (fingerprints: readonly string[], others: Promise<void> | undefined): Promise<void> => {
    const readToEnd = async (): Promise<void> => (await unlessUnreadable(parts.control()))?.readToEnd()
    await Promise.all([readToEnd(), others])
    for (const fingerprint of fingerprints) if (isUnheardOf(fingerprint)) unannounced.add(fingerprint)
  }
  const announce = async (schema: AvroSchema): Promise<void> => {
    try {
      await parts.announce(schema)
    } catch (error) {
      if (!isMillraceError(error, 'KAFKA_DENIED')) throw error
      parts.observer.emit('SchemaUnannounced', { schema: schema.name, error: error.message })
    }
  }
  return {
    ...codec,
    async prepare(topic, schema) {
      await codec.prepare(topic, schema)
      if (typeof schema !== 'string') return
      const announceOnce = announced.get(schema) ?? openedOnce(() => announce(codec.schemas.current(schema)))
      announced.set(schema, announceOnce)
      await announceOnce()
    },
    ensureSchemas(given) {
      const values = [...given]
      const fingerprints = values.map(namedFingerprint).filter(isUnheardOf)
      const others = codec.ensureSchemas(values)
      return fingerprints.length === 0 ? others : hear(fingerprints, others)
    },
  }
}

/** Shape: undefined where the topic is not there, or not for this user to read. */
async function unlessUnreadable<T>(opening: Promise<T>): Promise<T | undefined> {
  try {
    return await opening
  } catch (error) {
    if (isMillraceError(error, 'KAFKA_TOPIC_MISSING') || isMillraceError(error, 'KAFKA_DENIED')) return undefined
    throw error
  }
}

/**
 * Learns the schema that a command announces. Shape: commands about other things do nothing. Errors: none: one that can't
 * be used is told and passed over. It lies on the log for good and is read by every process, so it must not end any of them.
 */
export function learnAnnouncedSchema(
  { command, offset }: LoggedCommand,
  into: { readonly schemaStore: SchemaStore; readonly observer: Observer; readonly topic: string },
): void {
  if (command.kind !== 'announce' || parseSubject(command.subject)?.kind !== 'schema') return
  try {
    into.schemaStore.add(schemaText(commandPayload(command)))
  } catch (error) {
    into.observer.emit('CommandUndecodable', { topic: into.topic, offset, subject: command.subject, text: errorText(error) })
  }
}

function schemaText(payload: unknown): string {
  const text = typeof payload === 'object' && payload !== null ? (payload as { schema?: unknown }).schema : undefined
  if (typeof text !== 'string') throw new MillraceError('MESSAGE_INVALID', 'the payload has no text `schema`; expected the Avro schema')
  return text
}
