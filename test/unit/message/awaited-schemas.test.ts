import { describe, expect, it } from 'vitest'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { parseSchema } from '../../../src/message/avro.ts'
import { AwaitedSchemas, type AwaitedSchemasOptions } from '../../../src/message/awaited-schemas.ts'
import { createMessageCodec } from '../../../src/message/codec.ts'
import { registryFrame } from '../../../src/message/framing.ts'
import type { OriginalMessage } from '../../../src/message/header-names.ts'
import type { RegistryPort } from '../../../src/message/registry.ts'
import { createSchemaStore } from '../../../src/message/schema-store.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const schema = parseSchema('{"type":"record","name":"Thing","namespace":"test","fields":[{"name":"title","type":"string"}]}')

/** A registry that has the ids that were registered, and the waits of one reader. */
function setUp(options: Partial<AwaitedSchemasOptions> = {}) {
  const clock = new ManualClock()
  const registered = new Set<number>()
  const registry = { schemaById: async (id: number) => (registered.has(id) ? schema.text : undefined) } as unknown as RegistryPort
  const codec = createMessageCodec({ schemaStore: createSchemaStore(), registry, clock })
  const schemas = new AwaitedSchemas({ codec, clock, observer: recordingObserver().observer, ...options })
  const { signal } = new AbortController()
  /** Whether the message has been waited for by then. */
  const learn = (id: number, header = 'test.Thing:1'): { isDone: boolean; done: Promise<void> } => {
    const value = registryFrame(id, schema.encode({ title: 'a' }))
    const headers = { 'millrace-schema': Buffer.from(header) }
    const message: OriginalMessage = { topic: 'html', partition: 0, offset: 0n, timestamp: 0, key: null, value, headers }
    const state = { isDone: false, done: Promise.resolve() }
    state.done = schemas.learn([message], signal).then(() => {
      state.isDone = true
    })
    return state
  }
  return { clock, registered, learn }
}

describe('waiting for schemas that a registry does not have yet', () => {
  it('waits once for an id, whatever its messages say in their headers', async () => {
    const { clock, learn } = setUp()
    const first = learn(7, 'test.Thing:1')
    await clock.advance(20_000)
    expect(first.isDone).toBe(false)
    await clock.advance(20_000)
    await first.done
    await clock.advance(600_000)
    const second = learn(7, 'test.Thing:2')
    await clock.advance(0)
    expect(second.isDone).toBe(true)
  })

  it('waits for other ids what is left of the wait under way, and for none for some minutes after one in vain', async () => {
    const { clock, learn } = setUp()
    const first = learn(1)
    await clock.advance(25_000)
    const second = learn(2)
    await clock.advance(10_000)
    expect([first.isDone, second.isDone]).toEqual([true, true])
    const third = learn(3)
    await clock.advance(0)
    expect(third.isDone).toBe(true)
    await clock.advance(300_000)
    const fourth = learn(4)
    await clock.advance(25_000)
    expect(fourth.isDone).toBe(false)
  })

  it('waits in full again where the schema came that was waited for', async () => {
    const { clock, registered, learn } = setUp()
    const first = learn(1)
    await clock.advance(20_000)
    registered.add(1)
    await clock.advance(10_000)
    expect(first.isDone).toBe(true)
    const second = learn(2)
    await clock.advance(25_000)
    expect(second.isDone).toBe(false)
  })

  it('ends with a registry that is away where whoever asks tries again by himself', async () => {
    const away = new MillraceError('REGISTRY_UNREACHABLE', 'away')
    const registry = { schemaById: () => Promise.reject(away) } as unknown as RegistryPort
    const codec = createMessageCodec({ schemaStore: createSchemaStore(), registry })
    await expect(setUp({ codec, whenAway: 'throw' }).learn(7).done).rejects.toBe(away)
  })
})
