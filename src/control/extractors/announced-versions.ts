import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import type { ControlLog } from '../../kafka/control-log.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { commandPayload, parseSubject, subject } from '../../message/command.ts'
import { compatibilityProblems, meaningProblems } from '../../message/compatibility.ts'
import type { Command } from '../../message/generated/types.ts'
import { checkSubject, problemLines, type SubjectProblem } from '../../message/registration.ts'
import { subjectOf } from '../../message/subjects.ts'
import { recordsTopicOf } from '../../message/topics.ts'
import type { Runtime } from '../runtime/runtime.ts'

/** A version of an extractor that has run somewhere, live or not, as `control` tells it. */
export interface AnnouncedVersion {
  readonly version: number
  readonly definitionSha256: string | undefined
  readonly fingerprint: string | undefined
  readonly required: readonly string[]
  /** Of its records; undefined: the common one, or an older release announced it and did not tell. */
  readonly topic: string | undefined
  /** It has run beside live work alone, as a shadow or a candidate: no record of it is on a topic that live work writes to. */
  readonly onlyBeside: boolean
}

export function announcedVersions(control: Pick<ControlLog, 'withPrefix'>, name: string): AnnouncedVersion[] {
  return announcements(control, `extractor:${name}:`).filter((announced) => announced.name === name)
}

/** Shape: undefined where nobody has announced it. Not by way of all of them: it is asked for each of many dead letters. */
export function announcedVersion(control: Pick<ControlLog, 'get'>, name: string, version: number): AnnouncedVersion | undefined {
  const command = control.get(subject.extractor(name, version))
  return command === undefined ? undefined : announcementOf(command)
}

/** Those that later ones must be able to read. */
export function liveVersions(control: Pick<ControlLog, 'withPrefix'>, name: string): AnnouncedVersion[] {
  return announcedVersions(control, name).filter(({ onlyBeside }) => !onlyBeside)
}

/** Topics that extractors have named for their records, all versions together. */
export function announcedTopics(control: Pick<ControlLog, 'withPrefix'>): ReadonlySet<string> {
  return new Set(announcements(control, 'extractor:').flatMap(({ topic }) => topic ?? []))
}

/**
 * Where the records of an extractor lie: the topic of this version, then those of the versions that were live, which may have named other
 * ones. They are held against each other all the same: it is one extractor. Pure.
 */
export function topicsOfVersions(
  { topics }: Pick<Runtime, 'topics'>,
  extractor: Pick<LoadedExtractor, 'topic'>,
  known: readonly Pick<AnnouncedVersion, 'topic' | 'onlyBeside'>[],
): readonly string[] {
  return [...new Set([extractor, ...known.filter(({ onlyBeside }) => !onlyBeside)].map((version) => recordsTopicOf(version, topics)))]
}

type Announcement = AnnouncedVersion & { readonly name: string }

function announcements(control: Pick<ControlLog, 'withPrefix'>, prefix: string): Announcement[] {
  return control.withPrefix(prefix).flatMap((command) => announcementOf(command) ?? [])
}

function announcementOf(command: Command): Announcement | undefined {
  const about = parseSubject(command.subject)
  if (about?.kind !== 'extractor') return undefined
  const payload = (commandPayload(command) ?? {}) as Readonly<Partial<Record<keyof AnnouncedVersion | 'tried', unknown>>>
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const required = Array.isArray(payload.required) ? payload.required.filter((field) => typeof field === 'string') : []
  const { name, version } = about
  const [definitionSha256, fingerprint, topic] = [text(payload.definitionSha256), text(payload.fingerprint), text(payload.topic)]
  return { name, version, definitionSha256, fingerprint, required, topic, onlyBeside: payload.tried === true }
}

export interface UnreadableField {
  readonly path: string
  readonly reason: string
}

/**
 * What keeps a version from reading the records of those before it that were live, or makes any other, be it one that was never live,
 * read for it; each reason once, with the versions that it is about. Shape: none where it may go live.
 */
export function incompatibilities(
  { schemaStore }: Pick<Runtime, 'schemaStore'>,
  extractor: Pick<LoadedExtractor, 'schema' | 'version'>,
  known: readonly AnnouncedVersion[],
): readonly UnreadableField[] {
  const written = known.flatMap(({ version, fingerprint, onlyBeside }) => {
    const isOther = fingerprint !== undefined && fingerprint !== extractor.schema.fingerprint && !onlyBeside
    const schema = isOther ? schemaStore.byFingerprint(fingerprint) : undefined
    return schema === undefined ? [] : [{ version, schema }]
  })
  return [...unreadableFields(extractor, written), ...mistakenFields({ schemaStore }, extractor, known)]
}

/**
 * Fields whose values would be read as those of the schema that has its fingerprint already: readers know a schema by that alone, so
 * neither a higher version nor that the other one never went live helps.
 */
function mistakenFields(
  { schemaStore }: Pick<Runtime, 'schemaStore'>,
  { schema }: Pick<LoadedExtractor, 'schema'>,
  known: readonly AnnouncedVersion[],
): readonly UnreadableField[] {
  const first = schemaStore.byFingerprint(schema.fingerprint)
  if (first === undefined) return []
  const versions = known.filter(({ fingerprint }) => fingerprint === schema.fingerprint).map(({ version }) => version)
  const of = versions.length === 0 ? 'of a schema that was announced' : `of version ${versions.join(', ')}`
  return meaningProblems(schema, first).map(({ path, reason }) => ({
    path,
    reason: `${reason} (${of}), and the bytes of both look the same: give the field another name`,
  }))
}

/** As {@link incompatibilities}, of versions whose schemas are at hand; later ones count for nothing. Pure. */
export function unreadableFields(
  { schema, version }: Pick<LoadedExtractor, 'schema' | 'version'>,
  others: readonly Pick<LoadedExtractor, 'schema' | 'version'>[],
): readonly UnreadableField[] {
  const found = new Map<string, UnreadableField & { readonly versions: number[] }>()
  for (const before of others.toSorted((a, b) => a.version - b.version)) {
    if (before.version >= version) continue
    for (const { path, reason } of compatibilityProblems('BACKWARD_TRANSITIVE', schema, [before.schema])) {
      const same = found.get(`${path} ${reason}`)
      if (same === undefined) found.set(`${path} ${reason}`, { path, reason, versions: [before.version] })
      else same.versions.push(before.version)
    }
  }
  return [...found.values()].map(({ path, reason, versions }) => ({ path, reason: `${reason} (of version ${versions.join(', ')})` }))
}

/** What the registry has against a version: it may know of versions that this log does not, and has a word of its own. */
async function registryProblems(
  { registry, topics }: Pick<Runtime, 'registry' | 'topics'>,
  extractor: Pick<LoadedExtractor, 'topic' | 'schema'>,
): Promise<{ readonly under: string; readonly problems: readonly SubjectProblem[] }> {
  const { schema } = extractor
  const under = subjectOf(recordsTopicOf(extractor, topics), schema)
  if (registry === undefined) return { under, problems: [] }
  return { under, problems: (await checkSubject(registry, under, schema)).problems }
}

/**
 * What keeps a version from going live: the versions that ran on this log and, where a registry is configured, those that it knows.
 * Asks, and changes nothing. Shape: none where it may. Errors: as of the registry.
 */
export async function schemaProblems(
  runtime: Pick<Runtime, 'schemaStore' | 'registry' | 'topics'>,
  extractor: LoadedExtractor,
  known: readonly AnnouncedVersion[],
): Promise<readonly { readonly path: string; readonly reason: string }[]> {
  const { under, problems } = await registryProblems(runtime, extractor)
  const registered = problems.map(({ version, path, reason }) => ({
    path,
    reason: `${reason} (registered under ${under}${version === undefined ? '' : ` as version ${version}`})`,
  }))
  return [...incompatibilities(runtime, extractor, known), ...registered]
}

/** Errors: EXTRACTOR_INCOMPATIBLE naming field and reason, for a version that may not go live; as of the registry. */
export async function refuseIncompatible(
  runtime: Pick<Runtime, 'schemaStore' | 'registry' | 'topics'>,
  extractor: LoadedExtractor,
  known: readonly AnnouncedVersion[],
): Promise<void> {
  const { file, name, version } = extractor
  const problems = incompatibilities(runtime, extractor, known)
  if (problems.length > 0) {
    const reasons = problems.map(({ path, reason }) => `  ${path}: ${reason}`).join('\n')
    throw new MillraceError(
      'EXTRACTOR_INCOMPATIBLE',
      `${file}: version ${version} of ${name} can not read the records of older ones:\n${reasons}`,
      { context: { file } },
    )
  }
  const registered = await registryProblems(runtime, extractor)
  if (registered.problems.length === 0) return
  throw new MillraceError(
    'EXTRACTOR_INCOMPATIBLE',
    `${file}: version ${version} of ${name} may not follow what is registered under ${registered.under}:\n${problemLines(registered.problems)}`,
    { context: { file } },
  )
}
