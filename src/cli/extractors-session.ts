import { existsSync } from 'node:fs'
import { checkExtractor, type TrialTarget, tryExtractor } from '../control/extractor-trial.ts'
import { Runtime } from '../control/runtime.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { CommandContext } from './context.ts'
import { renderTable, toJson } from './render.ts'

/** Every file is checked; one that is invalid makes the command end with 2. */
export async function checkFiles(context: CommandContext, files: readonly string[]): Promise<void> {
  const results: unknown[] = []
  for (const file of files) {
    const result = await checkExtractor(file)
    if (!result.ok) context.setExitCode(2)
    const problems = result.ok ? result.warnings : result.problems
    if (context.globals.json) {
      results.push({
        file,
        ok: result.ok,
        problems,
        ...(result.ok ? { name: result.extractor.name, version: result.extractor.version } : {}),
      })
      continue
    }
    for (const problem of problems) await context.out(problem)
    if (result.ok) await context.out(`${file}: ${result.extractor.name} version ${result.extractor.version} is valid`)
  }
  if (context.globals.json) await context.out(toJson(results))
}

/** `extractors test`: records, then each field with the node it came from, or why it is empty. */
export async function testOnPage(context: CommandContext, file: string, page: string, url: string, version: string): Promise<void> {
  const { config } = context.loadConfig()
  const report = await tryExtractor({
    file,
    target: targetOf(page, url, `${config['topics.prefix']}html`),
    config,
    version,
    clock: systemClock,
    openRuntime: () =>
      Runtime.open({ config, owner: 'millrace extractors test', clock: systemClock, observer: context.observer, signal: context.draining }),
    onOutput: (text) => context.note(text),
    signal: context.draining,
  })
  if (report.failure !== undefined) context.setExitCode(1)
  if (context.globals.json) {
    await context.out(toJson(report))
    return
  }
  if (!report.matches) context.note(`note: in a crawl the extractor would not read ${report.url}: its match does not fit`)
  for (const { key, record } of report.records) await context.out(`${key}  ${toJson(record.data)}`)
  if (report.failure !== undefined) await context.out(`dead letter: ${report.failure.message} (${report.failure.code})`)
  if (report.fields.length > 0) {
    const rows = report.fields.map(({ item, field, value, sources, why }) => {
      const from = sources.find(({ reason }) => reason === undefined)
      const place = from?.line === undefined ? '' : ` at ${from.line}:${from.column} ${from.path ?? ''}`
      return [String(item), field, value === null ? '' : toJson(value), why ?? `${from?.source ?? ''}${place}`]
    })
    await context.out('')
    await context.out(
      renderTable(
        [{ title: 'ITEM' }, { title: 'FIELD' }, { title: 'VALUE', flexible: true }, { title: 'FROM, OR WHY IT IS EMPTY', flexible: true }],
        rows,
      ),
    )
  }
  for (const note of report.notes) context.note(`note: ${toJson(note)}`)
}

function targetOf(page: string, url: string, html: string): TrialTarget {
  if (/^https?:\/\//i.test(page)) {
    if (!URL.canParse(page)) throw new MillraceError('USAGE', `${JSON.stringify(page)} is no URL`)
    return { kind: 'url', url: page }
  }
  const stored = /^(?:(.+):)?(\d+):(\d+)$/.exec(page)
  if (stored !== null && !existsSync(page)) {
    if (stored[1] !== undefined && stored[1] !== html && stored[1] !== 'html')
      throw new MillraceError('USAGE', `pages lie on ${html}, not on ${stored[1]}`)
    return { kind: 'stored', partition: Number(stored[2]), offset: BigInt(stored[3] ?? 0) }
  }
  if (!URL.canParse(url)) throw new MillraceError('USAGE', `--url: ${JSON.stringify(url)} is no URL`)
  return { kind: 'file', path: page, url }
}
