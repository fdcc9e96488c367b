import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock } from '../kernel/clock.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { bundleModule, CODE_FILE } from './code/bundle.ts'
import { deriveSchema, embedSchema } from './derive-schema.ts'
import { ExtractionProcess } from './extraction-process.ts'
import type { ExtractorSource } from './extractor-source.ts'
import { definitionSha256, sha256OfJson } from './language/canonical-definition.ts'
import { type ExtractorDefinition, type LinksDefinition, type MatchDefinition, pascalName } from './language/definition.ts'
import { type ExtractorProblem, invalidExtractor } from './language/extractor-problem.ts'
import { readDefinition } from './language/read-definition.ts'
import { compileMatch, type MatchedPage } from './match.ts'
import { compileNative } from './native/compile-native.ts'
import type { ExtractorSummary } from './page-extraction.ts'

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
}

/** Loading a code extractor is bounded as a page is. */
const DESCRIBE_MEMORY_BYTES = 268_435_456

/** Shape: in the order given, several versions of a name may be there; envelopeText is schemas/RecordEnvelope.avsc. Errors: EXTRACTOR_INVALID, one line a problem. */
export async function loadExtractors(files: readonly string[], envelopeText: string): Promise<readonly LoadedExtractor[]> {
  const loaded: LoadedExtractor[] = []
  for (const file of files) loaded.push(await loadExtractor(file, envelopeText))
  const byTypeName = new Map<string, LoadedExtractor>()
  const byVersion = new Map<string, LoadedExtractor>()
  for (const extractor of loaded) {
    const { file, name, version } = extractor
    const same = byVersion.get(`${name}:${version}`)
    if (same !== undefined)
      throw new MillraceError(
        'EXTRACTOR_INVALID',
        `${file}:1:1 has the name ${name} and version ${version}, which ${same.file} has already`,
      )
    byVersion.set(`${name}:${version}`, extractor)
    const typeName = pascalName(name)
    const other = byTypeName.get(typeName)
    if (other !== undefined && other.name !== name)
      throw new MillraceError('EXTRACTOR_INVALID', `${file}:1:1 has the schema name ${typeName}, which ${other.file} has already`)
    byTypeName.set(typeName, extractor)
  }
  return loaded
}

/** Errors: EXTRACTOR_INVALID with file, line and column of each problem. */
export async function loadExtractor(file: string, envelopeText: string): Promise<LoadedExtractor> {
  return CODE_FILE.test(file) ? await loadModule(file, envelopeText) : loadDefinition(file, readText(file), envelopeText)
}

/** A declarative extractor of a text; `file` is its name in messages. Errors: EXTRACTOR_INVALID. */
export function loadDefinition(file: string, text: string, envelopeText: string): LoadedExtractor {
  const { definition, problems } = readDefinition(text)
  if (definition === undefined) throw invalidExtractor(file, problems)
  const { name, version, topic, match, links } = definition
  return {
    file,
    kind: 'declarative',
    name,
    version,
    topic,
    schema: deriveSchema(definition, envelopeText),
    definitionSha256: definitionSha256(definition),
    source: { kind: 'declarative', file, text },
    match,
    matches: compileMatch(name, match),
    links,
    requiredFields: definition.fields.filter(({ required }) => required).map(({ name: field }) => field),
    notNative: notNativeOf(definition),
    warnings: problems,
  }
}

async function loadModule(file: string, envelopeText: string): Promise<LoadedExtractor> {
  readText(file)
  const { code, sourceSha256 } = await bundleModule(file)
  // Whole: a process that loads it has no working folder of ours to look from.
  const source = { kind: 'code', file: resolve(file), code } as const
  const { name, version, description, topic, match, schema } = await ExtractionProcess.describe(source, {
    pageTimeoutMs: 0,
    pageMemoryBytes: DESCRIBE_MEMORY_BYTES,
    clock: systemClock,
    onOutput: () => undefined,
  })
  return {
    file,
    kind: 'code',
    name,
    version,
    topic,
    schema: embedded(file, name, description, schema, envelopeText),
    definitionSha256: sha256OfJson({ kind: 'code', name, version, match, schema, sourceSha256 }),
    source,
    match,
    matches: compileMatch(name, match),
    links: undefined,
    requiredFields: requiredOf(schema),
    notNative: 'it is code',
    warnings: [],
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

function embedded(
  file: string,
  name: string,
  description: string | undefined,
  schema: string,
  envelopeText: string,
): ExtractorSummary['schema'] {
  try {
    return embedSchema(name, description, JSON.parse(schema), envelopeText)
  } catch (cause) {
    throw new MillraceError('EXTRACTOR_INVALID', `${file}:1:1 its schema can't be used: ${errorText(cause)}`, { cause })
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new MillraceError('EXTRACTOR_INVALID', `${file}:1:1 the file can't be read: ${errorText(cause)}`, { cause })
  }
}
