import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { ControlLog, type ControlLogOptions, publishCommand } from '../../../src/kafka/control-log.ts'
import { DurableProducer } from '../../../src/kafka/producer.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import type { Command } from '../../../src/message/generated/types.ts'
import { eventually } from '../../support/eventually.ts'
import { testAdmin, testClient, testTopic, textMessage } from '../../support/kafka.ts'
import { uniqueName } from '../../support/services.ts'

const client = testClient()
const admin = testAdmin(client)
const producer = new DurableProducer({ client, clock: systemClock, observer: silentObserver, maxBatchBytes: () => 1_048_588 })
const started = producer.start()
const logs: ControlLog[] = []

function open(topic: string, options: Partial<ControlLogOptions> = {}): ControlLog {
  const decode = (value: Buffer): Command => JSON.parse(value.toString()) as Command
  const log = new ControlLog({ client, clock: systemClock, observer: silentObserver, topic, decode, ...options })
  logs.push(log)
  return log
}

async function publish(topic: string, subject: string, payload: string): Promise<void> {
  await started
  const command: Command = { id: uniqueName('id'), kind: 'set', subject, payload, at: 0, by: 'test', replyTo: null }
  await publishCommand(producer, topic, command, (given) => ({ value: Buffer.from(JSON.stringify(given)) }))
}

afterEach(async () => {
  await Promise.all(logs.splice(0).map((log) => log.stop({ mode: 'drain', timeoutMs: 1_000 })))
})
afterAll(async () => {
  await producer.stop({ mode: 'drain', timeoutMs: 1_000 })
  await admin.close()
})

describe('control log', () => {
  it('knows the last command of each subject once it is ready', async () => {
    const topic = await testTopic(admin, 'control')
    await publish(topic, 'site:a.example', '1')
    await publish(topic, 'layout', 'x')
    await publish(topic, 'site:b.example', '1')
    await publish(topic, 'site:a.example', '2')
    const log = open(topic)
    await log.start()
    await log.ready
    expect(log.get('site:a.example')?.payload).toBe('2')
    expect(log.withPrefix('site:').map(({ subject, payload }) => [subject, payload])).toEqual([
      ['site:b.example', '1'],
      ['site:a.example', '2'],
    ])
    expect(log.get('replay:none')).toBeUndefined()
  })

  it('decodes a command only when what it needs to be read has been learnt', async () => {
    const topic = await testTopic(admin, 'control')
    await publish(topic, 'layout', 'x')
    const learnt = new Set<string>()
    const log = open(topic, {
      learn: async (values) => {
        await new Promise((resolve) => setImmediate(resolve))
        for (const value of values) learnt.add(String(value))
      },
      decode: (value) => {
        if (!learnt.has(value.toString())) throw new Error('unknown schema')
        return JSON.parse(value.toString()) as Command
      },
    })
    await log.start()
    await log.ready
    expect(log.get('layout')?.payload).toBe('x')
    expect(log.undecodableCount).toBe(0)
  })

  it('is ready on an empty topic', async () => {
    const log = open(await testTopic(admin, 'control'))
    await log.start()
    await log.ready
    expect(log.withPrefix('')).toEqual([])
  })

  it('tells listeners of what comes later, and has read it when asked to read to the end', async () => {
    const topic = await testTopic(admin, 'control')
    const log = open(topic)
    await log.start()
    await log.ready
    const heard: string[] = []
    const end = log.subscribe(({ command }) => heard.push(command.payload))
    await publish(topic, 'layout', '1')
    await publish(topic, 'layout', '2')
    await log.readToEnd()
    expect([log.get('layout')?.payload, heard, log.position]).toEqual(['2', ['1', '2'], 2n])
    end()
    await publish(topic, 'layout', '3')
    await log.readToEnd()
    expect([log.get('layout')?.payload, heard.length]).toEqual(['3', 2])
  })

  it('passes over what is no command and counts it', async () => {
    const topic = await testTopic(admin, 'control')
    await started
    await producer.send([textMessage(topic, 0, 'Hello'), { topic, partition: 0, key: 'layout', value: null }])
    await publish(topic, 'layout', 'fine')
    const log = open(topic)
    await log.start()
    await log.ready
    expect([log.get('layout')?.payload, log.undecodableCount]).toEqual(['fine', 1])
  })

  it('lets nothing be written over what only others can read, and over what nobody can', async () => {
    const topic = await testTopic(admin, 'control')
    await started
    const log = open(topic, {
      decode: (value) => {
        if (String(value) === 'newer') throw new MillraceError('MESSAGE_SCHEMA_UNKNOWN', 'of a newer release')
        return JSON.parse(String(value)) as Command
      },
    })
    await publish(topic, 'layout', '1')
    const keyed = (key: string, text: string) => ({ ...textMessage(topic, 0, text), key })
    await producer.send([keyed('layout', 'newer'), keyed('site:a.example', 'rubbish'), keyed('site:b.example', 'newer')])
    await publish(topic, 'site:b.example', '2')
    await log.start()
    await log.ready
    expect(() => log.requireReadable('layout')).toThrow(
      expect.objectContaining({ code: 'CONTROL_UNREADABLE', message: expect.stringMatching(/layout \(offset 1\).*of a newer release/) }),
    )
    for (const subject of ['site:a.example', 'site:b.example', 'site:c.example']) log.requireReadable(subject)
    await publish(topic, 'layout', '3')
    await log.readToEnd()
    log.requireReadable('layout')
  })

  it('fails with its reason where the topic does not exist', async () => {
    const log = open(uniqueName('none'))
    await log.start()
    await expect(log.ready).rejects.toMatchObject({ code: 'KAFKA_TOPIC_MISSING' })
    await expect(log.closed).rejects.toMatchObject({ code: 'KAFKA_TOPIC_MISSING' })
  })

  it('ends when a listener can not obey a command', async () => {
    const topic = await testTopic(admin, 'control')
    const log = open(topic)
    await log.start()
    await log.ready
    log.subscribe(() => {
      throw new Error('can not')
    })
    await publish(topic, 'layout', '1')
    await expect(log.closed).rejects.toThrow('can not')
  })

  it('lets go of who waits when it is stopped', async () => {
    const topic = await testTopic(admin, 'control')
    const log = open(topic)
    await log.start()
    await log.ready
    await log.stop({ mode: 'drain', timeoutMs: 1_000 })
    await publish(topic, 'layout', '1')
    await expect(log.readToEnd()).rejects.toMatchObject({ code: expect.stringMatching(/ABORTED|KAFKA/) })
    await eventually(() => log.state === 'closed')
  })
})
