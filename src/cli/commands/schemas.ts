import { Command } from 'commander'
import type { CommandDefinition } from '../command-definition.ts'

export const schemasCommand: CommandDefinition = (contextOf) => {
  const check = 'would the schemas of extractors, and our own, be taken? ends with 2 when not'
  const command = new Command('schemas').description('Avro schemas of the messages')
  command
    .command('list')
    .description('all schemas that this installation can read, those of extractors too')
    .addHelpText('after', '\nExample:\n  millrace schemas list --json | jq -r .[].schema')
    .action(async (_: object, running: Command) => {
      const { listSchemas } = await import('../schemas-session.ts')
      await listSchemas(contextOf(running))
    })
  command
    .command('check')
    .description(check)
    .argument('[files...]', 'extractor files; those of the configuration where none is given')
    .addHelpText(
      'after',
      '\nAgainst the registry where `registry.url` is set, else against what has run on the broker.\n\nExample:\n  millrace schemas check book.yaml --set registry.url=http://registry:8081',
    )
    .action(async (files: string[], _: object, running: Command) => {
      const { checkSchemas } = await import('../schemas-session.ts')
      await checkSchemas(contextOf(running), files)
    })
  command
    .command('register')
    .description('put the schemas into the registry, with their compatibility levels')
    .argument('[files...]', 'extractor files; those of the configuration where none is given')
    .addHelpText('after', '\nExample:\n  millrace schemas register book.yaml --set registry.url=http://registry:8081')
    .action(async (files: string[], _: object, running: Command) => {
      const { registerSchemas } = await import('../schemas-session.ts')
      await registerSchemas(contextOf(running), files)
    })
  return command
}
