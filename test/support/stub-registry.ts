import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type AvroSchema, parseSchema } from '../../src/message/avro.ts'
import { compatibilityProblems } from '../../src/message/compatibility.ts'
import type { FetchJson } from '../../src/message/registry.ts'

/** A schema registry with the part of Confluent's interface that Millrace calls: ids, look-up, registration, BACKWARD_TRANSITIVE. */
export interface StubRegistry {
  readonly url: string
  /** `METHOD path` of each request so far. */
  readonly requests: readonly string[]
  /** Puts a schema under an id of the test's choice. */
  put(id: number, schemaText: string, schemaType?: string): void
  /** Answers all further requests with this status; undefined: normally again. */
  failWith(status: number | undefined): void
  subjects(): Readonly<Record<string, readonly number[]>>
  close(): Promise<void>
}

export async function startStubRegistry(): Promise<StubRegistry> {
  const schemas = new Map<number, { text: string; type: string }>()
  const subjects = new Map<string, number[]>()
  const requests: string[] = []
  let failure: number | undefined

  const idOf = (schema: AvroSchema): number | undefined => [...schemas].find(([, { text }]) => text === schema.text)?.[0]

  const answer = (method: string, path: string, body: { schema?: string }): [number, unknown] => {
    if (failure !== undefined) return [failure, { error_code: failure, message: 'told to fail' }]
    const byId = /^\/schemas\/ids\/(\d+)$/.exec(path)
    if (method === 'GET' && byId !== null) {
      const found = schemas.get(Number(byId[1]))
      if (found === undefined) return [404, { error_code: 40403, message: 'Schema not found' }]
      return [200, { schema: found.text, ...(found.type === 'AVRO' ? {} : { schemaType: found.type }) }]
    }
    const bySubject = /^\/subjects\/([^/]+)(\/versions)?$/.exec(path)
    if (method !== 'POST' || bySubject === null) return [404, { error_code: 404, message: 'no such path' }]
    const subject = decodeURIComponent(bySubject[1] ?? '')
    const schema = parseSchema(body.schema ?? '')
    const ids = subjects.get(subject) ?? []
    const known = idOf(schema)
    if (known !== undefined && ids.includes(known)) return [200, { id: known, subject, version: ids.indexOf(known) + 1 }]
    if (bySubject[2] === undefined) return [404, { error_code: ids.length === 0 ? 40401 : 40403, message: 'not found' }]
    const older = ids.map((id) => parseSchema(schemas.get(id)?.text ?? ''))
    if (compatibilityProblems('BACKWARD_TRANSITIVE', schema, older).length > 0) return [409, { error_code: 409, message: 'incompatible' }]
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
    subjects: () => Object.fromEntries(subjects),
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
