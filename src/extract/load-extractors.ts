import { resolve } from 'node:path'
import { systemClock } from '../kernel/clock.ts'
import { errorText } from '../kernel/errors.ts'
import type { AvroSchema } from '../message/avro.ts'
import { bundleModule, CODE_FILE } from './code/bundle.ts'
import { BundleMap, problemAt } from './code/bundle-map.ts'
import { deriveSchema, embedSchema } from './derive-schema.ts'
import { ExtractionProcess } from './extraction-process.ts'
import type { CodeSource, ExtractorSource } from './extractor-source.ts'
import { definitionSha256, sha256OfJson } from './language/canonical-definition.ts'
import { type ExtractorDefinition, type LinksDefinition, type MatchDefinition, pascalName } from './language/definition.ts'
import { type ExtractorProblem, invalidExtractor } from './language/extractor-problem.ts'
import { readDefinition } from './language/read-definition.ts'
import { compileMatch, type MatchedPage } from './match.ts'
import { compileNative } from './native/compile-native.ts'
import type { ExtractorSummary } from './page-extraction.ts'
import { readExtractorFile } from './read-extractor-file.ts'

/** An extractor as the rest of Millrace knows it. Its code, where it has some, is never run in this process. */
export interface LoadedExtractor extends ExtractorSummary {
  readonly file: string
  readonly kind: ExtractorSource['kind']
  readonly source: ExtractorSource
  readonly match: MatchDefinition
  readonly matches: (page: MatchedPage) => boolean
  /** Links that the frontier follows on the pages that match; undefined: all. */
  readonly links: LinksDefinition | undefined
  /** Fields of its data that no record may lack. */
  readonly requiredFields: readonly string[]
  /** Why the native parser does not read pages for it; undefined: it does, where it is installed. */
  readonly notNative: string | undefined
  readonly warnings: readonly ExtractorProblem[]
  /** What is wrong with its name beside others, at the place where it stands. */
  readonly nameProblem: (message: string) => ExtractorProblem
}

/** Loading a code extractor is bounded as a page is. */
const DESCRIBE_MEMORY_BYTES = 268_435_456

/** Shape: in the order given, several versions of a name may be there. Errors: EXTRACTOR_INVALID, one line a problem. */
export async function loadExtractors(files: readonly string[], signal?: AbortSignal): Promise<readonly LoadedExtractor[]> {
  const loaded: LoadedExtractor[] = []
  for (const file of files) loaded.push(await loadExtractor(file, signal))
  const byTypeName = new Map<string, LoadedExtractor>()
  const byVersion = new Map<string, LoadedExtractor>()
  for (const extractor of loaded) {
    const { file, name, version } = extractor
    const same = byVersion.get(`${name}:${version}`)
    if (same !== undefined)
      throw invalidExtractor(file, [extractor.nameProblem(`has the name ${name} and version ${version}, which ${same.file} has already`)])
    byVersion.set(`${name}:${version}`, extractor)
    const typeName = pascalName(name)
    const other = byTypeName.get(typeName)
    if (other !== undefined && other.name !== name)
      throw invalidExtractor(file, [extractor.nameProblem(`has the schema name ${typeName}, which ${other.file} has already`)])
    byTypeName.set(typeName, extractor)
  }
  return loaded
}

/**
 * Errors: EXTRACTOR_INVALID with file, line and column of each problem; the reason of the signal, which ends a module that is being loaded.
 */
export async function loadExtractor(file: string, signal?: AbortSignal): Promise<LoadedExtractor> {
  signal?.throwIfAborted()
  return CODE_FILE.test(file) ? await loadModule(file, signal) : loadDefinition(file, readExtractorFile(file))
}

/** A declarative extractor of a text; `file` is its name in messages. Errors: EXTRACTOR_INVALID. */
export function loadDefinition(file: string, text: string): LoadedExtractor {
  const { definition, problems, nameProblem } = readDefinition(text)
  if (definition === undefined) throw invalidExtractor(file, problems)
  const { name, version, topic, match, links } = definition
  return {
    file,
    kind: 'declarative',
    name,
    version,
    topic,
    schema: deriveSchema(definition),
    definitionSha256: definitionSha256(definition),
    source: { kind: 'declarative', file, text },
    match,
    matches: compileMatch(name, match),
    links,
    requiredFields: definition.fields.filter(({ required }) => required).map(({ name: field }) => field),
    notNative: notNativeOf(definition),
    warnings: problems,
    nameProblem,
  }
}

async function loadModule(file: string, signal: AbortSignal | undefined): Promise<LoadedExtractor> {
  readExtractorFile(file)
  const { code, sourceMap, sourceSha256 } = await bundleModule(file)
  // Whole: a process that loads it has no working folder of ours to look from.
  const source: CodeSource = { kind: 'code', file: resolve(file), shown: file, code, sourceMap }
  const map = new BundleMap(source)
  const { name, version, description, topic, match, schema } = await ExtractionProcess.describe(source, {
    pageTimeoutMs: 0,
    pageMemoryBytes: DESCRIBE_MEMORY_BYTES,
    clock: systemClock,
    onOutput: () => undefined,
    ...(signal === undefined ? {} : { signal }),
  })
  return {
    file,
    kind: 'code',
    name,
    version,
    topic,
    schema: embedded(map, file, name, description, schema),
    definitionSha256: sha256OfJson({ kind: 'code', name, version, match, schema, sourceSha256 }),
    source,
    match,
    matches: compileMatch(name, match),
    links: undefined,
    requiredFields: requiredOf(schema),
    notNative: 'it is code',
    warnings: [],
    nameProblem: (message) => problemAt(map.property(['name']), message),
  }
}

function notNativeOf(definition: ExtractorDefinition): string | undefined {
  const compilation = compileNative(definition)
  return compilation.ok ? undefined : compilation.reason
}

/** Fields of a record schema that can't be null. */
function requiredOf(schema: string): string[] {
  const { fields = [] } = JSON.parse(schema) as { fields?: readonly { readonly name: string; readonly type: unknown }[] }
  return fields.filter(({ type }) => type !== 'null' && !(Array.isArray(type) && type.includes('null'))).map(({ name }) => name)
}

function embedded(map: BundleMap, file: string, name: string, description: string | undefined, schema: string): AvroSchema {
  try {
    return embedSchema(name, description, JSON.parse(schema))
  } catch (cause) {
    throw invalidExtractor(file, [problemAt(map.property(['schema']), `its schema can't be used: ${errorText(cause)}`)], cause)
  }
}
