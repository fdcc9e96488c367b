import { hostname } from 'node:os'
import { type ControlLog, publishCommand } from '../../kafka/control-log.ts'
import type { MessageProducer } from '../../kafka/producer.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { AvroSchema } from '../../message/avro.ts'
import type { MessageCodec } from '../../message/codec.ts'
import { type CommandKind, newCommand, subject } from '../../message/command.ts'
import type { Command } from '../../message/generated/types.ts'
import type { TopicNames } from '../../message/topics.ts'

/** What is written to `control` by: a runtime has it. */
export interface Announcer {
  readonly codec: MessageCodec
  readonly topics: Pick<TopicNames, 'control'>
  readonly clock: Pick<Clock, 'now'>
  /** The command, as people know it. */
  readonly owner: string
  readonly producer: () => Promise<MessageProducer>
  readonly control: () => Promise<ControlLog>
}

/**
 * Writes one command to the control topic; resolves when it is stored and this process has read it back. Shape: as it stands there.
 * Errors: CONTROL_UNREADABLE for a subject whose last message can't be read here.
 */
export async function announce(
  by: Announcer,
  fields: { kind: CommandKind; subject: string; payload?: unknown },
  options: { signal?: AbortSignal } = {},
): Promise<Command> {
  const { codec, topics, clock, owner } = by
  const control = await by.control()
  control.requireReadable(fields.subject)
  const command = newCommand({ clock, ...fields, by: commandAuthor(owner) })
  const encode = (value: Command): { value: Buffer; headers: Record<string, string> } => ({
    value: codec.encode('Command', value, topics.control),
    headers: codec.headers('Command'),
  })
  await publishCommand(await by.producer(), topics.control, command, encode, options)
  await control.readToEnd()
  return command
}

/** Tells every reader a schema, before the first message that it writes; one that is told already is not told again. */
export async function announceSchema(by: Announcer, { name, fingerprint, text }: AvroSchema, signal?: AbortSignal): Promise<void> {
  const about = subject.schema(fingerprint)
  if ((await by.control()).get(about) !== undefined) return
  const fields = { kind: 'announce', subject: about, payload: { name, schema: text } } as const
  await announce(by, fields, signal === undefined ? {} : { signal })
}

/** Who writes a command: the command line and the machine. */
export function commandAuthor(owner: string): string {
  return `${owner}@${hostname()}`
}
