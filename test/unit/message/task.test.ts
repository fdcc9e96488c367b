import { describe, expect, it } from 'vitest'
import { createMessageCodec } from '../../../src/message/codec.ts'
import { completeTask, type TaskPlace } from '../../../src/message/complete-task.ts'
import { decodeTask } from '../../../src/message/decode-task.ts'
import type { UrlTask } from '../../../src/message/generated/types.ts'
import { foreignTaskId, h } from '../../../src/message/ids.ts'
import { readTask } from '../../../src/message/read-task.ts'
import { readable } from '../../../src/message/readable.ts'
import { createSchemaStore } from '../../../src/message/schema-store.ts'
import { topicNames } from '../../../src/message/topics.ts'
import { newUrlTask } from '../../../src/message/url-task.ts'
import { plain } from '../../support/arbitrary-avro.ts'

const codec = createMessageCodec({ schemaStore: createSchemaStore() })
const url = 'https://example.test/'
const decode = (value: string | Buffer | null): UrlTask => decodeTask(codec, typeof value === 'string' ? Buffer.from(value) : value)
const problem = (value: string | Buffer | null): string => {
  try {
    decode(value)
  } catch (error) {
    return `${(error as { code: string }).code}: ${(error as Error).message}`
  }
  return 'none'
}

describe('a task as JSON', () => {
  it('needs its url alone, and has the defaults of the schema for the rest', () => {
    expect(decode(`{"url":"${url}"}`)).toEqual(newUrlTask({ url }))
    expect(decode(` \r\n\t{"url":"${url}"}\n`)).toEqual(newUrlTask({ url }))
  })

  it('has all names of UrlTask, without union tags', () => {
    const task: UrlTask = {
      ...newUrlTask({ url }),
      method: 'HEAD',
      headers: { 'x-a': '1' },
      crawlId: 'c',
      lane: 'high',
      dedup: 'ttl',
      redirects: [{ url: 'http://a.test/', status: 301, location: '/b', setCookies: [] }],
      notBefore: 1,
      expiresAt: 2,
      extractors: ['book'],
      meta: { constructor: 'kept', toString: 'kept' },
      ifChanged: true,
      traceId: null,
    }
    expect(decode(JSON.stringify(task))).toEqual(task)
  })

  it('has what a hop leaves out', () => {
    const hop = { url: 'http://a.test/', status: 301, location: '/b' }
    expect(decode(JSON.stringify({ url, redirects: [hop] })).redirects).toEqual([{ ...hop, setCookies: [] }])
  })

  it('has the texts that its copies in Avro will have: no half of a surrogate pair', () => {
    const task = decode(`{"url":"${url}","crawlId":"c\\ud800","taskId":"\\udc00t","meta":{"\\ud83d":"\\ud83d\\ude00\\ud83d"}}`)
    expect(task).toMatchObject({ crawlId: 'c\ufffd', taskId: '\ufffdt', meta: { '\ufffd': '\u{1f600}\ufffd' } })
    expect(plain(decode(codec.encode('UrlTask', task, 'scrape.urls')))).toEqual(task)
  })

  it('has its body in base64', () => {
    expect(decode(`{"url":"${url}","method":"POST","body":"YT0x/w=="}`).body).toEqual(Buffer.from('a=1\xff', 'latin1'))
    expect(decode(`{"url":"${url}","body":""}`).body).toEqual(Buffer.alloc(0))
  })

  it.each([
    ['1767225600000', 1_767_225_600_000],
    ['"2026-01-01T00:00:00Z"', 1_767_225_600_000],
    ['"2026-01-01t01:00:00.5+01:00"', 1_767_225_600_500],
    ['"2025-12-31T19:00-0500"', 1_767_225_600_000],
  ])('takes the time %s', (text, ms) => {
    expect(decode(`{"url":"${url}","notBefore":${text}}`).notBefore).toBe(ms)
  })

  it.each([
    ['{"url":', 'MESSAGE_MALFORMED: the value begins with { but is no JSON'],
    ['{"url":"a"} x', 'MESSAGE_MALFORMED: the value begins with { but is no JSON'],
    ['{}', "TASK_FIELD_INVALID: the task's field url is missing"],
    ['{"url":null}', "TASK_FIELD_INVALID: the task's field url is null; expected text"],
    ['{"url":{"string":"a"}}', "TASK_FIELD_INVALID: the task's field url is an object; expected text"],
    ['{"ulr":"a"}', "TASK_FIELD_INVALID: the task's field ulr is no field of a task; did you mean url?"],
    ['{"url":"a","maxdepth":1}', "TASK_FIELD_INVALID: the task's field maxdepth is no field of a task; did you mean maxDepth?"],
    ['{"url":"a","zzzzzzzzzz":1}', "TASK_FIELD_INVALID: the task's field zzzzzzzzzz is no field of a task"],
    ['{"url":"a","crawlId":{"string":"c"}}', "TASK_FIELD_INVALID: the task's field crawlId is an object; expected text"],
    ['{"url":"a","body":"not base64"}', 'TASK_FIELD_INVALID: the task\'s field body is "not base64"; expected bytes in base64'],
    ['{"url":"a","body":[1]}', "TASK_FIELD_INVALID: the task's field body is a list; expected bytes in base64"],
    ['{"url":"a","depth":"1"}', 'TASK_FIELD_INVALID: the task\'s field depth is "1"; expected an integer of 32 bits'],
    ['{"url":"a","depth":1.5}', "TASK_FIELD_INVALID: the task's field depth is 1.5; expected an integer of 32 bits"],
    ['{"url":"a","depth":4294967296}', "TASK_FIELD_INVALID: the task's field depth is 4294967296; expected an integer of 32 bits"],
    ['{"url":"a","lane":"fast"}', 'TASK_FIELD_INVALID: the task\'s field lane is "fast"; expected one of normal, high, low'],
    ['{"url":"a","ifChanged":1}', "TASK_FIELD_INVALID: the task's field ifChanged is 1; expected true or false"],
    ['{"url":"a","extractors":"book"}', 'TASK_FIELD_INVALID: the task\'s field extractors is "book"; expected a list'],
    ['{"url":"a","redirects":[{"url":"b","status":301}]}', "TASK_FIELD_INVALID: the task's field redirects[0].location is missing"],
    ['{"url":"a","meta":{"n":1}}', "TASK_FIELD_INVALID: the task's field meta.n is 1; expected text"],
    ['{"url":"a","meta":[]}', "TASK_FIELD_INVALID: the task's field meta is a list; expected an object"],
    ['{"url":"a","notBefore":"tomorrow"}', 'TASK_FIELD_INVALID: the task\'s field notBefore is "tomorrow"; expected a time as epoch ms'],
    [
      '{"url":"a","notBefore":"2026-01-01T00:00:00"}',
      'TASK_FIELD_INVALID: the task\'s field notBefore is "2026-01-01T00:00:00"; expected a time',
    ],
    [
      '{"url":"a","notBefore":"2026-02-30T00:00:00Z"}',
      'TASK_FIELD_INVALID: the task\'s field notBefore is "2026-02-30T00:00:00Z"; expected a time',
    ],
    ['{"url":"a","__proto__":{"polluted":1}}', "TASK_FIELD_INVALID: the task's field __proto__ is a name that is not taken"],
    ['{"url":"a","meta":{"__proto__":"x"}}', "TASK_FIELD_INVALID: the task's field meta.__proto__ is a name that is not taken"],
    [
      `{"url":"a","crawlId":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
      "TASK_FIELD_INVALID: the task's field crawlId is a list; expected text",
    ],
  ])('%.70s is answered with what is wrong', (text, expected) => {
    expect(problem(text)).toContain(expected)
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
  })

  it('that is no UTF-8 is refused, not repaired', () => {
    expect(problem(Buffer.concat([Buffer.from('{"url":"'), Buffer.from([0xff]), Buffer.from('"}')]))).toContain('MESSAGE_MALFORMED')
  })
})

describe('a task', () => {
  it('is read from Avro and from JSON alike', () => {
    const task = newUrlTask({ url, crawlId: 'c' })
    expect(plain(decode(codec.encode('UrlTask', task, 'scrape.urls')))).toEqual(decode(JSON.stringify(task)))
  })

  it('that is neither is answered', () => {
    expect(problem(null)).toContain('MESSAGE_EMPTY')
    expect(problem('https://example.test/')).toContain('MESSAGE_FRAMING_UNKNOWN')
    expect(problem('   ')).toContain('MESSAGE_FRAMING_UNKNOWN')
  })

  it.each<[Partial<UrlTask>, string]>([
    [{ method: 'get' }, 'field method is "get"; expected an HTTP method in capitals'],
    [{ method: 'CONNECT' }, 'field method'],
    [{ method: 'GET /x HTTP/1.1\r\n' }, 'field method'],
    [{ headers: { 'a b': '1' } }, 'field headers.a b is no name of a header'],
    [{ headers: { 'x-a': '1\r\nhost: evil' } }, 'field headers.x-a has characters that no header may hold'],
    [{ headers: { 'Accept-Encoding': 'identity' } }, "field headers.Accept-Encoding is a header that is not the task's to set"],
    [{ headers: { Host: 'evil.test' } }, "field headers.Host is a header that is not the task's to set"],
    [{ attempt: 0 }, 'field attempt is 0; expected 1 or more'],
    [{ depth: -1 }, 'field depth is -1; expected 0 or more'],
  ])('of which no request can be made is answered: %j', (fields, expected) => {
    for (const value of [JSON.stringify({ url, ...fields }), codec.encode('UrlTask', newUrlTask({ url, ...fields }), 'scrape.urls')]) {
      expect(problem(value)).toContain(`TASK_FIELD_INVALID: the task's ${expected}`)
    }
  })
})

describe('reading a task', () => {
  const source = { codec, topics: topicNames('scrape.'), clusterId: 'k' }
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const message = { topic: 'scrape.urls.low', partition: 2, offset: 17n, timestamp: 9, headers: { traceparent } }

  it('fills in what its message and its topic tell, and says whether it came with an id', () => {
    const read = (task: object): unknown => readTask(source, { ...message, value: Buffer.from(JSON.stringify(task)) })
    const traceId = traceparent.split('-')[1]
    const taskId = foreignTaskId({ ...message, clusterId: 'k' })
    expect(read({ url })).toMatchObject({ ok: true, hadId: false, task: { taskId, lane: 'low', enqueuedAt: 9, traceId } })
    expect(read({ url: 'no url', taskId: 't', lane: 'high' })).toMatchObject({
      ok: false,
      hadId: true,
      task: { taskId: 't', lane: 'high' },
    })
  })

  it('passes over what can not be read, for those who look for something, and nothing else', () => {
    expect(readable(() => readTask(source, { ...message, value: null }))).toBeUndefined()
    expect(() =>
      readable(() => {
        throw new Error('away')
      }),
    ).toThrow('away')
  })
})

describe('completing a task', () => {
  const place: TaskPlace = {
    clusterId: 'k',
    topic: 'scrape.urls.low',
    partition: 2,
    offset: 17n,
    timestamp: 1_767_225_600_000,
    lane: 'low',
  }

  it('fills what its producer left empty, from the message alone', () => {
    const { task, ok } = completeTask(newUrlTask({ url: 'https://EXAMPLE.test/p?b=2&a=1#top' }), place)
    const taskId = foreignTaskId(place)
    expect(ok).toBe(true)
    expect(task).toEqual({
      ...newUrlTask({ url: 'https://example.test/p?b=2&a=1' }),
      canonicalUrl: 'https://example.test/p?a=1&b=2',
      taskId,
      lane: 'low',
      dedup: 'none',
      traceId: h('trace', taskId),
      enqueuedAt: 1_767_225_600_000,
    })
    expect(completeTask(newUrlTask({ url: 'https://EXAMPLE.test/p?b=2&a=1#top' }), place).task).toEqual(task)
  })

  it('leaves a complete task as it is, wherever it is read again', () => {
    const { task } = completeTask(newUrlTask({ url, crawlId: 'c', taskId: 't', dedup: 'ttl' }), place)
    const elsewhere: TaskPlace = { clusterId: 'k', topic: 'scrape.urls.delay.10s', partition: 0, offset: 3n, timestamp: 9 }
    expect(completeTask(task, elsewhere)).toMatchObject({ ok: true, task })
    expect(task).toMatchObject({ taskId: 't', dedup: 'ttl', lane: 'low' })
  })

  it('takes the trace of the message, and normal where no lane is known', () => {
    const { lane: _lane, ...delayed } = place
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const { task } = completeTask(newUrlTask({ url, traceId: 'not a trace', crawlId: '' }), { ...delayed, traceparent })
    expect(task).toMatchObject({ traceId: '4bf92f3577b34da6a3ce929d0e0e4736', lane: 'normal', crawlId: null, dedup: 'none' })
  })

  it('of a bad URL gives a task that can end, with its ids', () => {
    const completed = completeTask(newUrlTask({ url: 'javascript:alert(1)' }), place)
    expect(completed).toMatchObject({
      ok: false,
      reason: 'bad-url',
      urlReason: 'unsupported-scheme',
      task: { url: 'javascript:alert(1)', canonicalUrl: 'javascript:alert(1)', taskId: foreignTaskId(place) },
    })
    const long = completeTask(newUrlTask({ url: `http://${'x'.repeat(100_000)}` }), place)
    expect(long.task.canonicalUrl.length).toBeLessThanOrEqual(8_192)
  })

  it('tells nobody the password of a URL that is refused for it, nor one in an identity that it was given', () => {
    for (const bad of [
      'https://user:secret@host.example/a',
      'ftp://user:secret@host.example/a',
      'https://user:secret@host.example:99999/a',
    ]) {
      const completed = completeTask(newUrlTask({ url: bad, canonicalUrl: '' }), place)
      expect(completed.ok).toBe(false)
      expect(JSON.stringify(completed)).not.toContain('secret')
      expect(completeTask(completed.task, place).task.taskId).toBe(completed.task.taskId)
    }
    const given = completeTask(newUrlTask({ url, canonicalUrl: 'https://user:secret@example.test/p' }), place)
    expect(given.task.canonicalUrl).toBe('https://example.test/p')
  })

  it('is bad where it is given an identity that fits no key, whatever its URL is', () => {
    const canonicalUrl = `${url}?${'x'.repeat(100_000)}`
    for (const [given, urlReason] of [
      [url, 'too-long'],
      ['javascript:alert(1)', 'unsupported-scheme'],
    ] as const) {
      const completed = completeTask(newUrlTask({ url: given, canonicalUrl }), place)
      expect(completed).toMatchObject({ ok: false, reason: 'bad-url', urlReason })
      expect(completed.task.canonicalUrl).toHaveLength(8_192)
    }
    expect(completeTask(newUrlTask({ url, canonicalUrl: 'mine' }), place)).toMatchObject({ ok: true, task: { canonicalUrl: 'mine' } })
  })
})
