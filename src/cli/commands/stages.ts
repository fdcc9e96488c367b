import { Command } from 'commander'
import { packageVersion } from '../../control/package-version.ts'
import type { StageName } from '../../control/stages/stage-process.ts'
import { type CommandDefinition, collect, drainTimeoutOption } from '../command-definition.ts'

interface StageFlags {
  readonly group?: string
  readonly candidate?: boolean
  readonly extractor?: readonly string[]
  readonly drainTimeout: string
}

/** The stages as processes of their own: `fetch`, `extract`, `frontier`, `delay`. */
export const stageCommands: readonly CommandDefinition[] = [
  stageCommand('fetch', 'read URLs, ask the sites, write pages and outcomes'),
  stageCommand('extract', 'read pages, write records'),
  stageCommand('frontier', 'read pages, write the URLs of their links'),
  stageCommand('delay', 'send URLs back to their lane when they are due'),
]

function stageCommand(stage: StageName, description: string): CommandDefinition {
  return (contextOf) => {
    const command = new Command(stage)
      .description(`${description}; until Ctrl-C`)
      .addOption(drainTimeoutOption())
      .addHelpText('after', `\nExample:\n  millrace ${stage} --brokers kafka:9092 --redis redis://redis:6379`)
    if (stage === 'extract') command.option('--group <name>', 'a group of extract.groups; all other extractors where not given')
    if (stage === 'extract')
      command.option('--candidate', 'one extractor beside the live ones: group and topic of its own, from the first stored page')
    if (stage === 'extract' || stage === 'frontier') command.option('--extractor <file>', 'extractor file; may be repeated', collect, [])
    return command.action(async (flags: StageFlags, running: Command) => {
      const context = contextOf(running)
      const files = flags.extractor ?? []
      const loaded = context.loadConfig(files.length === 0 ? {} : { extractors: files })
      const { openStage } = await import('../stage-session.ts')
      await openStage(context, loaded.config, {
        stage,
        group: flags.group,
        candidate: flags.candidate === true,
        drainTimeout: flags.drainTimeout,
        version: packageVersion(),
      })
    })
  }
}
