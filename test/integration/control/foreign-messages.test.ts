import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { RecordConsumer } from '../../../src/control/records/record-consumer.ts'
import { RecordOutput } from '../../../src/control/records/record-output.ts'
import { Runtime } from '../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../src/control/runtime/topics.ts'
import { publishCommand } from '../../../src/kafka/control-log.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { parseSchema } from '../../../src/message/avro.ts'
import { newCommand, subject } from '../../../src/message/command.ts'
import { eventually } from '../../support/eventually.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { brokers, uniqueName } from '../../support/services.ts'

const schema = parseSchema(
  JSON.stringify({
    type: 'record',
    name: 'Thing',
    namespace: 'io.millrace.records',
    fields: [
      { name: 'crawlId', type: 'string' },
      { name: 'title', type: 'string' },
    ],
  }),
)
const seen = recordingObserver()
let runtime: Runtime

beforeAll(async () => {
  const sets = [
    `brokers=${brokers().join(',')}`,
    `topics.prefix=${uniqueName('foreign')}.`,
    'topics.partitions.urls=1',
    'topics.partitions.records=1',
  ]
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: seen.observer })
  await applyTopics(runtime)
})
afterAll(() => runtime.close())

async function announce(subjectText: string, payload: string): Promise<void> {
  const { codec, topics } = runtime
  const command = { ...newCommand({ clock: systemClock, kind: 'announce', subject: subjectText, by: 'a test' }), payload }
  await publishCommand(await runtime.producer(), topics.control, command, (given) => ({
    value: codec.encode('Command', given, topics.control),
  }))
}

async function put(value: Buffer, partition = 0): Promise<void> {
  await (await runtime.producer()).send([{ topic: runtime.topics.records, partition, key: 'k', value }])
}

describe('what strangers write', () => {
  it('does not end the control log where it announces schemas that are none', async () => {
    await announce(subject.schema('0000000000000001'), 'no JSON')
    await announce(subject.schema('0000000000000002'), '{"schema":"no schema"}')
    await announce(subject.schema('0000000000000003'), '{}')
    // Nor does one for a site, which workers read at each request.
    await announce(subject.site('shop.example'), 'no JSON')
    const control = await runtime.control()
    await announce('layout-of-mine', '"x"')
    await control.readToEnd()
    expect(control.get('layout-of-mine')?.payload).toBe('"x"')
    expect(control.state).toBe('running')
    expect(control.get(subject.site('shop.example'))).toBeUndefined()
    expect(seen.count('CommandUndecodable')).toBe(4)
  })

  it('is passed over among records, and a record whose schema was announced meanwhile is not', async () => {
    const { topics } = runtime
    const written: unknown[] = []
    const output = await RecordOutput.open(runtime, [topics.records], 'c')
    output.follow(async (record) => void written.push(record))
    const ending = new AbortController()
    const consumed: unknown[] = []
    const consuming = (async () => {
      const consumer = await RecordConsumer.start(runtime, { groupId: uniqueName('group'), signal: ending.signal })
      for await (const { record, commit } of consumer.records()) {
        consumed.push(record)
        commit()
      }
    })()
    await put(Buffer.from('rubbish'))
    await put(Buffer.from('c301ffffffffffffffff02', 'hex'))
    // Straight onto control, as another process does it.
    await announce(subject.schema(schema.fingerprint), JSON.stringify({ schema: schema.text }))
    await put(runtime.codec.encodeRecord(schema, { crawlId: 'c', title: 'one' }, topics.records))
    await eventually(() => consumed.length === 1 && written.length === 1)
    ending.abort()
    await consuming
    // Into a partition that was added meanwhile.
    const partition = (await runtime.admin.partitions(topics.records)).length
    await runtime.admin.addPartitions(topics.records, partition + 1)
    await put(runtime.codec.encodeRecord(schema, { crawlId: 'c', title: 'two' }, topics.records), partition)
    expect(await output.finish(new AbortController().signal)).toBe(2)
    expect(consumed).toEqual([{ crawlId: 'c', title: 'one' }])
    expect(written).toEqual([...consumed, { crawlId: 'c', title: 'two' }])
    expect(output.undecodableCount).toBe(2)
    expect(seen.events.filter(({ event }) => event === 'RecordUndecodable').map(({ fields }) => fields.code)).toEqual(
      expect.arrayContaining(['MESSAGE_FRAMING_UNKNOWN', 'MESSAGE_SCHEMA_UNKNOWN']),
    )
  })
})
