import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseSchema } from '../../../src/message/avro.ts'
import { parseAvroSchema } from '../../../src/message/avro-schema.ts'
import { canonicalForm, crc64Avro } from '../../../src/message/canonical-form.ts'
import { readFraming, registryFrame, singleObjectFrame } from '../../../src/message/framing.ts'

const folder = new URL('../../../schemas/', import.meta.url)
const vectors = JSON.parse(readFileSync(new URL('vectors.json', folder), 'utf8'))

describe('fingerprints', () => {
  it('are CRC-64-AVRO: "int" gives 7275d51a3f395c8f', () => {
    expect(crc64Avro('"int"')).toBe('7275d51a3f395c8f')
  })

  it('are the published ones for the schemas of the package', () => {
    for (const { schema, file, fingerprint } of vectors.fingerprint) {
      const text = schema ?? readFileSync(new URL(file, folder), 'utf8')
      expect([file ?? schema, parseSchema(text).fingerprint]).toEqual([file ?? schema, fingerprint])
    }
  })
})

describe('the parsing canonical form', () => {
  it.each([
    ['{"type":"int","logicalType":"date"}', '"int"'],
    ['{"type":{"type":"string"}}', '"string"'],
    ['["null", {"type":"long","logicalType":"timestamp-millis"}]', '["null","long"]'],
    ['{"type":"fixed","size":2,"name":"F","namespace":"a.b","doc":"d","aliases":["x"]}', '{"name":"a.b.F","type":"fixed","size":2}'],
    ['{"name":"E","type":"enum","doc":"d","symbols":["A","B"],"default":"A"}', '{"name":"E","type":"enum","symbols":["A","B"]}'],
    ['{"items":{"values":"int","type":"map"},"type":"array"}', '{"type":"array","items":{"type":"map","values":"int"}}'],
    [
      '{"fields":[{"default":null,"type":["null","R"],"name":"next"}],"name":"R","namespace":"n","type":"record"}',
      '{"name":"n.R","type":"record","fields":[{"name":"next","type":["null","n.R"]}]}',
    ],
    [
      '{"type":"record","name":"a.R","fields":[{"name":"x","type":{"type":"enum","name":"E","symbols":["S"]}},{"name":"y","type":"E"},{"name":"z","type":{"type":"fixed","name":"b.F","size":1}}]}',
      '{"name":"a.R","type":"record","fields":[{"name":"x","type":{"name":"a.E","type":"enum","symbols":["S"]}},{"name":"y","type":"a.E"},{"name":"z","type":{"name":"b.F","type":"fixed","size":1}}]}',
    ],
  ])('of %s is %s', (text, canonical) => {
    expect(canonicalForm(parseAvroSchema(text).root)).toBe(canonical)
  })
})

describe('framing', () => {
  it('is as published, both ways', () => {
    for (const { file, value, singleObject, schemaId, registry } of vectors.framing) {
      const schema = parseSchema(readFileSync(new URL(file, folder), 'utf8'))
      const body = schema.encode(value)
      expect(singleObjectFrame(schema.fingerprint, body).toString('hex')).toBe(singleObject)
      expect(registryFrame(schemaId, body).toString('hex')).toBe(registry)
      const read = readFraming(Buffer.from(singleObject, 'hex'))
      expect(read).toEqual({ kind: 'single-object', fingerprint: schema.fingerprint, bodyStart: 10 })
      expect(schema.decode(Buffer.from(singleObject, 'hex'), read.bodyStart)).toEqual(value)
    }
    expect(vectors.framing.length).toBeGreaterThan(0)
  })

  it('C169: of Confluent is a zero and the id, big-endian', () => {
    const lamp = parseSchema('{"type":"record","name":"L","fields":[{"name":"n","type":"string"},{"name":"p","type":"string"}]}')
    expect(registryFrame(1, lamp.encode({ n: 'Lamp', p: '9.99' })).toString('hex')).toBe('0000000001084c616d7008392e3939')
    expect(readFraming(Buffer.from('00ffffffff', 'hex'))).toEqual({ kind: 'registry', schemaId: 0xffff_ffff, bodyStart: 5 })
  })
})
