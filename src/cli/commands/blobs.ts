import { Command } from 'commander'
import type { CommandDefinition } from '../command-definition.ts'

export const blobsCommand: CommandDefinition = (contextOf) => {
  const command = new Command('blobs').description('bodies that were too large for a message')
  command
    .command('collect')
    .description("show bodies older than html's retention and all pages, those of open dead letters too; --execute deletes them")
    .option('--execute', 'delete them')
    .addHelpText('after', '\nExample:\n  millrace blobs collect --execute')
    .action(async (flags: { execute?: boolean }, running: Command) => {
      const { collect } = await import('../blobs-session.ts')
      await collect(contextOf(running), flags.execute === true)
    })
  return command
}
