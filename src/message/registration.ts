import { isMillraceError, MillraceError } from '../kernel/errors.ts'
import { type AvroSchema, parseSchema } from './avro.ts'
import { compatibilityProblems } from './compatibility.ts'
import type { RegistryPort } from './registry.ts'
import { compatibilityOf } from './subjects.ts'

export interface SubjectProblem {
  /** Version of the subject that does not fit; undefined where the registry gave no reason. */
  readonly version: number | undefined
  /** Path of the field; empty for the whole. */
  readonly path: string
  readonly reason: string
}

export interface SubjectCheck {
  readonly subject: string
  /**
   * - registered: it stands there already
   * - first: the subject is not there, or has no version
   * - compatible, incompatible: with the versions before
   */
  readonly verdict: 'registered' | 'first' | 'compatible' | 'incompatible'
  readonly id?: number
  readonly problems: readonly SubjectProblem[]
}

/** May the schema follow those of the subject? Asks, and changes nothing. Errors: as of the registry. */
export async function checkSubject(registry: RegistryPort, subject: string, schema: AvroSchema): Promise<SubjectCheck> {
  const id = await registry.lookUp(subject, schema.text)
  if (id !== undefined) return { subject, verdict: 'registered', id, problems: [] }
  const versions = await registry.versions(subject)
  if (versions.length === 0) return { subject, verdict: 'first', problems: [] }
  // All of them, and by our own rules: registries give no reasons, or look at the latest alone.
  const problems = versions.flatMap(({ version, schemaText }) => versionProblems(schema, version, schemaText))
  if (problems.length === 0 && !(await registry.isCompatible(subject, schema.text)))
    problems.push({ version: undefined, path: '', reason: 'the registry finds it incompatible with the latest version' })
  return { subject, verdict: problems.length === 0 ? 'compatible' : 'incompatible', problems }
}

/**
 * Id of the schema under the subject, registered where it is new. Of a subject whose level nobody has set we set it first: what a registry
 * takes by default is too little, or nothing. A level that somebody chose stays; NONE does once the subject has a version, as before it may
 * be the registry's own. Errors: as of the registry; SCHEMA_INCOMPATIBLE naming the fields.
 */
export async function registerSchema(registry: RegistryPort, subject: string, schema: AvroSchema): Promise<number> {
  const check = await checkSubject(registry, subject, schema)
  if (check.id !== undefined) return check.id
  if (check.verdict === 'incompatible') throw incompatible(registry, schema, check)
  const level = await registry.level(subject)
  if (level === undefined || (level === 'NONE' && check.verdict === 'first')) await registry.setLevel(subject, compatibilityOf(schema))
  return registry.register(subject, schema.text)
}

function versionProblems(schema: AvroSchema, version: number, schemaText: string | undefined): SubjectProblem[] {
  if (schemaText === undefined) return [{ version, path: '', reason: 'is no Avro schema' }]
  try {
    const problems = compatibilityProblems(compatibilityOf(schema), schema, [parseSchema(schemaText)])
    return problems.map(({ path, reason }) => ({ version, path, reason }))
  } catch (error) {
    if (!isMillraceError(error, 'SCHEMA_INVALID')) throw error
    return [{ version, path: '', reason: `can not be used: ${error.message}` }]
  }
}

function incompatible(registry: RegistryPort, schema: AvroSchema, { subject, problems }: SubjectCheck): MillraceError {
  return new MillraceError(
    'SCHEMA_INCOMPATIBLE',
    `${schema.name} may not follow what is registered under ${subject} at ${registry.location}:\n${problemLines(problems)}`,
  )
}

/** One line each, indented. */
export function problemLines(problems: readonly SubjectProblem[]): string {
  return problems
    .map(
      ({ version, path, reason }) => `  ${version === undefined ? '' : `version ${version}: `}${path === '' ? '' : `${path}: `}${reason}`,
    )
    .join('\n')
}
