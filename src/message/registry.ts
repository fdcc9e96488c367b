import { errorText, isMillraceError, MillraceError } from '../kernel/errors.ts'
import type { CompatibilityLevel } from './compatibility.ts'

export interface SubjectVersion {
  readonly version: number
  /** Undefined for a schema of another kind than Avro. */
  readonly schemaText: string | undefined
}

/**
 * A schema registry with Confluent's interface, as far as messages need it. Errors of all calls: REGISTRY_UNREACHABLE, REGISTRY_REFUSED.
 */
export interface RegistryPort {
  /** For people, without credentials. */
  readonly location: string
  /** Text of the Avro schema; undefined where the registry has no such id. */
  schemaById(id: number): Promise<string | undefined>
  /** Id of the schema under the subject; undefined where it is not registered there. */
  lookUp(subject: string, schemaText: string): Promise<number | undefined>
  /**
   * Id of the schema under the subject, made when it is new there. Errors: SCHEMA_INCOMPATIBLE where the registry refuses it for those
   * before.
   */
  register(subject: string, schemaText: string): Promise<number>
  /** Oldest first; empty for a subject that is not there. */
  versions(subject: string): Promise<readonly SubjectVersion[]>
  /** The registry's own answer, against the latest version; true for a subject that is not there. */
  isCompatible(subject: string, schemaText: string): Promise<boolean>
  /**
   * The level that is set for the subject itself; undefined where none is. `NONE` may be that too: some registries answer so where nothing
   * is set.
   */
  level(subject: string): Promise<string | undefined>
  setLevel(subject: string, level: CompatibilityLevel): Promise<void>
}

type Method = 'GET' | 'POST' | 'PUT'

/** One HTTP request with a JSON answer; rejects for what the network does, never for a status. */
export type FetchJson = (
  url: string,
  init: { readonly method: Method; readonly headers: Readonly<Record<string, string>>; readonly body?: string },
) => Promise<{ readonly status: number; readonly body: unknown }>

export interface RegistryOptions {
  /** With its path, where the registry is not at the root (`http://host:8080/apis/ccompat/v7`). */
  readonly url: string
  readonly fetchJson: FetchJson
  /** Sent with each request; for credentials. */
  readonly headers?: Readonly<Record<string, string>>
}

const CONTENT_TYPE = 'application/vnd.schemaregistry.v1+json'

/** Answers differ between registries where the comments say so; what is accepted here was seen. */
export function createRegistryClient(options: RegistryOptions): RegistryPort {
  const base = options.url.replace(/\/+$/, '')
  const ask = async (method: Method, path: string, body?: unknown): Promise<{ status: number; body: unknown }> => {
    const headers = { accept: CONTENT_TYPE, ...(body === undefined ? {} : { 'content-type': CONTENT_TYPE }), ...options.headers }
    try {
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
      const answer = await options.fetchJson(`${base}${path}`, init)
      if (answer.status >= 500 || answer.status === 429) throw new Error(`it answered with status ${answer.status}`)
      return answer
    } catch (cause) {
      if (isMillraceError(cause)) throw cause
      throw new MillraceError('REGISTRY_UNREACHABLE', `the schema registry ${base} did not answer ${method} ${path}: ${errorText(cause)}`, {
        cause,
      })
    }
  }
  const refused = (what: string, status: number, body: unknown): MillraceError => {
    const { message } = fieldsOf(body)
    return new MillraceError(
      'REGISTRY_REFUSED',
      `the schema registry ${base} answered ${what} with status ${status}${typeof message === 'string' ? `: ${message}` : ''}`,
    )
  }
  const pathOf = (subject: string): string => `/subjects/${encodeURIComponent(subject)}`
  const versionOf = async (subject: string, version: number): Promise<SubjectVersion> => {
    const path = `${pathOf(subject)}/versions/${version}`
    const { status, body } = await ask('GET', path)
    if (status !== 200) throw refused(`GET ${path}`, status, body)
    return { version, schemaText: avroText(body) }
  }

  return {
    location: base,
    async schemaById(id) {
      const path = `/schemas/ids/${id}`
      const { status, body } = await ask('GET', path)
      if (status === 404) return undefined
      const { schema, error_code: errorCode } = fieldsOf(body)
      // Some refuse an id that can't be, where others have no such schema. A gateway that refuses everything has no code of its own.
      if ((status === 400 || status === 422) && typeof errorCode === 'number') return undefined
      if (status === 200 && typeof schema === 'string') return avroText(body)
      throw refused(`GET ${path}`, status, body)
    },
    async lookUp(subject, schemaText) {
      const { status, body } = await ask('POST', pathOf(subject), asAvro(schemaText))
      const { id } = fieldsOf(body)
      if (status === 200 && typeof id === 'number') return id
      if (status === 404) return undefined
      throw refused(`POST ${pathOf(subject)}`, status, body)
    },
    async register(subject, schemaText) {
      const path = `${pathOf(subject)}/versions`
      const { status, body } = await ask('POST', path, asAvro(schemaText))
      const { id } = fieldsOf(body)
      if (status === 200 && typeof id === 'number') return id
      const refusal = refused(`POST ${path}`, status, body)
      if (status === 409) throw new MillraceError('SCHEMA_INCOMPATIBLE', refusal.message)
      throw refusal
    },
    async versions(subject) {
      const path = `${pathOf(subject)}/versions`
      const { status, body } = await ask('GET', path)
      if (status === 404) return []
      if (status !== 200 || !Array.isArray(body)) throw refused(`GET ${path}`, status, body)
      const numbers = body.filter((version): version is number => Number.isInteger(version))
      const found: SubjectVersion[] = []
      for (const version of numbers.sort((one, other) => one - other)) found.push(await versionOf(subject, version))
      return found
    },
    async isCompatible(subject, schemaText) {
      const path = `/compatibility${pathOf(subject)}/versions/latest`
      const { status, body } = await ask('POST', path, asAvro(schemaText))
      const { is_compatible: isCompatible } = fieldsOf(body)
      if (status === 200 && typeof isCompatible === 'boolean') return isCompatible
      // Confluent's has nothing to compare with then; others say that it fits.
      if (status === 404) return true
      throw refused(`POST ${path}`, status, body)
    },
    async level(subject) {
      const path = `/config/${encodeURIComponent(subject)}`
      const { status, body } = await ask('GET', path)
      if (status === 404) return undefined
      // Some answer with the name that the request has.
      const { compatibilityLevel, compatibility } = fieldsOf(body)
      const level = compatibilityLevel ?? compatibility
      if (status !== 200 || typeof level !== 'string') throw refused(`GET ${path}`, status, body)
      return level
    },
    async setLevel(subject, level) {
      const path = `/config/${encodeURIComponent(subject)}`
      const { status, body } = await ask('PUT', path, { compatibility: level })
      if (status !== 200) throw refused(`PUT ${path} ${level}`, status, body)
    },
  }
}

/** The kind is named, though Avro is what counts without: some guess it from the text then, and guess wrong. */
function asAvro(schema: string): { schema: string; schemaType: 'AVRO' } {
  return { schema, schemaType: 'AVRO' }
}

/** Registries leave the type out for Avro, or name it. */
function avroText(body: unknown): string | undefined {
  const { schema, schemaType = 'AVRO' } = fieldsOf(body)
  return schemaType === 'AVRO' && typeof schema === 'string' ? schema : undefined
}

function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as Record<string, unknown>) : {}
}
