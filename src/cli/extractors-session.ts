import { existsSync } from 'node:fs'
import type { Config } from '../config/options.ts'
import { Runtime } from '../control/runtime/runtime.ts'
import { checkExtractor, diffExtractors, type ExtractorDiff, type TrialOptions, tryExtractor } from '../control/trials/extractor-trial.ts'
import { watchExtractor } from '../control/trials/extractor-watch.ts'
import { pageUrl, type TrialTarget } from '../control/trials/trial-pages.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { CommandContext } from './context.ts'
import { counted, renderTable, toJson } from './render.ts'
import { singleLine } from './terminal-text.ts'

/** Every file is checked; one that is invalid makes the command end with 2. */
export async function checkFiles(context: CommandContext, files: readonly string[]): Promise<void> {
  const results: unknown[] = []
  const seen = new Map<string, string>()
  for (const file of files) {
    const result = await checkExtractor(file, context.draining)
    if (!result.ok) context.setExitCode(2)
    const problems = result.ok ? result.warnings : result.problems
    if (context.globals.json) {
      results.push({
        file,
        ok: result.ok,
        problems,
        ...(result.ok ? { name: result.extractor.name, version: result.extractor.version, parser: result.parser } : {}),
      })
      continue
    }
    for (const problem of problems) await context.out(problem)
    if (!result.ok) continue
    await context.out(`${file}: ${result.extractor.name} version ${result.extractor.version} is valid`)
    const { name, reason } = result.parser
    await context.out(`  parser: ${name}${reason === undefined ? '' : ` (${reason})`}`)
    const version = `${result.extractor.name} version ${result.extractor.version}`
    const other = seen.get(version)
    if (other !== undefined) context.note(`note: ${other} is ${version} as well; they can't run together`)
    seen.set(version, other ?? file)
  }
  if (context.globals.json) await context.out(toJson(results))
}

/** `extractors test`: records, then each field with the node it came from, or why it is empty. */
export async function testOnPage(context: CommandContext, file: string, page: string, url: string, version: string): Promise<void> {
  const { config } = context.loadConfig()
  const report = await tryExtractor({
    file,
    target: targetOf(page, url, htmlOf(config)),
    ...trialOf(context, config, version, 'test'),
  })
  if (report.failure !== undefined) context.setExitCode(1)
  if (context.globals.json) {
    await context.out(toJson(report))
    return
  }
  if (!report.matches) context.note(`note: in a crawl the extractor would not read ${report.url}: its match does not fit`)
  for (const { key, record } of report.records) await context.out(singleLine(`${key}  ${toJson(record.data)}`))
  if (report.records.length === 0 && report.failure === undefined) context.note('note: the page gives no record')
  if (report.failure !== undefined) await context.out(singleLine(`dead letter: ${report.failure.message} (${report.failure.code})`))
  if (report.fields.length > 0) {
    const rows = report.fields.map(({ item, field, value, sources, why }) => {
      const from = sources.find(({ reason }) => reason === undefined)
      const place = from?.line === undefined ? '' : ` at ${from.line}:${from.column} ${from.path ?? ''}`
      return [String(item), field, shown(value), why ?? `${from?.source ?? ''}${place}`]
    })
    await context.out('')
    await context.out(
      renderTable(
        [{ title: 'ITEM' }, { title: 'FIELD' }, { title: 'VALUE', flexible: true }, { title: 'FROM, OR WHY IT IS EMPTY', wraps: true }],
        rows,
      ),
    )
  }
  for (const { block, kind, detail } of report.notes)
    context.note(singleLine(`note: JSON-LD block ${block + 1} of the page is ${kind}: ${detail}`))
}

/** `extractors diff`: the fields that change from one file to the other, on the pages given. Ends with 1 where something does. */
export async function diffOnPages(
  context: CommandContext,
  files: { readonly before: string; readonly after: string },
  pages: readonly string[],
  url: string,
  version: string,
): Promise<void> {
  const { config } = context.loadConfig()
  const targets = pages.map((page) => targetOf(page, url, htmlOf(config)))
  const diff = await diffExtractors(files, targets, trialOf(context, config, version, 'diff'))
  if (diff.changes.length > 0 || diff.incompatible.length > 0) context.setExitCode(1)
  if (context.globals.json) {
    await context.out(toJson(diff))
    return
  }
  for (const [path, count] of [
    [files.before, diff.unmatched.before],
    [files.after, diff.unmatched.after],
  ] as const)
    if (count > 0)
      context.note(`note: in a crawl ${path} would not read ${count} of ${counted(diff.pages, 'page')}: its match does not fit`)
  for (const problem of diff.incompatible) await context.out(`the schema can not follow the other one: ${problem}`)
  await showChanges(context, diff, diff.pages)
}

/** `extractors watch`: at every save, the fields that changed on the pages given; until Ctrl-C. */
export async function watchOnPages(
  context: CommandContext,
  file: string,
  pages: readonly string[],
  url: string,
  version: string,
): Promise<void> {
  const { config } = context.loadConfig()
  const targets = pages.map((page) => targetOf(page, url, htmlOf(config)))
  let isFirst = true
  for await (const update of watchExtractor(file, targets, trialOf(context, config, version, 'watch'))) {
    if (context.globals.json) await context.out(toJson(update))
    else if (update.kind === 'problems') for (const problem of update.problems) await context.out(problem)
    else {
      if (isFirst) context.note(`watching ${file} on ${counted(update.pages, 'page')}; Ctrl-C ends it`)
      else context.note(`${file} was saved`)
      if (update.failures > 0)
        context.note(update.failures === 1 ? '1 page gives a dead letter' : `${update.failures} pages give a dead letter`)
      await showChanges(context, update, update.pages)
    }
    isFirst = false
  }
}

/** What a terminal holds; --json has all of them. */
const MOST_CHANGES = 40

async function showChanges(context: CommandContext, changes: Changes, pages: number): Promise<void> {
  const { records, fields } = changes
  const perField = Object.entries(fields).map(([field, count]) => `${field === '' ? 'whole records' : field} ${count}`)
  const what = perField.length === 0 ? 'nothing changed' : `changed: ${perField.join(', ')}`
  await context.out(`${counted(pages, 'page')}, ${counted(records.before, 'record')} before, ${records.after} after; ${what}`)
  if (changes.changes.length === 0) return
  const rows = changes.changes
    .slice(0, MOST_CHANGES)
    .map(({ url, key, field, before, after }) => [key === '' ? url : key, field ?? '', shown(before), shown(after)])
  await context.out(
    renderTable(
      [{ title: 'KEY', flexible: true }, { title: 'FIELD' }, { title: 'BEFORE', flexible: true }, { title: 'AFTER', flexible: true }],
      rows,
    ),
  )
  if (changes.changes.length > MOST_CHANGES) context.note(`and ${changes.changes.length - MOST_CHANGES} more; --json shows all`)
}

type Changes = Pick<ExtractorDiff, 'records' | 'fields' | 'changes'>

/** A money as people write it: as JSON it is wider than a column, and its end is the currency. */
function shown(value: unknown): string {
  if (value === null) return ''
  if (Array.isArray(value) && value.length > 0 && value.every(isMoney)) return value.map(shown).join(', ')
  return isMoney(value) ? `${value.amount} ${value.currency}` : toJson(value)
}

function isMoney(value: unknown): value is { readonly amount: string; readonly currency: string } {
  const { amount, currency, ...others } = (value ?? {}) as Readonly<Record<string, unknown>>
  return typeof amount === 'string' && typeof currency === 'string' && Object.keys(others).length === 0
}

function htmlOf(config: Config): string {
  return `${config['topics.prefix']}html`
}

function trialOf(context: CommandContext, config: Config, version: string, command: string): Omit<TrialOptions, 'file' | 'target'> {
  const owner = `millrace extractors ${command}`
  return {
    config,
    version,
    clock: systemClock,
    openRuntime: () => Runtime.open({ config, owner, clock: systemClock, observer: context.observer, signal: context.draining }),
    onOutput: (text) => context.note(text),
    signal: context.draining,
  }
}

function targetOf(page: string, url: string, html: string): TrialTarget {
  if (/^https?:\/\//i.test(page)) return { kind: 'url', url: pageUrl(page) }
  const stored = /^(?:(.+):)?(\d+):(\d+)(?:\.\.(\d+))?$/.exec(page)
  if (stored !== null && !existsSync(page)) {
    if (stored[1] !== undefined && stored[1] !== html && stored[1] !== 'html')
      throw new MillraceError('USAGE', `pages lie on ${html}, not on ${stored[1]}`)
    const until = stored[4] === undefined ? {} : { until: BigInt(stored[4]) }
    return { kind: 'stored', partition: Number(stored[2]), offset: BigInt(stored[3] ?? 0), ...until }
  }
  return { kind: 'file', path: page, url: pageUrl(url, '--url') }
}
