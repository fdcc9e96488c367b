import { Command } from 'commander'
import { packageVersion } from '../../control/package-version.ts'
import type { CommandDefinition } from '../command-definition.ts'

export const exampleCommand: CommandDefinition = (contextOf) =>
  new Command('example')
    .description('the main job on a built-in shop: crawl, records, a replay that asks for nothing')
    .addHelpText('after', '\nExample:\n  millrace example')
    .action(async (_: object, running: Command) => {
      const { showExample } = await import('../example-session.ts')
      await showExample(contextOf(running), packageVersion())
    })
