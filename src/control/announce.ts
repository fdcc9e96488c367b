import { publishCommand } from '../kafka/control-log.ts'
import { type CommandKind, newCommand } from '../message/command.ts'
import type { Command } from '../message/generated/types.ts'
import { commandAuthor, type Runtime } from './runtime.ts'

/** Writes one command to the control topic; resolves when it is stored and this process has read it back. Shape: as it stands there. */
export async function announce(runtime: Runtime, fields: { kind: CommandKind; subject: string; payload?: unknown }): Promise<Command> {
  const { codec, topics, clock, owner } = runtime
  await codec.prepare(topics.control, 'Command')
  const command = newCommand({ clock, ...fields, by: commandAuthor(owner) })
  await publishCommand(await runtime.producer(), topics.control, command, (value) => ({
    value: codec.encode('Command', value, topics.control),
    headers: codec.headers('Command'),
  }))
  const control = await runtime.control()
  await control.readToEnd()
  return command
}
