import type { Config } from '../config/options.ts'
import { loadConfigured } from '../control/extractors/configured-extractors.ts'
import {
  type CheckedSchema,
  checkAgainstLog,
  checkAgainstRegistry,
  putIntoRegistry,
  type RegisteredSchema,
} from '../control/extractors/schemas.ts'
import type { CommandContext } from './context.ts'
import { type Column, counted, renderTable, toJson } from './render.ts'
import { withRuntime } from './with-runtime.ts'

/** `schemas check`: for a build that must fail before a version goes live; nothing is changed. */
export async function checkSchemas(context: CommandContext, files: readonly string[]): Promise<void> {
  const { config } = context.loadConfig()
  const extractors = await extractorsOf(context, config, files)
  if (config['registry.url'] !== undefined) {
    await showChecked(context, await checkAgainstRegistry(config, extractors))
    return
  }
  await withRuntime(context, config, 'millrace schemas check', async (runtime) => {
    await showChecked(context, await checkAgainstLog(runtime, extractors))
  })
}

/** `schemas register`: all of them, or none where one may not follow what is there. */
export async function registerSchemas(context: CommandContext, files: readonly string[]): Promise<void> {
  const { config } = context.loadConfig()
  const { checked, registered } = await putIntoRegistry(config, await extractorsOf(context, config, files))
  if (registered === undefined) await showChecked(context, checked)
  else if (context.globals.json) await context.out(toJson(registered))
  else {
    const columns: readonly Column[] = [
      { title: 'SUBJECT', flexible: true },
      { title: 'ID', align: 'right' },
      { title: 'LEVEL' },
      { title: '' },
    ]
    await context.out(renderTable(columns, registered.map(registeredRow)))
  }
}

function registeredRow({ subject, id, level, isNew }: RegisteredSchema): string[] {
  return [subject, String(id), level ?? 'none', isNew ? 'new' : '']
}

async function extractorsOf(context: CommandContext, config: Config, files: readonly string[]) {
  const patterns = files.length === 0 ? config.extractors : files
  return loadConfigured(patterns, context.draining)
}

async function showChecked(context: CommandContext, checked: readonly CheckedSchema[]): Promise<void> {
  const bad = checked.filter(({ verdict }) => verdict === 'incompatible')
  if (bad.length > 0) context.setExitCode(2)
  if (context.globals.json) {
    await context.out(toJson(checked))
    return
  }
  const columns = [{ title: 'SUBJECT', flexible: true }, { title: 'EXTRACTOR' }, { title: 'VERDICT' }]
  if (checked.length > 0)
    await context.out(
      renderTable(
        columns,
        checked.map(({ subject, extractor, verdict }) => [subject, extractor ?? '', verdict]),
      ),
    )
  for (const { subject, extractor, problems } of bad) {
    await context.out(`${extractor ?? subject}:`)
    for (const { version, path, reason } of problems)
      await context.out(`  ${version === undefined ? '' : `version ${version}: `}${path === '' ? '' : `${path}: `}${reason}`)
  }
  await context.out(
    bad.length === 0
      ? `${counted(checked.length, 'schema')} may go live`
      : `${bad.length} of ${counted(checked.length, 'schema')} may not go live`,
  )
}

export async function listSchemas(context: CommandContext): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace schemas list', async (runtime) => {
    // Those that extractors announced are on control; a broker without our topics has none.
    if ((await runtime.admin.listTopics()).includes(runtime.topics.control)) await runtime.control()
    const schemas = runtime.schemaStore.list()
    if (context.globals.json) {
      await context.out(
        toJson(
          schemas.map(({ schema, origin }) => ({
            name: schema.name,
            fingerprint: schema.fingerprint,
            origin,
            schema: JSON.parse(schema.text),
          })),
        ),
      )
      return
    }
    await context.out(
      renderTable(
        [{ title: 'SCHEMA', flexible: true }, { title: 'FINGERPRINT' }, { title: 'ORIGIN' }],
        schemas.map(({ schema, origin }) => [schema.name, schema.fingerprint, origin]),
      ),
    )
  })
}
