import type { Command } from 'commander'
import { buildProgram } from '../../src/cli/program.ts'
import { optionsTable } from '../../src/config/describe.ts'
import { ERRORS } from '../../src/kernel/errors.ts'
import { EVENTS } from '../../src/kernel/events.ts'
import { GAUGES } from '../../src/kernel/gauges.ts'

/** Tables of the documents that come from the code. They stand between `<!-- name -->` and `<!-- name end -->`. */
export interface DocumentTable {
  readonly file: string
  readonly name: string
  readonly table: () => string
}

export const DOCUMENT_TABLES: readonly DocumentTable[] = [
  { file: 'README.md', name: 'commands', table: commandsTable },
  { file: 'README.md', name: 'options', table: optionsTable },
  { file: 'src/README.md', name: 'errors', table: errorsTable },
  { file: 'src/README.md', name: 'metrics', table: metricsTable },
]

export interface DocumentedCommand {
  /** `replay plan`. */
  readonly name: string
  readonly description: string
  readonly flags: readonly string[]
  /** What `--help` prints. */
  readonly help: string
}

/** Commands that do something, in the order of `--help`; those that only hold others are left out. */
export function documentedCommands(): readonly DocumentedCommand[] {
  return leaves(program(), [])
}

export function globalFlags(): readonly string[] {
  return [...flagsOf(program()), '--help', '--version']
}

/** A program whose commands are looked at and never run. */
function program(): Command {
  return buildProgram(() => {
    throw new Error('no command is run here')
  })
}

function leaves(command: Command, path: readonly string[]): readonly DocumentedCommand[] {
  if (command.commands.length > 0) return command.commands.flatMap((inner) => leaves(inner, [...path, inner.name()]))
  return [{ name: path.join(' '), description: command.description(), flags: flagsOf(command), help: helpOf(command) }]
}

function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({
    writeOut: (part) => {
      text += part
    },
  })
  command.outputHelp()
  return text
}

function flagsOf(command: Command): readonly string[] {
  return command.options.flatMap(({ long }) => (long === undefined || long === null ? [] : [long]))
}

function commandsTable(): string {
  const rows = documentedCommands().map(({ name, description, flags }) => {
    const shown = flags.map((flag) => `\`${flag}\``).join(' ')
    return `| \`${name}\` | ${description} | ${shown} |`
  })
  return ['| command | does | flags |', '| --- | --- | --- |', ...rows].join('\n')
}

function errorsTable(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { disposition, exitCode, hint }]) => `| \`${code}\` | ${disposition} | ${exitCode} | ${hint} |`,
  )
  return ['| code | a stage then | exit code | what to do |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

function metricsTable(): string {
  const rows = Object.values(EVENTS).flatMap((event) => {
    if (!('metric' in event)) return []
    const { name, kind, labels, help } = event.metric
    return [`| \`millrace_${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(' ')} | ${help} |`]
  })
  for (const [name, { help, labels }] of Object.entries(GAUGES))
    rows.push(`| \`millrace_${name}\` | gauge | ${labels.map((label) => `\`${label}\``).join(' ')} | ${help} |`)
  return ['| metric | kind | labels | counts |', '| --- | --- | --- | --- |', ...[...new Set(rows)].sort()].join('\n')
}

/** The text between the markers of a table. Errors: throws where a marker is missing. */
export function tableIn(text: string, name: string): string {
  const [start, end] = markers(text, name)
  return text.slice(start, end).trim()
}

export function withTable(text: string, name: string, table: string): string {
  const [start, end] = markers(text, name)
  return `${text.slice(0, start)}\n\n${table}\n\n${text.slice(end)}`
}

function markers(text: string, name: string): readonly [number, number] {
  const open = `<!-- ${name} -->`
  const start = text.indexOf(open)
  const end = text.indexOf(`<!-- ${name} end -->`)
  if (start < 0 || end < start) throw new Error(`the markers of the table ${name} are missing`)
  return [start + open.length, end]
}
