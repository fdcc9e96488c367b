import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { RecordOutput } from '../../../../src/control/records/record-output.ts'
import { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../../src/control/runtime/topics.ts'
import { publishCommand } from '../../../../src/kafka/control-log.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { parseSchema } from '../../../../src/message/avro.ts'
import { newCommand, subject } from '../../../../src/message/command.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'
import { brokers, uniqueName } from '../../../support/services.ts'

const schema = parseSchema(
  JSON.stringify({
    type: 'record',
    name: 'Thing',
    namespace: 'io.millrace.records',
    fields: [
      { name: 'crawlId', type: 'string' },
      { name: 'recordId', type: 'string' },
      { name: 'offset', type: 'int' },
    ],
  }),
)
let runtime: Runtime

beforeAll(async () => {
  const sets = [
    `brokers=${brokers().join(',')}`,
    `topics.prefix=${uniqueName('output')}.`,
    'topics.partitions.urls=1',
    'topics.partitions.records=1',
  ]
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: recordingObserver().observer })
  await applyTopics(runtime)
  const { codec, topics } = runtime
  const announced = { ...newCommand({ clock: systemClock, kind: 'announce', subject: subject.schema(schema.fingerprint), by: 'a test' }) }
  const command = { ...announced, payload: JSON.stringify({ schema: schema.text }) }
  await publishCommand(await runtime.producer(), topics.control, command, (given) => ({
    value: codec.encode('Command', given, topics.control),
  }))
})
afterAll(() => runtime.close())

describe('the records of a run', () => {
  it('are given once where a page was fetched again after a kill, and so extracted twice', async () => {
    const { topics, codec } = runtime
    const written: unknown[] = []
    const output = await RecordOutput.open(runtime, [topics.records], 'c')
    output.follow(async (record) => void written.push(record))
    const records = ['a', 'b', 'a', 'c', 'b'].map((recordId, offset) => ({ crawlId: 'c', recordId, offset }))
    const messages = records.map((record) => ({
      topic: topics.records,
      partition: 0,
      key: 'k',
      value: codec.encodeRecord(schema, record, topics.records),
    }))
    await (await runtime.producer()).send(messages)
    expect(await output.finish(new AbortController().signal)).toBe(3)
    expect(written).toEqual([records[0], records[1], records[3]])
  })
})
