import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AvroSchema, parseSchema } from '../../../src/message/avro.ts'
import { compatibilityProblems } from '../../../src/message/compatibility.ts'
import { BUILT_IN_NAMES, createSchemaStore } from '../../../src/message/schema-store.ts'
import { generateTypes } from '../../../src/message/type-generator.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'
import { arbitraryValue, plain } from '../../support/arbitrary-avro.ts'

const folder = fileURLToPath(new URL('../../../schemas/', import.meta.url))
const read = (path: string): string => readFileSync(`${folder}${path}`, 'utf8')
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.avsc'))
const releases = readdirSync(`${folder}history`)

/** Every version of one message, the current one first. */
function versions(name: string): { path: string; schema: AvroSchema }[] {
  const paths = [`${name}.avsc`, ...files.filter((path) => path.startsWith('history/') && path.endsWith(`/${name}.avsc`))]
  return paths.map((path) => ({ path, schema: parseSchema(read(path)) }))
}

describe('the schemas', () => {
  it('have a doc on every field, type and enum', () => {
    const missing: string[] = []
    const visit = (node: unknown, path: string): void => {
      if (Array.isArray(node)) for (const item of node) visit(item, path)
      else if (typeof node === 'object' && node !== null) {
        const { type, name, fields, doc } = node as Record<string, unknown>
        const at = name === undefined ? path : `${path}.${name}`
        if (name !== undefined && (typeof doc !== 'string' || !doc.trim().endsWith('.'))) missing.push(at)
        for (const child of [type, fields, (node as { items?: unknown }).items, (node as { values?: unknown }).values]) {
          if (typeof child === 'object') visit(child, at)
        }
      }
    }
    for (const file of files) visit(JSON.parse(read(file)), file)
    expect(missing).toEqual([])
  })

  it('are optional by ["null", T] with default null alone, and have a default symbol on every enum', () => {
    const wrong: string[] = []
    const visit = (node: unknown, path: string): void => {
      if (Array.isArray(node)) {
        if (node.every((item) => typeof item !== 'object' || 'type' in item) && (node.length !== 2 || node[0] !== 'null')) wrong.push(path)
        for (const item of node) visit(item, path)
      } else if (typeof node === 'object' && node !== null) {
        const json = node as {
          type?: unknown
          name?: string
          fields?: { name: string; type: unknown; default?: unknown }[]
          items?: unknown
          values?: unknown
          default?: unknown
        }
        if (json.type === 'enum' && json.default === undefined) wrong.push(`${path} has no default symbol`)
        for (const field of json.fields ?? []) {
          if (Array.isArray(field.type) && field.default !== null) wrong.push(`${path}.${field.name} is optional without default null`)
          visit(field.type, `${path}.${field.name}`)
        }
        for (const child of [json.items, json.values, json.type]) if (typeof child === 'object') visit(child, path)
      }
    }
    for (const file of files) visit(JSON.parse(read(file)), file)
    expect(wrong).toEqual([])
  })

  it('are what the generated types were made of', () => {
    const generated = readFileSync(new URL('../../../src/message/generated/types.ts', import.meta.url), 'utf8')
    const names = ['UrlTask', 'Page', 'Outcome', 'RecordEnvelope', 'Command']
    expect(generateTypes(names.map((name) => JSON.parse(read(`${name}.avsc`))))).toBe(generated)
  })

  it('of a task need the url alone, with the defaults that newUrlTask gives', () => {
    const task = parseSchema(read('UrlTask.avsc'))
    const minimal = parseSchema(read('UrlTask.minimal.avsc'))
    const url = 'https://example.test/'
    expect(plain(minimal.decode(minimal.encode({ url }), 0, task))).toEqual(newUrlTask({ url }))
    expect(plain(task.decode(task.encode({ url })))).toEqual(newUrlTask({ url }))
  })
})

describe('every version of a message', () => {
  it.each(BUILT_IN_NAMES)('%s reads every other one, in what is said and in what is done', (name) => {
    const all = versions(name)
    expect(all.length).toBeGreaterThan(releases.length)
    for (const { path, schema } of all) {
      expect([
        path,
        compatibilityProblems(
          'FULL_TRANSITIVE',
          schema,
          all.map((other) => other.schema),
        ),
      ]).toEqual([path, []])
    }
    for (const writer of all) {
      for (const reader of all) {
        fc.assert(
          fc.property(arbitraryValue(writer.schema.root), (value) => {
            const bytes = writer.schema.encode(value)
            const read = writer.schema.decode(bytes, 0, reader.schema)
            expect(reader.schema.encode(read).length).toBeGreaterThan(0)
          }),
          { numRuns: 10 },
        )
      }
    }
  })

  it('is of one schema where it announces the others', () => {
    expect(new Set(versions('Command').map(({ schema }) => schema.fingerprint)).size).toBe(1)
  })

  it('comes from a store that knows the current and all released ones', () => {
    const store = createSchemaStore()
    for (const name of BUILT_IN_NAMES) {
      expect(store.current(name).name).toBe(`io.millrace.v1.${name}`)
      for (const { schema } of versions(name)) expect(store.byFingerprint(schema.fingerprint)?.canonical).toBe(schema.canonical)
    }
    expect(
      store
        .list()
        .filter(({ origin }) => origin === 'current')
        .map(({ schema }) => schema.name.split('.').at(-1)),
    ).toEqual([...BUILT_IN_NAMES])
  })
})

describe('a schema that is announced', () => {
  it('is known from then on, and a second time is the same one', () => {
    const store = createSchemaStore()
    const text = '{"type":"record","name":"io.millrace.records.X","fields":[]}'
    const added = store.add(text)
    expect(store.byFingerprint(added.fingerprint)).toBe(added)
    expect(store.add(text.replace('{', '{ '))).toBe(added)
    expect(store.list().at(-1)).toEqual({ schema: added, origin: 'announced' })
  })

  it('that reads the bytes of another one as other values is refused, by the field', () => {
    const store = createSchemaStore()
    const text = (type: string): string => `{"type":"record","name":"X","fields":[{"name":"a","type":${type}}]}`
    const decimal = (scale: number): string => text(`{"type":"bytes","logicalType":"decimal","precision":9,"scale":${scale}}`)
    store.add(decimal(2))
    expect(() => store.add(decimal(3))).toThrow('reads its bytes otherwise: a: a decimal of precision 9 and scale 3')
    store.add(text('"int"'))
    expect(() => store.add(text('{"type":"int","logicalType":"date"}'))).toThrow('a: a date')
  })

  it('that is none is refused', () => {
    expect(() => createSchemaStore().add('{}')).toThrow(expect.objectContaining({ code: 'SCHEMA_INVALID' }))
  })
})
