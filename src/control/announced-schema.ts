import type { LoggedCommand } from '../kafka/control-log.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import { commandPayload, parseSubject } from '../message/command.ts'
import type { SchemaStore } from '../message/schema-store.ts'

/**
 * Learns the schema of a record that a command announces. Shape: commands about other things do nothing. Errors: none: one that can't
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
