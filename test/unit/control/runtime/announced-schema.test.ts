import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { withAnnouncements } from '../../../../src/control/runtime/announced-schema.ts'
import { MillraceError } from '../../../../src/kernel/errors.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { createMessageCodec, type MessageCodec } from '../../../../src/message/codec.ts'
import { createSchemaStore, defaultFolder } from '../../../../src/message/schema-store.ts'
import { newUrlTask } from '../../../../src/message/url-task.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'

const TOPIC = 'urls'
const task = newUrlTask({ url: 'https://shop.example/' })

/** The schemas of a release that has added a field to UrlTask. */
let newerFolder: string
beforeAll(() => {
  newerFolder = mkdtempSync(join(tmpdir(), 'millrace-schemas-'))
  cpSync(defaultFolder(), newerFolder, { recursive: true })
  const schema = JSON.parse(readFileSync(join(newerFolder, 'UrlTask.avsc'), 'utf8'))
  schema.fields.push({ name: 'patience', type: 'int', default: 0, doc: 'New.' })
  writeFileSync(join(newerFolder, 'UrlTask.avsc'), JSON.stringify(schema))
})
afterAll(() => rmSync(newerFolder, { recursive: true }))

/** What `control` holds, and the codecs of members over it. */
class Log {
  readonly texts: string[] = []
  reads = 0
  failure: Error | undefined
  unopened: MillraceError | undefined
  denial: MillraceError | undefined
  readonly seen = recordingObserver()

  member(folder = defaultFolder()): MessageCodec {
    const schemaStore = createSchemaStore(folder)
    return withAnnouncements(createMessageCodec({ schemaStore }), {
      announce: async ({ text }) => {
        if (this.denial !== undefined) throw this.denial
        this.texts.push(text)
      },
      observer: this.seen.observer,
      control: async () => {
        if (this.unopened !== undefined) throw this.unopened
        return {
          readToEnd: async () => {
            this.reads += 1
            if (this.failure !== undefined) throw this.failure
            for (const text of this.texts) schemaStore.add(text)
          },
        }
      },
    })
  }
}

describe('members of several releases', () => {
  it('read each other: a schema is announced before its first message, and heard of before that is decoded', async () => {
    const log = new Log()
    const [newer, older] = [log.member(newerFolder), log.member()]
    await Promise.all([newer.prepare(TOPIC, 'UrlTask'), newer.prepare('urls.low', 'UrlTask')])
    expect(log.texts).toEqual([newer.schemas.current('UrlTask').text])
    const value = newer.encode('UrlTask', task, TOPIC)
    await older.ensureSchemas([value, null, Buffer.from('rubbish')])
    expect(older.decode('UrlTask', value)).toEqual(task)
    // It is known from now on, as is what both have.
    expect(older.ensureSchemas([value, older.encode('UrlTask', task, TOPIC)])).toBeUndefined()
  })

  it('announce a schema again where it could not be announced', async () => {
    const log = new Log()
    const codec = withAnnouncements(createMessageCodec({ schemaStore: createSchemaStore() }), {
      announce: async ({ name }) => {
        if (log.texts.push(name) === 1) throw new Error('away')
      },
      control: async () => ({ readToEnd: async () => undefined }),
      observer: silentObserver,
    })
    await expect(codec.prepare(TOPIC, 'UrlTask')).rejects.toThrow('away')
    await codec.prepare(TOPIC, 'UrlTask')
    await codec.prepare(TOPIC, 'UrlTask')
    expect(log.texts).toHaveLength(2)
  })

  it('write what they may not announce, and say so once', async () => {
    const log = new Log()
    const codec = log.member()
    log.denial = new MillraceError('KAFKA_DENIED', 'not for you')
    for (const topic of [TOPIC, 'urls.low']) await codec.prepare(topic, 'UrlTask')
    expect(codec.encode('UrlTask', task, TOPIC)).toBeInstanceOf(Buffer)
    expect(log.seen.count('SchemaUnannounced')).toBe(1)
  })

  it('read the announcements once for what nobody has announced, unless they could not be read', async () => {
    const log = new Log()
    const [newer, older] = [log.member(newerFolder), log.member()]
    const value = newer.encode('UrlTask', task, TOPIC)
    log.failure = new MillraceError('KAFKA_UNREACHABLE', 'away')
    await expect(older.ensureSchemas([value])).rejects.toBe(log.failure)
    log.failure = undefined
    await older.ensureSchemas([value, value])
    expect(older.ensureSchemas([value])).toBeUndefined()
    expect(log.reads).toBe(2)
    expect(() => older.decode('UrlTask', value)).toThrow(expect.objectContaining({ code: 'MESSAGE_SCHEMA_UNKNOWN' }))
  })
  it.each(['KAFKA_TOPIC_MISSING', 'KAFKA_DENIED'] as const)(
    'take a schema for unannounced where control gives %s to who opens it',
    async (code) => {
      const log = new Log()
      const [newer, older] = [log.member(newerFolder), log.member()]
      const value = newer.encode('UrlTask', task, TOPIC)
      log.unopened = new MillraceError(code, 'not for you')
      await older.ensureSchemas([value])
      expect(() => older.decode('UrlTask', value)).toThrow(expect.objectContaining({ code: 'MESSAGE_SCHEMA_UNKNOWN' }))
    },
  )

  it('end where control can not be reached, or can no longer be read', async () => {
    const log = new Log()
    const value = log.member(newerFolder).encode('UrlTask', task, TOPIC)
    log.unopened = new MillraceError('KAFKA_UNREACHABLE', 'away')
    await expect(log.member().ensureSchemas([value])).rejects.toBe(log.unopened)
    log.unopened = undefined
    log.failure = new MillraceError('KAFKA_DENIED', 'not any more')
    await expect(log.member().ensureSchemas([value])).rejects.toBe(log.failure)
  })
})
