import { errorText, isMillraceError, MillraceError } from '../kernel/errors.ts'

/** A schema registry with Confluent's interface, as far as messages need it. */
export interface RegistryPort {
  /** Text of the Avro schema; undefined where the registry has no such id. Errors: REGISTRY_UNREACHABLE, REGISTRY_REFUSED. */
  schemaById(id: number): Promise<string | undefined>
  /** Id of the schema under the subject, registered when it is new there. Errors: REGISTRY_UNREACHABLE, REGISTRY_REFUSED (incompatible). */
  idFor(subject: string, schemaText: string): Promise<number>
}

/** One HTTP request with a JSON answer; rejects for what the network does, never for a status. */
export type FetchJson = (
  url: string,
  init: { readonly method: 'GET' | 'POST'; readonly headers: Readonly<Record<string, string>>; readonly body?: string },
) => Promise<{ readonly status: number; readonly body: unknown }>

export interface RegistryOptions {
  /** With its path, where the registry is not at the root (`http://host:8080/apis/ccompat/v7`). */
  readonly url: string
  readonly fetchJson: FetchJson
  /** Sent with each request; for credentials. */
  readonly headers?: Readonly<Record<string, string>>
}

const CONTENT_TYPE = 'application/vnd.schemaregistry.v1+json'

export function createRegistryClient(options: RegistryOptions): RegistryPort {
  const base = options.url.replace(/\/+$/, '')
  const ask = async (method: 'GET' | 'POST', path: string, body?: unknown): Promise<{ status: number; body: Answer }> => {
    const headers = { accept: CONTENT_TYPE, ...(body === undefined ? {} : { 'content-type': CONTENT_TYPE }), ...options.headers }
    try {
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
      const answer = await options.fetchJson(`${base}${path}`, init)
      if (answer.status >= 500 || answer.status === 429) throw new Error(`it answered with status ${answer.status}`)
      return { status: answer.status, body: isObject(answer.body) ? answer.body : {} }
    } catch (cause) {
      if (isMillraceError(cause)) throw cause
      throw new MillraceError('REGISTRY_UNREACHABLE', `the schema registry ${base} did not answer ${method} ${path}: ${errorText(cause)}`, {
        cause,
      })
    }
  }
  return {
    async schemaById(id) {
      const path = `/schemas/ids/${id}`
      const { status, body } = await ask('GET', path)
      if (status === 404) return undefined
      // Registries leave the type out for Avro, or name it.
      const kind = body.schemaType ?? 'AVRO'
      if (status === 200 && kind === 'AVRO' && typeof body.schema === 'string') return body.schema
      if (status === 200 && kind !== 'AVRO') return undefined
      throw refused(base, `GET ${path}`, status, body)
    },
    async idFor(subject, schemaText) {
      const path = `/subjects/${encodeURIComponent(subject)}`
      const found = await ask('POST', path, { schema: schemaText })
      if (found.status === 200 && typeof found.body.id === 'number') return found.body.id
      if (found.status !== 404) throw refused(base, `POST ${path}`, found.status, found.body)
      const registered = await ask('POST', `${path}/versions`, { schema: schemaText })
      if (registered.status === 200 && typeof registered.body.id === 'number') return registered.body.id
      throw refused(base, `POST ${path}/versions`, registered.status, registered.body)
    },
  }
}

type Answer = Readonly<Record<string, unknown>>

function refused(base: string, what: string, status: number, body: Answer): MillraceError {
  const reason = typeof body.message === 'string' ? `: ${body.message}` : ''
  return new MillraceError('REGISTRY_REFUSED', `the schema registry ${base} answered ${what} with status ${status}${reason}`)
}

function isObject(value: unknown): value is Answer {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
