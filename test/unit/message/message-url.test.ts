import { describe, expect, it } from 'vitest'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { createMessageCodec } from '../../../src/message/codec.ts'
import { messageUrl } from '../../../src/message/message-url.ts'
import { createSchemaStore } from '../../../src/message/schema-store.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'

const codec = createMessageCodec({ schemaStore: createSchemaStore() })
const url = 'http://a.example/some page'
const urlOf = (key: string | null, value: Buffer | string | null) =>
  messageUrl(codec, { key, value: typeof value === 'string' ? Buffer.from(value) : value })

describe('the URL of a dead letter', () => {
  it('is that of the task, as it was written', async () => {
    const task = codec.encode('UrlTask', newUrlTask({ url, taskId: 't', lane: 'normal', enqueuedAt: 1 }), 'urls')
    expect(await urlOf('a.example', task)).toBe(url)
    expect(await urlOf(null, JSON.stringify({ url }))).toBe(url)
    // Why it is a dead letter is another field.
    expect(await urlOf(null, JSON.stringify({ url, methud: 'GET', attempt: 0 }))).toBe(url)
  })

  it('is the key where that is the URL of a page', async () => {
    expect(await urlOf('https://a.example/1', Buffer.from([0xc3, 0x01]))).toBe('https://a.example/1')
  })

  it.each<[string, Buffer | string | null]>([
    ['nothing', null],
    ['text', 'http://a.example/'],
    ['broken JSON', '{"url": "http'],
    ['JSON without one', '{"url": 5}'],
    ['JSON that is no object', ' [1]'],
    ['an unknown schema', Buffer.from([0xc3, 0x01, 1, 2, 3, 4, 5, 6, 7, 8, 9])],
    ['a framing that is cut', Buffer.from([0xc3, 0x01, 1])],
  ])('is none of %s', async (_, value) => {
    expect(await urlOf('a.example', value)).toBeNull()
  })

  it('waits for the registry where that is to be asked, and tells of its failure', async () => {
    const away = { ...codec, ensureSchemas: () => Promise.reject(new MillraceError('REGISTRY_UNREACHABLE', 'away')) }
    await expect(messageUrl(away, { key: 'a.example', value: Buffer.from([0, 0, 0, 0, 1]) })).rejects.toThrow('away')
  })
})
