import { describe, expect, it } from 'vitest'
import { RecordReader } from '../../../../src/control/records/record-reader.ts'
import type { KafkaMessage } from '../../../../src/kafka/message.ts'
import { parseSchema } from '../../../../src/message/avro.ts'
import { createMessageCodec } from '../../../../src/message/codec.ts'
import { registryFrame } from '../../../../src/message/framing.ts'
import type { RegistryPort } from '../../../../src/message/registry.ts'
import { createSchemaStore } from '../../../../src/message/schema-store.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

const schema = parseSchema('{"type":"record","name":"Thing","namespace":"io.millrace.records","fields":[{"name":"title","type":"string"}]}')
const ID = 7

function recordOf(title: string, headers: KafkaMessage['headers'] = { 'millrace-schema': Buffer.from('test.Thing:1') }): KafkaMessage {
  const value = registryFrame(ID, schema.encode({ title }))
  return { topic: 'records', partition: 0, offset: 5n, timestamp: 0, key: Buffer.from('k'), value, headers }
}

/** A registry that has the schema once it was told so, and a reader over it. */
function setUp(namespace = 'io.millrace.records') {
  const clock = new ManualClock()
  const { observer, count } = recordingObserver()
  const registry = { hasSchema: false, asked: 0 }
  const port = {
    async schemaById() {
      registry.asked += 1
      return registry.hasSchema ? JSON.stringify({ ...JSON.parse(schema.text), namespace }) : undefined
    },
  } as unknown as RegistryPort
  const codec = createMessageCodec({ schemaStore: createSchemaStore(), registry: port, clock })
  const reader = new RecordReader({ codec, clock, observer })
  return { clock, count, registry, reader, signal: new AbortController() }
}

describe('reading records with a schema registry', () => {
  it('passes over what others write to the topic by schemas of their own, and counts it', async () => {
    const { count, registry, reader } = setUp('com.other')
    registry.hasSchema = true
    await reader.learn([recordOf('theirs')])
    expect(await reader.read(recordOf('theirs'), { mustKnow: true })).toBeUndefined()
    expect([reader.undecodableCount, count('RecordUndecodable', { code: 'SCHEMA_INCOMPATIBLE' })]).toEqual([1, 1])
  })

  it('waits for one that does not have a schema yet, and says so', async () => {
    const { clock, count, registry, reader, signal } = setUp()
    const learnt = reader.learn([recordOf('one')], signal.signal)
    await clock.advance(5_000)
    expect(count('SchemaAwaited')).toBe(1)
    registry.hasSchema = true
    await clock.advance(10_000)
    expect(await learnt).toBe(true)
    expect((await reader.read(recordOf('one'), { mustKnow: true }))?.value).toEqual({ title: 'one' })
  })

  it('waits for half a minute, and not again for what it has waited for in vain', async () => {
    const { clock, reader, signal } = setUp()
    const learnt = reader.learn([recordOf('one')], signal.signal)
    await clock.advance(40_000)
    expect(await learnt).toBe(true)
    expect(() => reader.read(recordOf('one'), { mustKnow: true })).toThrow(expect.objectContaining({ code: 'MESSAGE_SCHEMA_UNKNOWN' }))
    expect(await reader.learn([recordOf('two')], signal.signal)).toBe(true)
    expect(clock.mono()).toBe(40_000)
  })

  it('ends its waiting with the signal', async () => {
    const { clock, reader, signal } = setUp()
    const learnt = reader.learn([recordOf('one')], signal.signal)
    await clock.advance(1_000)
    signal.abort(new Error('stopped'))
    expect(await learnt).toBe(false)
  })

  it('waits for nothing that a stranger wrote, nor without a signal', async () => {
    const { clock, reader, signal } = setUp()
    expect(await reader.learn([recordOf('foreign', {})], signal.signal)).toBe(true)
    expect(await reader.learn([recordOf('one')])).toBe(true)
    expect(clock.armedCount).toBe(0)
  })
})
