import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AvroSchema, parseSchema } from '../../src/message/avro.ts'
import { createMessageCodec } from '../../src/message/codec.ts'
import type { CompatibilityLevel } from '../../src/message/compatibility.ts'
import { checkSubject, registerSchema } from '../../src/message/registration.ts'
import { createRegistryClient, type RegistryPort } from '../../src/message/registry.ts'
import { createSchemaStore } from '../../src/message/schema-store.ts'
import { newUrlTask } from '../../src/message/url-task.ts'
import { findApicurio } from '../support/apicurio.ts'
import { plain } from '../support/arbitrary-avro.ts'
import { uniqueName } from '../support/services.ts'
import { startStubRegistry, testFetchJson } from '../support/stub-registry.ts'

/** What Millrace asks of a registry, from a stub that answers as Confluent documents it, and from a registry of somebody else's. */
const apicurio = await findApicurio()

const PRICE = { type: 'bytes', logicalType: 'decimal', precision: 38, scale: 2 }
const field = (name: string, type: unknown, byDefault: unknown = null): object => ({ name, type: ['null', type], default: byDefault })
function book(fields: readonly object[], name = 'io.millrace.records.Book'): AvroSchema {
  return parseSchema(JSON.stringify({ type: 'record', name, fields }))
}
const V1 = book([field('title', 'string'), field('price', PRICE)])
const V2 = book([field('title', 'string'), field('price', PRICE), field('seen', { type: 'long', logicalType: 'timestamp-millis' })])
const OTHER_SCALE = book([field('title', 'string'), field('price', { ...PRICE, scale: 3 })])
const REQUIRED = book([field('title', 'string'), { name: 'isbn', type: 'string' }])

describe.each([
  ['a stub', async () => startStubRegistry().then((stub) => ({ url: stub.url, stop: () => stub.close() })), ''],
  ['Apicurio', async () => (apicurio.kind === 'none' ? undefined : apicurio.start()), apicurio.kind === 'none' ? apicurio.reason : ''],
] as const)('a schema registry: %s', (_name, open, reason) => {
  let registry: RegistryPort
  let stop = async (): Promise<void> => undefined
  beforeAll(async () => {
    const opened = reason === '' ? await open() : undefined
    if (opened === undefined) return
    stop = () => opened.stop()
    registry = createRegistryClient({ url: opened.url, fetchJson: testFetchJson })
  })
  afterAll(() => stop())

  const test = it.skipIf(reason !== '')
  const suffix = reason === '' ? '' : ` (skipped: ${reason})`
  const newSubject = (): string => `${uniqueName('t')}-io.millrace.records.Book`

  test(`of a subject that is not there tells nothing, and checks change nothing${suffix}`, async () => {
    const subject = newSubject()
    expect(await checkSubject(registry, subject, V1)).toEqual({ subject, verdict: 'first', problems: [] })
    expect(await registry.versions(subject)).toEqual([])
    expect(await registry.lookUp(subject, V1.text)).toBeUndefined()
    expect(await registry.isCompatible(subject, V1.text)).toBe(true)
    expect([undefined, 'NONE']).toContain(await registry.level(subject))
    expect(await registry.schemaById(2_000_000_000)).toBeUndefined()
  })

  test(`gives one id for one schema, and its text by the id${suffix}`, async () => {
    const subject = newSubject()
    const id = await registerSchema(registry, subject, V1)
    expect(await registerSchema(registry, subject, V1)).toBe(id)
    expect(await registry.lookUp(subject, V1.text)).toBe(id)
    expect(parseSchema((await registry.schemaById(id)) ?? '').fingerprint).toBe(V1.fingerprint)
    expect(await checkSubject(registry, subject, V1)).toEqual({ subject, verdict: 'registered', id, problems: [] })
  })

  test(`has the level that we set: transitive, full for our own messages${suffix}`, async () => {
    const [records, own] = [newSubject(), `${uniqueName('t')}-value`]
    await registerSchema(registry, records, V1)
    await registerSchema(registry, own, createSchemaStore().current('Outcome'))
    expect(await registry.level(records)).toBe('BACKWARD_TRANSITIVE')
    expect(await registry.level(own)).toBe('FULL_TRANSITIVE')
  })

  test(`keeps a level that somebody chose${suffix}`, async () => {
    const subject = newSubject()
    await registry.setLevel(subject, 'FULL_TRANSITIVE')
    await registerSchema(registry, subject, V1)
    expect(await registry.level(subject)).toBe('FULL_TRANSITIVE')
  })

  test(`keeps NONE where somebody chose that for what is there${suffix}`, async () => {
    const subject = newSubject()
    await registerSchema(registry, subject, V1)
    await registry.setLevel(subject, 'NONE' as CompatibilityLevel)
    await registerSchema(registry, subject, V2)
    expect(await registry.level(subject)).toBe('NONE')
  })

  test(`takes a version that reads the ones before, and lists them in order${suffix}`, async () => {
    const subject = newSubject()
    await registerSchema(registry, subject, V1)
    expect(await checkSubject(registry, subject, V2)).toEqual({ subject, verdict: 'compatible', problems: [] })
    await registerSchema(registry, subject, V2)
    const versions = await registry.versions(subject)
    expect(versions.map(({ version }) => version)).toEqual([1, 2])
    expect(versions.map(({ schemaText }) => parseSchema(schemaText ?? '').fingerprint)).toEqual([V1.fingerprint, V2.fingerprint])
  })

  test(`refuses one that does not, and we say which field of which version, and why${suffix}`, async () => {
    const subject = newSubject()
    await registerSchema(registry, subject, V1)
    await registerSchema(registry, subject, V2)
    const { verdict, problems } = await checkSubject(registry, subject, REQUIRED)
    expect(verdict).toBe('incompatible')
    expect(problems.map(({ version, path }) => [version, path])).toEqual([
      [1, 'isbn'],
      [2, 'isbn'],
    ])
    await expect(registerSchema(registry, subject, REQUIRED)).rejects.toMatchObject({
      code: 'SCHEMA_INCOMPATIBLE',
      message: expect.stringMatching(/version 1: isbn: the writer has no such field, and it has no default/),
    })
    // What the registry itself says when nobody has looked before.
    expect(await registry.isCompatible(subject, REQUIRED.text)).toBe(false)
    await expect(registry.register(subject, REQUIRED.text)).rejects.toMatchObject({
      code: 'SCHEMA_INCOMPATIBLE',
      message: expect.stringContaining('409'),
    })
    expect(await registry.versions(subject)).toHaveLength(2)
  })

  test(`is not asked to take a decimal of another scale, which some would${suffix}`, async () => {
    const subject = newSubject()
    await registerSchema(registry, subject, V1)
    const { problems } = await checkSubject(registry, subject, OTHER_SCALE)
    expect(problems).toEqual([{ version: 1, path: 'price', reason: expect.stringContaining('scale 3') }])
  })

  test(`refuses what is no schema, and says so${suffix}`, async () => {
    await expect(registry.register(newSubject(), '{"type":"record"}')).rejects.toMatchObject({
      code: 'REGISTRY_REFUSED',
      message: expect.stringContaining('422'),
    })
  })

  test(`lets messages be written in its framing and read by who has never seen them${suffix}`, async () => {
    const topic = uniqueName('urls')
    const codec = (port: RegistryPort) => createMessageCodec({ schemaStore: createSchemaStore(), registry: port })
    const [writer, reader] = [codec(registry), codec(registry)]
    await writer.prepare(topic, 'UrlTask')
    const task = newUrlTask({ url: 'https://example.test/é' })
    const bytes = writer.encode('UrlTask', task, topic)
    expect(bytes[0]).toBe(0)
    expect(bytes.readUInt32BE(1)).toBe(await registry.lookUp(`${topic}-value`, writer.schemas.current('UrlTask').text))
    await reader.ensureSchemas([bytes])
    expect(plain(reader.decode('UrlTask', bytes))).toEqual(task)
  })
})
