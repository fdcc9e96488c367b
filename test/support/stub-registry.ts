import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type AvroSchema, parseSchema } from '../../src/message/avro.ts'
import { compatibilityProblems } from '../../src/message/compatibility.ts'
import type { FetchJson } from '../../src/message/registry.ts'

/** A schema registry with the part of Confluent's interface that Millrace calls, answering as Confluent documents it. */
export interface StubRegistry {
  readonly url: string
  /** `METHOD path` of each request so far. */
  readonly requests: readonly string[]
  /** Puts a schema under an id of the test's choice. */
  put(id: number, schemaText: string, schemaType?: string): void
  /** Answers all further requests with this status; undefined: normally again. */
  failWith(status: number | undefined): void
  /** Refuses to tell the schema under that id, as one does that the caller may not read. */
  refuse(id: number): void
  subjects(): Readonly<Record<string, readonly number[]>>
  /** Levels that were set, by subject. */
  levels(): Readonly<Record<string, string>>
  /** Sets one as an operator would. */
  setLevel(subject: string, level: string): void
  close(): Promise<void>
}

export async function startStubRegistry(): Promise<StubRegistry> {
  const schemas = new Map<number, { text: string; type: string }>()
  const subjects = new Map<string, number[]>()
  const levels = new Map<string, string>()
  const requests: string[] = []
  const refused = new Set<number>()
  let failure: number | undefined

  const idOf = (schema: AvroSchema): number | undefined => [...schemas].find(([, { text }]) => text === schema.text)?.[0]

  const isIncompatible = (subject: string, schema: AvroSchema): boolean => {
    const older = (subjects.get(subject) ?? []).map((id) => parseSchema(schemas.get(id)?.text ?? ''))
    const level = levels.get(subject) ?? 'BACKWARD'
    const seen = level.endsWith('_TRANSITIVE') ? older : older.slice(-1)
    return compatibilityProblems(level.startsWith('FULL') ? 'FULL_TRANSITIVE' : 'BACKWARD_TRANSITIVE', schema, seen).length > 0
  }

  const config = (method: string, subject: string, body: { compatibility?: string }): [number, unknown] => {
    if (method === 'PUT') {
      levels.set(subject, body.compatibility ?? '')
      return [200, { compatibility: body.compatibility }]
    }
    const level = levels.get(subject)
    if (level === undefined) return [404, { error_code: 40408, message: 'Subject does not have subject-level compatibility configured' }]
    return [200, { compatibilityLevel: level }]
  }

  const answer = (method: string, path: string, body: { schema?: string; compatibility?: string }): [number, unknown] => {
    if (failure !== undefined) return [failure, { error_code: failure, message: 'told to fail' }]
    const byId = /^\/schemas\/ids\/(\d+)$/.exec(path)
    if (method === 'GET' && byId !== null) {
      // As Redpanda's does.
      if (Number(byId[1]) > 0x7fff_ffff) return [400, { error_code: 40002, message: 'Invalid parameter' }]
      if (refused.has(Number(byId[1]))) return [403, { error_code: 40301, message: 'User is denied operation Read' }]
      const found = schemas.get(Number(byId[1]))
      if (found === undefined) return [404, { error_code: 40403, message: 'Schema not found' }]
      return [200, { schema: found.text, ...(found.type === 'AVRO' ? {} : { schemaType: found.type }) }]
    }
    const ofConfig = /^\/config\/([^/]+)$/.exec(path)
    if (ofConfig !== null) return config(method, decodeURIComponent(ofConfig[1] ?? ''), body)
    const ofVersion = /^(\/compatibility)?\/subjects\/([^/]+)\/versions(?:\/(\d+|latest))?$/.exec(path)
    if (ofVersion !== null && (method === 'GET' || ofVersion[1] !== undefined)) {
      const known = subjects.get(decodeURIComponent(ofVersion[2] ?? ''))
      if (known === undefined) return [404, { error_code: 40401, message: 'Subject not found' }]
      if (method === 'POST')
        return [200, { is_compatible: !isIncompatible(decodeURIComponent(ofVersion[2] ?? ''), parseSchema(body.schema ?? '')) }]
      if (ofVersion[3] === undefined) return [200, known.map((_, index) => index + 1)]
      const stored = schemas.get(known[Number(ofVersion[3]) - 1] ?? 0)
      if (stored === undefined) return [404, { error_code: 40402, message: 'Version not found' }]
      return [200, { schema: stored.text, ...(stored.type === 'AVRO' ? {} : { schemaType: stored.type }) }]
    }
    const bySubject = /^\/subjects\/([^/]+)(\/versions)?$/.exec(path)
    if (method !== 'POST' || bySubject === null) return [404, { error_code: 404, message: 'no such path' }]
    const subject = decodeURIComponent(bySubject[1] ?? '')
    const schema = parseSchema(body.schema ?? '')
    const ids = subjects.get(subject) ?? []
    const known = idOf(schema)
    if (known !== undefined && ids.includes(known)) return [200, { id: known, subject, version: ids.indexOf(known) + 1 }]
    if (bySubject[2] === undefined) return [404, { error_code: ids.length === 0 ? 40401 : 40403, message: 'not found' }]
    if (isIncompatible(subject, schema)) return [409, { error_code: 409, message: 'incompatible' }]
    const id = known ?? Math.max(0, ...schemas.keys()) + 1
    schemas.set(id, { text: schema.text, type: 'AVRO' })
    subjects.set(subject, [...ids, id])
    return [200, { id }]
  }

  const answered = (method: string, path: string, body: { schema?: string }): [number, unknown] => {
    try {
      return answer(method, path, body)
    } catch (error) {
      return [422, { error_code: 42201, message: error instanceof Error ? error.message : 'invalid schema' }]
    }
  }

  const server = createServer(async (request, response) => {
    const method = request.method ?? 'GET'
    const path = (request.url ?? '').replace(/^\/base/, '')
    requests.push(`${method} ${path}`)
    const [status, json] = answered(method, path, await bodyOf(request))
    response.writeHead(status, { 'content-type': 'application/vnd.schemaregistry.v1+json' }).end(JSON.stringify(json))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`,
    requests,
    put: (id, text, type = 'AVRO') => schemas.set(id, { text, type }),
    failWith(status) {
      failure = status
    },
    refuse: (id) => refused.add(id),
    subjects: () => Object.fromEntries(subjects),
    levels: () => Object.fromEntries(levels),
    setLevel: (subject, level) => levels.set(subject, level),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** For tests alone: the product goes through its own HTTP client. */
export const testFetchJson: FetchJson = async (url, init) => {
  const response = await fetch(url, init)
  return { status: response.status, body: await response.json() }
}

async function bodyOf(request: IncomingMessage): Promise<{ schema?: string }> {
  let text = ''
  for await (const piece of request) text += piece
  return text === '' ? {} : JSON.parse(text)
}
