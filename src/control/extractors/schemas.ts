import type { Config } from '../../config/options.ts'
import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { MillraceError } from '../../kernel/errors.ts'
import type { AvroSchema } from '../../message/avro.ts'
import type { MessageType } from '../../message/codec.ts'
import { checkSubject, registerSchema, type SubjectCheck } from '../../message/registration.ts'
import type { RegistryPort } from '../../message/registry.ts'
import { createSchemaStore } from '../../message/schema-store.ts'
import { subjectOf } from '../../message/subjects.ts'
import { taskTopics, topicNames } from '../../message/topics.ts'
import { registryOf } from '../runtime/registry-client.ts'
import { type Runtime, requireTopics } from '../runtime/runtime.ts'
import { incompatibilities, liveVersions, unreadableFields } from './announced-versions.ts'

export interface CheckedSchema extends SubjectCheck {
  /** Full name. */
  readonly schema: string
  /** `NAME:VERSION` of the extractor whose records these are; undefined for messages of ours. */
  readonly extractor: string | undefined
}

export interface RegisteredSchema {
  readonly subject: string
  readonly schema: string
  readonly id: number
  readonly isNew: boolean
  /** In force for the subject; undefined where it is the registry's own. */
  readonly level: string | undefined
}

interface SubjectSchema {
  readonly subject: string
  readonly schema: AvroSchema
  readonly extractor: string | undefined
}

/** What is written under which subject: our own messages by topic, records by topic and extractor. */
function subjectsOf(config: Config, extractors: readonly LoadedExtractor[]): SubjectSchema[] {
  const store = createSchemaStore()
  const topics = topicNames(config['topics.prefix'])
  const own: readonly (readonly [string, MessageType])[] = [
    ...taskTopics(topics).map((topic) => [topic, 'UrlTask'] as const),
    [topics.html, 'Page'],
    [topics.outcomes, 'Outcome'],
  ]
  return [
    ...own.map(([topic, type]) => ({ topic, schema: store.current(type), extractor: undefined })),
    // Older versions first: a subject takes none that can't read what it holds already.
    ...inOrder(extractors).map(({ topic = topics.records, schema, name, version }) => ({ topic, schema, extractor: `${name}:${version}` })),
  ].map(({ topic, schema, extractor }) => ({ subject: subjectOf(topic, schema), schema, extractor }))
}

function inOrder(extractors: readonly LoadedExtractor[]): LoadedExtractor[] {
  return extractors.toSorted((one, other) => one.version - other.version)
}

/** Changes nothing. Errors: CONFIG_INVALID without a registry; as of the registry. */
export async function checkAgainstRegistry(config: Config, extractors: readonly LoadedExtractor[]): Promise<CheckedSchema[]> {
  const registry = requireRegistry(config)
  const checked: CheckedSchema[] = []
  for (const { subject, schema, extractor } of subjectsOf(config, extractors))
    checked.push({ ...(await checkSubject(registry, subject, schema)), schema: schema.name, extractor })
  const standing = new Set(checked.flatMap(({ extractor, verdict }) => (verdict === 'registered' ? [extractor] : [])))
  return amongEachOther(checked, extractors, (name, { version }) => standing.has(`${name}:${version}`))
}

/** Against the versions that have run on this broker, for who has no registry. */
export async function checkAgainstLog(runtime: Runtime, extractors: readonly LoadedExtractor[]): Promise<CheckedSchema[]> {
  await requireTopics(runtime, [runtime.topics.control])
  const control = await runtime.control()
  const hasRun = (name: string, { version, schema }: Pick<LoadedExtractor, 'version' | 'schema'>): boolean =>
    liveVersions(control, name).some((known) => known.version === version && known.fingerprint === schema.fingerprint)
  const checked = extractors.map((extractor): CheckedSchema => {
    const { name, schema, version, topic = runtime.topics.records } = extractor
    const known = liveVersions(control, name)
    const problems = incompatibilities(runtime, extractor, known).map((problem) => ({ ...problem, version: undefined }))
    const isFirst = known.every((announced) => announced.version >= version)
    const verdict = problems.length > 0 ? 'incompatible' : hasRun(name, extractor) ? 'registered' : isFirst ? 'first' : 'compatible'
    return { subject: subjectOf(topic, schema), schema: schema.name, extractor: `${name}:${version}`, verdict, problems }
  })
  return amongEachOther(checked, extractors, hasRun)
}

/**
 * The versions of one extractor that are checked together go live together: each is held against the older ones beside it too. Those that
 * are known have been compared already. Pure.
 */
export function amongEachOther(
  checked: readonly CheckedSchema[],
  extractors: readonly LoadedExtractor[],
  isKnown: (name: string, extractor: LoadedExtractor) => boolean,
): CheckedSchema[] {
  const byVersion = new Map<string, LoadedExtractor>(
    extractors.map((extractor) => [`${extractor.name}:${extractor.version}`, extractor] as const),
  )
  return checked.map((each) => {
    const own = each.extractor === undefined ? undefined : byVersion.get(each.extractor)
    if (own === undefined || each.verdict === 'registered') return each
    const { name, version } = own
    const older = extractors.filter((other) => other.name === name && other.version < version && !isKnown(name, other))
    if (older.length === 0) return each
    const problems = [...each.problems, ...unreadableFields(own, older).map((problem) => ({ ...problem, version: undefined }))]
    return { ...each, verdict: problems.length > 0 ? 'incompatible' : 'compatible', problems }
  })
}

/**
 * Puts all schemas into the registry and sets the levels of subjects that have none. Shape: `registered` is undefined where one may not
 * follow what is there; nothing was changed then. Errors: as `checkAgainstRegistry`.
 */
export async function putIntoRegistry(
  config: Config,
  extractors: readonly LoadedExtractor[],
): Promise<{ readonly checked: readonly CheckedSchema[]; readonly registered: readonly RegisteredSchema[] | undefined }> {
  const registry = requireRegistry(config)
  const checked = await checkAgainstRegistry(config, extractors)
  if (checked.some(({ verdict }) => verdict === 'incompatible')) return { checked, registered: undefined }
  const registered: RegisteredSchema[] = []
  for (const [index, { subject, schema }] of subjectsOf(config, extractors).entries()) {
    const id = await registerSchema(registry, subject, schema)
    const isNew = checked[index]?.verdict !== 'registered'
    registered.push({ subject, schema: schema.name, id, isNew, level: await registry.level(subject) })
  }
  return { checked, registered }
}

function requireRegistry(config: Config): RegistryPort {
  const registry = registryOf(config)
  if (registry === undefined) throw new MillraceError('CONFIG_INVALID', '`registry.url` is not set: there is no schema registry to ask')
  return registry
}
