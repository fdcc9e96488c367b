import type { Command } from 'commander'
import { buildProgram } from '../../src/cli/program.ts'
import { optionsTable } from '../../src/config/describe.ts'
import { type Answer, readAnswer } from '../../src/fetch/answer.ts'
import type { HttpResult } from '../../src/fetch/http-exchange.ts'
import { paceReport } from '../../src/fetch/pace-report.ts'
import { FAILURE_REASONS } from '../../src/fetch/retry-class.ts'
import { ERRORS } from '../../src/kernel/errors.ts'
import { EVENTS } from '../../src/kernel/events.ts'
import { GAUGES } from '../../src/kernel/gauges.ts'
import type { FailureKind } from '../../src/state/state-store.ts'
import { httpResponse } from './http-response.ts'

/** Tables of the documents that come from the code. They stand between `<!-- name -->` and `<!-- name end -->`. */
export interface DocumentTable {
  readonly file: string
  readonly name: string
  readonly table: () => string
}

export const DOCUMENT_TABLES: readonly DocumentTable[] = [
  { file: 'README.md', name: 'commands', table: commandsTable },
  { file: 'README.md', name: 'answers', table: answersTable },
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

/** Statuses that a row names by themselves; every other one is as the last of its kind. */
const OTHERS = [
  { first: 500, last: 999, name: 'every other one from 500' },
  { first: 100, last: 499, name: 'every other one below 500' },
] as const
const COUNTS_AS: Readonly<Record<FailureKind, string>> = { connect: 'a connection that failed', timeout: 'a time-out', server: '5xx' }

/** What every status and every reason means: rows of those that mean the same. */
function answersTable(): string {
  const rows = new Map<string, string[]>()
  const add = (name: string, meaning: string): void => void rows.set(meaning, [...(rows.get(meaning) ?? []), name])
  for (const { first, last, name } of OTHERS) {
    const usual = meaningOf(httpResponse(last))
    const statuses = Array.from({ length: last - first + 1 }, (_, index) => first + index)
    for (const status of statuses) {
      const meaning = meaningOf(httpResponse(status))
      if (meaning !== usual) add(`\`${status}\``, meaning)
    }
    add(name, usual)
  }
  add('`challenge`', meaningOf(httpResponse(403, { 'cf-mitigated': 'challenge' })))
  add('`truncated`', meaningOf(httpResponse(200, {}, { truncated: 'network' })))
  for (const reason of FAILURE_REASONS) add(`\`${reason}\``, meaningOf({ kind: 'failure', reason, detail: '', totalMs: 0 }))
  const head = ['| status or reason | the URL is | its site backs off | counts for the breaker as |', '| --- | --- | --- | --- |']
  return [...head, ...[...rows].map(([meaning, names]) => `| ${names.join(', ')} | ${meaning} |`)].join('\n')
}

function meaningOf(result: HttpResult): string {
  const answer = readAnswer(result, { target: new URL('http://a.example/'), method: 'GET', headers: {}, body: null, chain: [], now: 0 })
  const isRetry = answer.kind === 'retry'
  const report = paceReport(result, isRetry ? answer.challengedBy : undefined)
  const failure = report.failure === undefined ? undefined : COUNTS_AS[report.failure]
  const countsAs = failure ?? (report.kind === 'none' ? 'nothing' : 'an answer')
  return `${taskText(answer)} | ${isRetry && answer.backsOff ? 'yes' : 'no'} | ${countsAs}`
}

function taskText(answer: Answer): string {
  switch (answer.kind) {
    case 'page':
      return 'fetched: a page'
    case 'retry': {
      const later = (answer.factor ?? 1) === 1 ? '' : `, ${answer.factor} times as late`
      return `retried${later}${answer.keep === undefined ? '' : '; what came is the page at last'}`
    }
    case 'failed':
    case 'refused':
      return answer.kind
    case 'hop':
      throw new Error(`an answer that leads to ${answer.target.href} means nothing of its own`)
  }
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
