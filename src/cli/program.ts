import { Command, Option } from 'commander'
import { OPTIONS } from '../config/options.ts'
import { packageVersion } from '../control/package-version.ts'
import { MillraceError } from '../kernel/errors.ts'
import { type CommandDefinition, collect } from './command-definition.ts'
import { blobsCommand } from './commands/blobs.ts'
import { doctorCommand, downCommand, upCommand } from './commands/broker.ts'
import { completionCommand } from './commands/completion.ts'
import { configCommand } from './commands/config.ts'
import { consumeCommand } from './commands/consume.ts'
import { crawlsCommand } from './commands/crawls.ts'
import { deadLettersCommand } from './commands/dead-letters.ts'
import { exampleCommand } from './commands/example.ts'
import { extractorsCommand } from './commands/extractors.ts'
import { auditCommand, explainCommand, lineageCommand, statusCommand } from './commands/inspect.ts'
import { produceCommand } from './commands/produce.ts'
import { promoteCommand } from './commands/promote.ts'
import { replayCommand } from './commands/replay.ts'
import { runCommand } from './commands/run.ts'
import { schemasCommand } from './commands/schemas.ts'
import { sitesCommand } from './commands/sites.ts'
import { stageCommands } from './commands/stages.ts'
import { topicsCommand } from './commands/topics.ts'
import type { CommandContext, GlobalOptions } from './context.ts'
import { reportError } from './report-error.ts'

/** Makes the context once the global options are known. */
export type ContextOf = (globals: GlobalOptions) => CommandContext

/** In the order of the work. */
const COMMANDS: readonly CommandDefinition[] = [
  runCommand,
  produceCommand,
  ...stageCommands,
  consumeCommand,
  replayCommand,
  promoteCommand,
  extractorsCommand,
  topicsCommand,
  schemasCommand,
  deadLettersCommand,
  blobsCommand,
  sitesCommand,
  crawlsCommand,
  statusCommand,
  explainCommand,
  lineageCommand,
  auditCommand,
  doctorCommand,
  configCommand,
  upCommand,
  downCommand,
  exampleCommand,
  completionCommand,
]

/** With `json` what is wrong with the arguments is told as every other error is. */
export function buildProgram(contextOf: ContextOf, { json = false }: { readonly json?: boolean } = {}): Command {
  const program = new Command('millrace')
    .description('A Kafka data plane for scraping: URLs, raw HTML and records on topics of their own.')
    .version(packageVersion(), '-V, --version')
    .option('--config <file>', 'configuration file (default: millrace.yaml where there is one)')
    .option('--set <path=value>', 'any option of the configuration; may be repeated', collect, [])
    .option('--brokers <list>', 'Kafka brokers, host:port, comma-separated')
    .option('--redis <url>', 'Redis for state shared by several machines')
    .option('--data <folder>', `data folder (default: ${OPTIONS.data.default})`)
    .option('--json', 'one JSON document, or NDJSON for streams', false)
    .option('--quiet', 'no progress, no notes; errors alone', false)
    .option('--verbose', 'log lines of all levels, and stacks', false)
    .addOption(new Option('--no-color', 'no colours'))
    .showSuggestionAfterError()
    .configureHelp({ sortSubcommands: false, helpWidth: 80 })
    .exitOverride()
  for (const define of COMMANDS) {
    const command = define((running) => contextOf(running.optsWithGlobals() as GlobalOptions))
    inherit(command)
    if (json) tellAsJson(command)
    program.addCommand(command)
  }
  if (json) tellAsJson(program)
  return program
}

function tellAsJson(command: Command): void {
  command.configureOutput({
    outputError: (text, write) => {
      const failure = new MillraceError('USAGE', text.trim().replace(/^error: /, ''))
      write(`${reportError(failure, { json: true, verbose: false }).text}\n`)
    },
  })
  for (const inner of command.commands) tellAsJson(inner)
}

/**
 * Commander asks for options that must be there before it looks at those that it does not know: of `--extracto x` it would say that
 * `--extractor` is missing. So they are asked for when all others are known.
 */
function askForRequired(command: Command): void {
  const required = command.options.filter(({ mandatory }) => mandatory)
  for (const option of required) option.mandatory = false
  command.hook('preAction', (_, running) => {
    if (running !== command) return
    const missing = required.find((option) => command.getOptionValue(option.attributeName()) === undefined)
    if (missing !== undefined)
      command.error(`error: required option '${missing.flags}' not specified`, { code: 'commander.missingMandatoryOptionValue' })
  })
}

/** Sub-commands answer mistakes as the program does. */
function inherit(command: Command): void {
  command.exitOverride().showSuggestionAfterError().configureHelp({ sortSubcommands: false, helpWidth: 80 })
  if (command.commands.length === 0)
    command.addHelpText('after', '\nAnd the options of `millrace --help`: --config, --set, --brokers, --json, …')
  askForRequired(command)
  for (const inner of command.commands) inherit(inner)
}
