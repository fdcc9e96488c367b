import { envelopeText, loadConfigured } from '../control/configured-extractors.ts'
import { promote } from '../control/versions.ts'
import { MillraceError } from '../kernel/errors.ts'
import { parseSubject } from '../message/command.ts'
import { createSchemaStore } from '../message/schema-store.ts'
import type { CommandContext } from './context.ts'
import { counted, toJson } from './render.ts'
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
  const loaded = await loadConfigured(envelopeText({ schemaStore: createSchemaStore() }), config.extractors, context.draining)
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
    const { extractor, version, previous, topic, movedFrom, running, others } = report
    await context.out(`${extractor} version ${version} is promoted and run by ${counted(running.length, 'live worker')}`)
    if (movedFrom !== null)
      await context.out(`its records go to ${topic}; those of version ${previous} stay on ${movedFrom}, and no new ones come there`)
    for (const { pid, host, extractors } of others)
      await context.out(
        `process ${pid} on ${host} still runs version ${extractors[extractor]}: restart it with a file of version ${version} if it has none`,
      )
    if (previous !== null) await context.out(`back: millrace promote ${extractor}:${previous}`)
  })
}
