import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { MillraceError } from '../kernel/errors.ts'
import { type AvroSchema, parseSchema } from './avro.ts'
import { meaningProblems } from './compatibility.ts'

/** The messages of our own; each has one current schema in schemas/. */
export type BuiltInName = 'UrlTask' | 'Page' | 'Outcome' | 'Command' | 'RecordEnvelope'

export const BUILT_IN_NAMES: readonly BuiltInName[] = ['UrlTask', 'Page', 'Outcome', 'Command', 'RecordEnvelope']

export interface StoredSchema {
  readonly schema: AvroSchema
  /** current: what this version writes. old: in schemas/, read only. announced: added at run time. */
  readonly origin: 'current' | 'old' | 'announced'
}

/** All schemas that this process can read without a registry. */
export interface SchemaStore {
  /** The schema that this version writes and reads as. */
  current(name: BuiltInName): AvroSchema
  byFingerprint(fingerprint: string): AvroSchema | undefined
  /**
   * Adds a schema announced on `control`; one that is known stays as it was. Errors: SCHEMA_INVALID; for one that reads the bytes of a
   * known one as other values under the same fingerprint too, since a message can't tell which of them wrote it.
   */
  add(schemaText: string): AvroSchema
  /**
   * A schema that is told apart by another name than its fingerprint. Shape: the known one where that means the same. Errors:
   * SCHEMA_INVALID.
   */
  sameOrOwn(schemaText: string): AvroSchema
  /** Built-in ones first, then in the order added. */
  list(): readonly StoredSchema[]
}

/**
 * Shape: `folder` has the current schemas and, under history/, every released one. Errors: SCHEMA_INVALID, and the system's for unreadable
 * files.
 */
export function createSchemaStore(folder: string = defaultFolder()): SchemaStore {
  const stored = new Map<string, StoredSchema>()
  /**
   * By their texts: most that are read here or announced are those of releases before, letter by letter, and parsing them all takes a process
   * that starts some 20 ms.
   */
  const byText = new Map<string, AvroSchema>()
  const current = new Map<BuiltInName, AvroSchema>()
  const put = (text: string, origin: StoredSchema['origin']): AvroSchema => {
    const same = byText.get(text)
    if (same !== undefined) return same
    const schema = parseSchema(text)
    const known = stored.get(schema.fingerprint)
    if (known !== undefined) {
      const isSameShape = known.schema.canonical === schema.canonical
      const [problem] = isSameShape ? meaningProblems(schema, known.schema) : []
      if (isSameShape && problem === undefined) return known.schema
      const at = problem === undefined ? '' : `, and reads its bytes otherwise: ${problem.path}: ${problem.reason}`
      throw new MillraceError('SCHEMA_INVALID', `${schema.name} has the fingerprint ${schema.fingerprint} of ${known.schema.name}${at}`)
    }
    stored.set(schema.fingerprint, { schema, origin })
    byText.set(text, schema)
    return schema
  }
  for (const name of BUILT_IN_NAMES) current.set(name, put(readFileSync(`${folder}/${name}.avsc`, 'utf8'), 'current'))
  for (const file of schemaFiles(folder)) put(readFileSync(file, 'utf8'), 'old')
  return {
    current(name) {
      const schema = current.get(name)
      if (schema === undefined) throw new MillraceError('INTERNAL', `there is no built-in schema ${name}`)
      return schema
    },
    byFingerprint: (fingerprint) => stored.get(fingerprint)?.schema,
    add: (schemaText) => put(schemaText, 'announced'),
    sameOrOwn(schemaText) {
      const schema = parseSchema(schemaText)
      const known = stored.get(schema.fingerprint)?.schema
      return known?.canonical === schema.canonical && meaningProblems(schema, known).length === 0 ? known : schema
    },
    list: () => [...stored.values()],
  }
}

/** Text of the schema that every schema of records begins with; read once. */
export function recordEnvelope(): string {
  envelope ??= readFileSync(`${defaultFolder()}/RecordEnvelope.avsc`, 'utf8')
  return envelope
}

let envelope: string | undefined

/** Where the package keeps its schemas: beside src when run from source, beside dist when built. */
export function defaultFolder(): string {
  return fileURLToPath(new URL('../../schemas', import.meta.url))
}

/** Shape: paths of all .avsc files below the folder, sorted, so that every run reads them in the same order. */
function schemaFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.avsc'))
    .sort()
    .map((name) => `${folder}/${name}`)
}
