import { readdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { CONFIGURATION_FILE } from '../config/load.ts'
import type { Config } from '../config/options.ts'
import { ExtractWorker, type ShadowReplay } from '../extract/extract-worker.ts'
import { ExtractorHost, type ExtractorHostOptions, recordFraming } from '../extract/extractor-host.ts'
import { problemText } from '../extract/language/extractor-problem.ts'
import { type LoadedExtractor, loadExtractors } from '../extract/load-extractors.ts'
import { waitingLimits } from '../extract/partition-port.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { nearestName } from '../kernel/nearest.ts'
import { makeFolder } from '../machine/make-folder.ts'
import type { AvroSchema } from '../message/avro.ts'
import { subject } from '../message/command.ts'
import { notForRecords, recordsTopicOf } from '../message/topics.ts'
import { compileGlob } from '../url/glob.ts'
import { announce, announceSchema } from './announce.ts'
import { announcedVersion, announcedVersions, refuseIncompatible } from './announced-versions.ts'
import { closeReplay } from './replay-ledger.ts'
import type { Runtime } from './runtime.ts'

/**
 * Files of the configuration; a `*` in the name of the file stands for any characters, and never for the configuration itself, which may
 * lie beside them. Errors: CONFIG_INVALID for a pattern without files.
 */
export function extractorFiles(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => {
    if (!basename(pattern).includes('*')) return [resolve(pattern)]
    const folder = resolve(dirname(pattern))
    const matches = compileGlob(basename(pattern))
    const found = listFolder(folder)
      .filter((name) => matches(name) && name !== CONFIGURATION_FILE)
      .sort()
    if (found.length === 0) throw new MillraceError('CONFIG_INVALID', `extractors: no file matches ${pattern}`)
    return found.map((name) => join(folder, name))
  })
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (cause) {
    throw new MillraceError('CONFIG_INVALID', `extractors: can not read the folder ${folder}`, { cause })
  }
}

/** The extractors of the configuration, or of the files named. Errors: EXTRACTOR_INVALID, CONFIG_INVALID. */
export function loadConfigured(
  envelopeText: string,
  patterns: readonly string[],
  signal?: AbortSignal,
): Promise<readonly LoadedExtractor[]> {
  return loadExtractors(extractorFiles(patterns), envelopeText, signal)
}

/** What is doubtful in them, one line each. */
export function extractorWarnings(extractors: readonly LoadedExtractor[]): readonly string[] {
  return extractors.flatMap(({ file, warnings }) => warnings.map((warning) => problemText(file, warning)))
}

interface FindRequest {
  readonly patterns: readonly string[]
  readonly given: string
  /** The flag, for messages. */
  readonly option: string
  readonly signal?: AbortSignal
}

/** A file, or the name of an extractor of the configuration. Errors: USAGE naming the nearest one; as of loading. */
export async function findExtractor(envelopeText: string, { patterns, given, option, signal }: FindRequest): Promise<LoadedExtractor> {
  if (/\.(ya?ml|json|[cm]?[jt]s)$/.test(given)) {
    const [extractor] = await loadConfigured(envelopeText, [given], signal)
    if (extractor !== undefined) return extractor
  }
  const configured = await loadConfigured(envelopeText, patterns, signal)
  // Of several versions the one that is named, `book:2`, else the newest: it is the one to be looked at.
  const found = configured
    .filter(({ name, version }) => name === given || `${name}:${version}` === given)
    .toSorted((a, b) => b.version - a.version)[0]
  if (found !== undefined) return found
  const names = configured.map(({ name, version }) => `${name}:${version}`)
  const near = nearestName(given, [...names, ...configured.map(({ name }) => name)])
  throw new MillraceError(
    'USAGE',
    `${option}: there is no extractor ${given}${near === undefined ? '' : `; did you mean ${near}?`} (configured: ${names.join(', ') || 'none'}; a file works too)`,
  )
}

export function envelopeText(runtime: Pick<Runtime, 'schemaStore'>): string {
  return runtime.schemaStore.current('RecordEnvelope').text
}

/** Those of one extract group: all where the group has no name, and no other group asks for them. */
export function extractorsOf(
  { config }: Pick<Runtime, 'config'>,
  all: readonly LoadedExtractor[],
  group: string | undefined,
): readonly LoadedExtractor[] {
  const groups = config['extract.groups']
  if (group === undefined) {
    const elsewhere = new Set(Object.values(groups).flat())
    return all.filter(({ name }) => !elsewhere.has(name))
  }
  const names = groups[group]
  if (names === undefined)
    throw new MillraceError(
      'CONFIG_INVALID',
      `there is no extract group ${group}; extract.groups has ${Object.keys(groups).join(', ') || 'none'}`,
    )
  const missing = missingOf(group, names, all)
  if (missing !== undefined) throw new MillraceError('CONFIG_INVALID', missing)
  return all.filter(({ name }) => names.includes(name))
}

function missingOf(group: string, names: readonly string[], all: readonly LoadedExtractor[]): string | undefined {
  const missing = names.filter((name) => !all.some((extractor) => extractor.name === name))
  return missing.length === 0 ? undefined : `extract.groups.${group} names ${missing.join(', ')}, which no extractor file defines`
}

/** What groups of `extract.groups` lack among these: their workers can't start here, those of the others can. */
export function groupAdvice(config: Config, all: readonly LoadedExtractor[]): readonly string[] {
  return Object.entries(config['extract.groups']).flatMap(([group, names]) => {
    const missing = missingOf(group, names, all)
    return missing === undefined ? [] : [`${missing}: \`extract --group ${group}\` and \`run\` can't start with it`]
  })
}

/** Errors: CONFIG_INVALID where a group of `extract.groups` has an extractor that is not among these. */
export function requireGrouped(config: Config, all: readonly LoadedExtractor[]): void {
  for (const group of Object.keys(config['extract.groups'])) extractorsOf({ config }, all, group)
}

/**
 * The configuration for work with some extractors alone, named in place of those of the file: without the groups that have none of them,
 * whose pages are left to their own workers.
 */
export function narrowedTo(config: Config, extractors: readonly LoadedExtractor[]): Config {
  const names = new Set(extractors.map(({ name }) => name))
  const groups = Object.entries(config['extract.groups']).filter(([, members]) => members.some((name) => names.has(name)))
  return { ...config, 'extract.groups': Object.fromEntries(groups) }
}

/**
 * Id of the group that a replay in place of an extractor is of: the one of `extract.groups` that has it, else the common one. Never that of a
 * candidate, whose records are on a topic of their own. Errors: REPLAY_REFUSED for one that has not got it, or that is not there; USAGE where several have it and none is named.
 */
export function replayGroup(runtime: Pick<Runtime, 'config' | 'groups'>, extractor: LoadedExtractor, group: string | undefined): string {
  const { name } = extractor
  const having = groupsHaving(runtime, name)
  if (group === undefined) {
    if (having.length > 1)
      throw new MillraceError('USAGE', `--group: ${name} is in several extract groups; say which: ${having.join(', ')}`)
    return runtime.groups.extract(having[0])
  }
  if (having.includes(group)) return runtime.groups.extract(group)
  const where = having.length === 0 ? 'the group without a name has it: leave out --group' : `it is in ${having.join(', ')}`
  throw new MillraceError('REPLAY_REFUSED', `extract group ${group} does not have ${name}, by \`extract.groups\`; ${where}`)
}

/** Id of the group whose place a range goes by, for what changes nothing in it. Errors: USAGE for one that is not there; that of a candidate is none of the configuration. */
export function rangeGroup(runtime: Pick<Runtime, 'config' | 'groups'>, extractor: string, group: string | undefined): string {
  const names = Object.keys(runtime.config['extract.groups'])
  if (group !== undefined && !names.includes(group) && !/-v[1-9]\d*$/.test(group)) {
    const near = nearestName(group, names)
    const hint = near === undefined ? `extract.groups has ${names.join(', ') || 'none'}` : `did you mean ${near}?`
    throw new MillraceError('USAGE', `--group: there is no extract group ${group}; ${hint}`)
  }
  return runtime.groups.extract(group ?? groupsHaving(runtime, extractor)[0])
}

function groupsHaving({ config }: Pick<Runtime, 'config'>, extractor: string): readonly string[] {
  const groups = Object.entries(config['extract.groups'])
  return groups.filter(([, names]) => names.includes(extractor)).map(([group]) => group)
}

/**
 * Tells all members of these extractors: their record schemas first, so that any reader can decode what follows. Errors:
 * EXTRACTOR_INVALID where its topic is one of other messages, EXTRACTOR_VERSION_CHANGED for a definition that differs under a version that is known, EXTRACTOR_INCOMPATIBLE for a schema that
 * can't read what older versions wrote, naming the field. A version that is `tried` beside live work binds no later one, until it is live.
 */
export async function announceExtractors(
  runtime: Runtime,
  extractors: readonly LoadedExtractor[],
  purpose: 'live' | 'tried' = 'live',
): Promise<void> {
  const control = await runtime.control()
  await control.readToEnd()
  for (const extractor of extractors) {
    const { name, version, topic, definitionSha256, schema } = extractor
    const why = topic === undefined ? undefined : notForRecords(runtime.topics, topic)
    if (why !== undefined)
      throw new MillraceError('EXTRACTOR_INVALID', `records of ${name} version ${version} can't go to topic ${topic}: ${why}`)
    const known = announcedVersions(control, name)
    const same = known.find((announced) => announced.version === version)
    if (same !== undefined && same.definitionSha256 !== definitionSha256) throw changedDefinition(extractor)
    await refuseIncompatible(runtime, extractor, known)
    runtime.schemaStore.add(schema.text)
    keepSchemaFile(runtime, schema)
    // Anew: the registry was asked meanwhile. What an older release announced does not tell the topic, or has another schema for the same definition.
    const now = announcedVersion(control, name, version)
    const tried = purpose === 'tried' && now?.tried !== false
    if (now !== undefined && now.topic === topic && now.fingerprint === schema.fingerprint && now.tried === tried) continue
    await announceVersion(runtime, extractor, tried)
  }
}

/** A live worker of the same version may announce it at the same moment: it stays live then, whoever was last. */
async function announceVersion(runtime: Runtime, extractor: LoadedExtractor, tried: boolean): Promise<void> {
  const { name, version, topic, definitionSha256, schema, requiredFields } = extractor
  const about = subject.extractor(name, version)
  const required = requiredFields
  const payload = { definitionSha256, fingerprint: schema.fingerprint, required, ...(topic === undefined ? {} : { topic }) }
  const control = await runtime.control()
  let isLive = false
  const unsubscribe = control.subscribe(({ command }) => {
    if (command.subject === about && announcedVersion(control, name, version)?.tried === false) isLive = true
  })
  try {
    await claimVersion(runtime, extractor)
    await announceSchema(runtime, schema)
    await announce(runtime, { kind: 'announce', subject: about, payload: tried ? { ...payload, tried } : payload })
    if (tried && isLive) await announce(runtime, { kind: 'announce', subject: about, payload })
  } finally {
    unsubscribe()
  }
}

/** Two workers that start at the same moment both find the version unknown: the store lets one of two definitions in. */
async function claimVersion(runtime: Runtime, extractor: LoadedExtractor): Promise<void> {
  const state = await runtime.state()
  const name = `extractor:${extractor.name}:${extractor.version}`
  if (await state.writeValueOnce(name, extractor.definitionSha256)) return
  if ((await state.readValue(name)) !== extractor.definitionSha256) throw changedDefinition(extractor)
}

function changedDefinition({ name, version, file }: LoadedExtractor): MillraceError {
  return new MillraceError(
    'EXTRACTOR_VERSION_CHANGED',
    `${file}: extractor ${name} differs from what ran as version ${version} before; raise it to ${version + 1}`,
    {
      context: { file },
    },
  )
}

/** A reader without a registry finds every record schema as a file. */
function keepSchemaFile(runtime: Runtime, schema: AvroSchema): void {
  const folder = join(runtime.dataDir, 'schemas')
  makeFolder(folder)
  writeFileSync(join(folder, `${schema.name}.${schema.fingerprint}.avsc`), `${JSON.stringify(JSON.parse(schema.text), null, 2)}\n`)
}

export interface ExtractParts {
  readonly host: ExtractorHost
  readonly worker: ExtractWorker
}

/** Extraction in processes, within the limits of the configuration. Not started. */
export async function createExtractorHost(
  runtime: Runtime,
  extractors: readonly LoadedExtractor[],
  own: Pick<ExtractorHostOptions, 'domains' | 'framing' | 'onOutput' | 'observer'>,
): Promise<ExtractorHost> {
  const { config, clock } = runtime
  const blobs = await runtime.blobs()
  return new ExtractorHost({
    extractors,
    envelopeText: envelopeText(runtime),
    threads: config['extract.threads'],
    pageTimeoutMs: config['extract.pageTimeout'],
    pageMemoryBytes: config['extract.pageMemory'],
    parser: config['extract.parser'],
    ...(blobs === undefined ? {} : { blobs }),
    ...own,
    clock,
  })
}

/** Extract as one process: reads pages, writes records. Both parts are built, none is started. */
export async function createExtract(
  runtime: Runtime,
  extractors: readonly LoadedExtractor[],
  options: { groupId: string; shadow?: ShadowReplay; isTrial?: boolean; onOutput?: (text: string) => void },
): Promise<ExtractParts> {
  const { config, client, admin, codec, topics, clock, observer } = runtime
  const stageObserver = observer.child({ stage: 'extract' })
  const host = await createExtractorHost(runtime, extractors, {
    domains: config['metrics.domains'],
    framing: (extractor) => recordFraming(codec, extractor.schema, options.shadow?.recordsTopic ?? recordsTopicOf(extractor, topics)),
    ...(options.onOutput === undefined ? {} : { onOutput: options.onOutput }),
    observer: stageObserver,
  })
  const worker = new ExtractWorker({
    client,
    admin,
    groupId: options.groupId,
    topic: topics.html,
    recordsTopic: topics.records,
    deadLettersTopic: topics.deadLetters,
    extraction: host,
    codec,
    control: await runtime.control(),
    layout: await runtime.layout(),
    maxBatchBytes: runtime.maxBatchBytes,
    limits: waitingLimits(config['extract.threads']),
    settings: runtime.consumerSettings,
    onReplayDone: (replayId) => {
      closeReplay(runtime, options.groupId, replayId).catch((error: unknown) =>
        stageObserver.emit('ReplayCloseFailed', { replayId, error: errorText(error) }),
      )
    },
    ...(options.shadow === undefined ? {} : { shadow: options.shadow }),
    isTrial: options.isTrial === true,
    clock,
    observer: stageObserver,
  })
  return { host, worker }
}
