import { promotions } from '../control/extractors/active-versions.ts'
import { loadConfigured } from '../control/extractors/configured-extractors.ts'
import { promote } from '../control/promote.ts'
import { requireOrMakeTopics } from '../control/runtime/topics.ts'
import { MillraceError } from '../kernel/errors.ts'
import { repeatedFlag } from '../kernel/shell-word.ts'
import { parseSubject } from '../message/command.ts'
import type { CommandContext } from './context.ts'
import { counted, renderTable, toJson } from './render.ts'
import { withRuntime } from './with-runtime.ts'

export interface PromoteFlags {
  readonly extractor?: readonly string[]
  readonly force?: string
}

export async function promoteVersion(context: CommandContext, what: string, flags: PromoteFlags): Promise<void> {
  const about = parseSubject(`extractor:${what}`)
  if (about?.kind !== 'extractor') throw new MillraceError('USAGE', `${JSON.stringify(what)} is not NAME:VERSION, like book:2`)
  const files = flags.extractor ?? []
  const { config } = context.loadConfig(files.length === 0 ? {} : { extractors: files })
  const loaded = await loadConfigured(config.extractors, context.draining)
  await withRuntime(context, config, 'millrace promote', async (runtime) => {
    const report = await promote(runtime, {
      loaded,
      name: about.name,
      version: about.version,
      force: flags.force,
      onWaiting: (text) => context.note(text),
      signal: context.draining,
    })
    if (report.others.length > 0) context.setExitCode(3)
    if (context.globals.json) {
      await context.out(toJson(report))
      return
    }
    const { extractor, version, previous, topic, movedFrom, running, others, notes } = report
    await context.out(`${extractor} version ${version} is promoted and run by ${counted(running.length, 'live worker')}`)
    for (const note of notes) await context.out(`on a sample of the stored pages ${note}`)
    if (movedFrom !== null)
      await context.out(`its records go to ${topic}; those of version ${previous} stay on ${movedFrom}, and no new ones come there`)
    for (const { pid, host, extractors } of others)
      await context.out(
        `process ${pid} on ${host} still runs version ${extractors[extractor]}: restart it with a file of version ${version} if it has none`,
      )
    if (previous !== null) await context.out(`back: ${backTo({ name: extractor, version: previous, files, loaded })}`)
  })
}

/** As it can be typed: a file that was not among those of this command has to be named. */
export function backTo({
  name,
  version,
  files,
  loaded,
}: {
  readonly name: string
  readonly version: number
  readonly files: readonly string[]
  readonly loaded: readonly { readonly name: string; readonly version: number }[]
}): string {
  const command = `millrace promote ${name}:${version}`
  const isThere = loaded.some((each) => each.name === name && each.version === version)
  return isThere ? `${command}${repeatedFlag('--extractor', files)}` : `${command} --extractor FILE (that of version ${version})`
}

/** Those that were promoted; of others the lowest version works. */
export async function listPromoted(context: CommandContext, flags: PromoteFlags): Promise<void> {
  if (flags.force !== undefined || (flags.extractor ?? []).length > 0)
    throw new MillraceError('USAGE', 'say which version is to be promoted, like book:2; without one the promoted versions are listed')
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace promote', async (runtime) => {
    await requireOrMakeTopics(runtime)
    const control = await runtime.control()
    await control.readToEnd()
    const promoted = promotions(control)
    if (context.globals.json) return context.out(toJson(promoted))
    if (promoted.length === 0) return context.note('no version is promoted: of several that are configured the lowest works')
    const rows = promoted.map(({ extractor, version, since }) => [extractor, String(version), new Date(since).toISOString()])
    await context.out(
      renderTable([{ title: 'EXTRACTOR', flexible: true }, { title: 'VERSION', align: 'right' }, { title: 'PROMOTED' }], rows),
    )
  })
}
