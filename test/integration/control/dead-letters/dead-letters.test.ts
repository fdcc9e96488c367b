import { createHash } from 'node:crypto'
import type { ProducerConfig } from 'kafkajs'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { CommandContext } from '../../../../src/cli/context.ts'
import { stats } from '../../../../src/cli/dead-letters-session.ts'
import { loadConfig } from '../../../../src/config/load.ts'
import {
  type DeadLetterFilter,
  deadLetterStats,
  listDeadLetters,
  type NamedDeadLetter,
} from '../../../../src/control/dead-letters/dead-letters.ts'
import { resolveDeadLetters } from '../../../../src/control/dead-letters/requeue.ts'
import { announce } from '../../../../src/control/runtime/announce.ts'
import { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../../src/control/runtime/topics.ts'
import { DeadLetterPublisher } from '../../../../src/kafka/dead-letter-publisher.ts'
import type { KafkaMessage } from '../../../../src/kafka/message.ts'
import { createPartitionTransactions } from '../../../../src/kafka/transactional.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { newCommand, subject } from '../../../../src/message/command.ts'
import type { DeadLetterContext } from '../../../../src/message/dead-letter.ts'
import type { UrlTask } from '../../../../src/message/generated/types.ts'
import { HEADER } from '../../../../src/message/header-names.ts'
import { foreignTaskId, requeuedTaskId } from '../../../../src/message/ids.ts'
import { newUrlTask } from '../../../../src/message/url-task.ts'
import { committed } from '../../../support/deployment.ts'
import { eventually } from '../../../support/eventually.ts'
import { testPage } from '../../../support/extraction.ts'
import { brokers, uniqueName } from '../../../support/services.ts'

let runtime: Runtime

beforeEach(async () => {
  const sets = [
    `brokers=${brokers().join(',')}`,
    `topics.prefix=${uniqueName('dlq')}.`,
    'topics.partitions.urls=2',
    'topics.partitions.html=2',
    'topics.partitions.deadLetters=2',
    'topics.partitions.records=1',
  ]
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: silentObserver })
  await applyTopics(runtime)
})
afterEach(() => runtime.close())

const FAILED = { stage: 'fetch', code: 'FETCH_FAILED', message: 'http-503', reason: 'http-503', attempt: 5, failedAt: 1 } as const

function task(name: string, fields: Partial<UrlTask> = {}): UrlTask {
  return newUrlTask({
    taskId: name,
    url: `http://${name}.example/`,
    canonicalUrl: `http://${name}.example/`,
    crawlId: 'c',
    lane: 'high',
    attempt: 5,
    ...fields,
  })
}

/** A message as a stage read it. */
function read(topic: string, offset: bigint, key: string, value: Buffer | null, headers: Record<string, Buffer> = {}): KafkaMessage {
  return { topic, partition: 0, offset, timestamp: 7, key: Buffer.from(key), value, headers }
}

async function bury(original: KafkaMessage, context: DeadLetterContext, maxBytes = runtime.maxBatchBytes(runtime.topics.deadLetters)) {
  const publisher = new DeadLetterPublisher({ topics: runtime.topics, layout: await runtime.layout(), maxBytes })
  await (await runtime.producer()).send([publisher.message(original, context)])
}

async function buryTask(failed: UrlTask, context: DeadLetterContext = FAILED): Promise<void> {
  const { topics, codec } = runtime
  await bury(read(topics.urls.high, 3n, `${failed.taskId}.example`, codec.encode('UrlTask', failed, topics.urls.high)), context)
}

async function open(filter: DeadLetterFilter = {}): Promise<NamedDeadLetter[]> {
  const found: NamedDeadLetter[] = []
  for await (const letter of listDeadLetters(runtime, filter)) found.push(letter)
  return found
}

const SHUT_OUT = { code: 'KAFKA_FENCED', message: expect.stringContaining('another command deals with the dead letters of partition') }
const requeue = (execute: boolean, filter = {}) => resolveDeadLetters(runtime, { action: 'requeued', filter, execute })

describe('dead letters of a domain', () => {
  it('are those of a host too, be they tasks, whose key is the registrable domain, or pages', async () => {
    const { topics, codec } = runtime
    for (const host of ['www.a.example', 'shop.a.example', 'www.b.example']) {
      const failed = codec.encode('UrlTask', task(host, { url: `http://${host}/` }), topics.urls.high)
      await bury(read(topics.urls.high, 3n, host.slice(host.indexOf('.') + 1), failed), FAILED)
      await bury(read(topics.html, 4n, `http://${host}/page`, Buffer.from('page')), { ...FAILED, stage: 'extract' })
    }
    await bury(read(topics.urls.high, 5n, 'a.example', Buffer.from('rubbish')), { ...FAILED, code: 'MESSAGE_FRAMING_UNKNOWN' })
    const found = async (domain: string): Promise<number> => (await open({ domain })).length
    expect([await found('a.example'), await found('www.a.example'), await found('www.b.example')]).toEqual([5, 2, 2])
    expect([await found('other.a.example'), await found('example')]).toEqual([0, 0])
    expect(await requeue(false, { domain: 'shop.a.example' })).toMatchObject({ tasks: 1 })
  })
})

describe('a signal that comes before all dead letters were read', () => {
  it('leaves no counts behind that read as those of all', async () => {
    await buryTask(task('a'))
    const stop = new AbortController()
    const said: string[] = []
    let asked = 0
    const context: Partial<CommandContext> = {
      globals: { set: [], json: false, quiet: false, verbose: false, color: false },
      loadConfig: () => ({ config: runtime.config }) as ReturnType<CommandContext['loadConfig']>,
      out: async (line) => void said.push(line),
      observer: silentObserver,
      // Asked for once to connect, and once to read.
      get draining() {
        asked += 1
        if (asked > 1) stop.abort(new Error('stopped by SIGINT'))
        return stop.signal
      },
    }
    await expect(stats(context as CommandContext, {})).rejects.toThrow('stopped by SIGINT')
    expect(said).toEqual([])
  })

  it('ends a forecast, and leaves what was not dealt with to the same command again', async () => {
    await buryTask(task('a'))
    const signal = AbortSignal.abort(new Error('stopped by SIGINT'))
    const resolve = (execute: boolean) => resolveDeadLetters(runtime, { action: 'dropped', filter: {}, execute, signal })
    await expect(resolve(false)).rejects.toThrow('stopped by SIGINT')
    expect(await resolve(true)).toMatchObject({ interrupted: true, dropped: 0 })
    expect(await open()).toHaveLength(1)
  })
})

describe('requeue of a URL', () => {
  it('writes nothing until it is told to, then a new task from its first attempt on, and offers it no more', async () => {
    await buryTask(task('a', { redirects: [{ url: 'http://a.example/', status: 302, location: '/b', setCookies: [] }], dedup: 'crawl' }))
    const plan = await requeue(false)
    expect(plan).toMatchObject({ executed: false, tasks: 1, pages: 0, left: {} })
    expect(await committed(runtime, runtime.topics.urls.high)).toEqual([])
    const [letter] = await open()
    const done = await requeue(true)
    expect(done).toMatchObject({ executed: true, tasks: 1, examples: [{ becomes: 'task' }] })
    const [message, ...others] = await committed(runtime, runtime.topics.urls.high)
    expect(others).toEqual([])
    const written = runtime.codec.decode('UrlTask', message?.value ?? null)
    expect(written).toMatchObject({
      taskId: requeuedTaskId('a', { partition: letter?.partition ?? -1, offset: letter?.offset ?? -1n }),
      url: 'http://a.example/',
      crawlId: 'c',
      attempt: 1,
      redirects: [],
      dedup: 'none',
    })
    expect(message?.headers[HEADER.requeued]?.toString()).toBe(`${letter?.partition}:${letter?.offset}`)
    // The ledger takes copies by this header: this is none.
    expect(message?.headers[HEADER.origTopic]).toBeUndefined()
    const state = await runtime.state()
    expect((await state.openCrawls([], 10)).others).toEqual([{ crawlId: 'c', open: 1 }])
    await state.accept('c', [written.taskId])
    expect(await state.crawlCounts('c')).toEqual({ accepted: 1, final: 0 })
    expect(await open()).toEqual([])
    expect(await requeue(true)).toMatchObject({ tasks: 0, examples: [] })
    expect((await committed(runtime, runtime.topics.urls.high)).length).toBe(1)
  })

  it('announces the schema of what it writes, and none to show what it would write', async () => {
    await buryTask(task('a'))
    const announcing = vi.spyOn(runtime.codec, 'prepare')
    expect(await requeue(false)).toMatchObject({ executed: false, tasks: 1 })
    expect(announcing).not.toHaveBeenCalled()
    expect(await requeue(true)).toMatchObject({ executed: true, tasks: 1 })
    expect(announcing).toHaveBeenCalledWith(runtime.topics.urls.high, 'UrlTask')
  })

  it('names the task of another program by where it lay, and leaves what can not be fetched', async () => {
    const { topics, clusterId } = runtime
    await bury(read(topics.urls.low, 9n, 'json.example', Buffer.from('{"url":"http://json.example/"}')), FAILED)
    await bury(read(topics.urls.low, 10n, 'x', Buffer.from('{"url":"nonsense"}')), { ...FAILED, code: 'TASK_URL_INVALID' })
    await bury(read(topics.urls.low, 11n, 'y', Buffer.from('rubbish')), { ...FAILED, code: 'MESSAGE_FRAMING_UNKNOWN' })
    await buryTask(task('late', { expiresAt: Date.now() - 1 }))
    const done = await requeue(true)
    expect(done).toMatchObject({ tasks: 1, left: { 'bad-url': 1, unreadable: 1, expired: 1 } })
    const [message] = await committed(runtime, topics.urls.low)
    const written = runtime.codec.decode('UrlTask', message?.value ?? null)
    const foreign = foreignTaskId({ clusterId, topic: topics.urls.low, partition: 0, offset: 9n, timestamp: 7 })
    const place = message?.headers[HEADER.requeued]?.toString().split(':') ?? []
    expect(written.taskId).toBe(requeuedTaskId(foreign, { partition: Number(place[0]), offset: BigInt(place[1] ?? -1) }))
    expect(written.lane).toBe('low')
    expect((await open()).map(({ info }) => info.code).sort()).toEqual(['FETCH_FAILED', 'MESSAGE_FRAMING_UNKNOWN', 'TASK_URL_INVALID'])
  })

  it.each(['requeued', 'dropped'] as const)(
    'refuses a place that holds none before it does anything, and tells of those that were %s before',
    async (action) => {
      for (const name of ['a', 'b', 'd']) await buryTask(task(name))
      const [first, second] = (await open()).map(({ partition, offset }) => `${partition}:${offset}`)
      const resolve = (...places: (string | undefined)[]) =>
        resolveDeadLetters(runtime, { action, filter: { places: new Set(places.map((place) => place ?? '')) }, execute: true })
      const beyond = `${first?.split(':')[0]}:4711`
      await expect(resolve(first, '99:5', beyond)).rejects.toMatchObject({
        code: 'USAGE',
        message: expect.stringContaining(`at 99:5, ${beyond}`),
      })
      expect(await open()).toHaveLength(3)
      expect(await resolve(first)).toMatchObject({ already: [] })
      expect(await resolve(first, second)).toMatchObject({ already: [{ place: first, action }], examples: [{ place: second }] })
      expect(await resolve(first)).toMatchObject({ already: [{ place: first, action }], examples: [] })
      expect(await open()).toHaveLength(1)
    },
  )

  it('that are named leave a command that works in another partition alone', async () => {
    const { client, groups, topics, clock, observer, maxBatchBytes, admin } = runtime
    for (let index = 0; index < 12; index += 1) await buryTask(task(`t${index}`))
    const letters = await open()
    const [named, other] = [letters[0], letters.find(({ partition }) => partition !== letters[0]?.partition)]
    const place = `${named?.partition}:${named?.offset}`
    const colleague = createPartitionTransactions({
      client,
      groupId: groups.deadLetters,
      topic: topics.deadLetters,
      partition: other?.partition ?? -1,
      transactionTimeoutMs: 60_000,
      clock,
      observer,
      maxBatchBytes,
      session: admin.session,
    })
    try {
      await colleague.fence()
      expect(await requeue(true, { places: new Set([place]) })).toMatchObject({ tasks: 1, already: [] })
      await colleague.commit([{ topic: topics.urls.low, partition: 0, key: 'k', value: Buffer.from('colleague') }], 1n, '')
    } finally {
      await colleague.close()
    }
    expect(await requeue(false, { places: new Set([place]) })).toMatchObject({ tasks: 0, already: [{ place, action: 'requeued' }] })
  })

  it('takes what the filter names, and no more than the limit', async () => {
    for (const name of ['a', 'b', 'd', 'e']) await buryTask(task(name))
    await buryTask(task('f'), { ...FAILED, code: 'TIMEOUT' })
    expect(await requeue(false, { limit: 2 })).toMatchObject({ tasks: 2 })
    expect(await requeue(true, { domain: 'b.example' })).toMatchObject({ tasks: 1, examples: [{ key: 'b.example' }] })
    expect(await requeue(true, { code: 'TIMEOUT' })).toMatchObject({ tasks: 1, examples: [{ key: 'f.example' }] })
    const [first] = await open()
    const places = new Set([`${first?.partition}:${first?.offset}`])
    expect(await resolveDeadLetters(runtime, { action: 'dropped', filter: { places }, execute: true })).toMatchObject({ dropped: 1 })
    // A commit is answered before its marks are seen.
    await eventually(async () => (await open()).length === 2, { what: 'the mark of the drop' })
    const stats = await deadLetterStats(runtime, {})
    expect(stats).toMatchObject({ open: 2, requeued: 2, dropped: 1, byStage: { fetch: 2 }, byCode: { FETCH_FAILED: 2 } })
    expect(Object.values(stats.byDomain)).toEqual([1, 1])
  })

  it.each([
    { what: 'happened, though its answer was lost', commits: true },
    { what: 'did not happen', commits: false },
  ])('counts each of them once where a commit $what, and those that are left use up the limit once', async ({ commits }) => {
    // Of one domain, and so of one partition.
    const names = ['a', 'bad', 'b', 'd', 'e', 'f']
    for (const name of names) {
      const url = name === 'bad' ? 'nowhere' : `http://shop.example/${name}`
      const failed = task(name, { url, canonicalUrl: url })
      const value = runtime.codec.encode('UrlTask', failed, runtime.topics.urls.high)
      await bury(read(runtime.topics.urls.high, 3n, 'shop.example', value), FAILED)
    }
    let isFirst = true
    const kafka = new Proxy(runtime.client.kafka, {
      get: (target, name) => {
        if (name !== 'producer') return Reflect.get(target, name)
        return (config: ProducerConfig) => {
          const producer = target.producer(config)
          const transaction = async () => {
            const own = await producer.transaction()
            const commit = async (): Promise<void> => {
              if (!isFirst) return own.commit()
              isFirst = false
              await (commits ? own.commit() : own.abort())
              throw new Error('the connection broke')
            }
            return { ...own, commit }
          }
          return { ...producer, transaction }
        }
      },
    })
    const breaking = new Proxy(runtime, {
      get: (target, name) => {
        const value: unknown = name === 'client' ? { ...target.client, kafka } : Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const filter = { limit: 5 }
    expect(await resolveDeadLetters(breaking, { action: 'requeued', filter, execute: true })).toMatchObject({
      tasks: 4,
      left: { 'bad-url': 1 },
      examples: names.slice(0, 5).map((name) => ({ becomes: name === 'bad' ? 'left' : 'task' })),
    })
    expect(isFirst).toBe(false)
    // A broker answers a commit before all partitions have its mark.
    await eventually(async () => (await open()).length === 2)
    expect((await open()).map(({ url }) => url)).toEqual(['nowhere', 'http://shop.example/f'])
    await eventually(async () => (await committed(runtime, runtime.topics.urls.high)).length >= 4)
    expect(await committed(runtime, runtime.topics.urls.high)).toHaveLength(4)
  })

  it('holds up no command where it was killed within a transaction, nor another one over another partition', async () => {
    await buryTask(task('one'))
    const [letter] = await open()
    const other = createPartitionTransactions({
      client: runtime.client,
      groupId: runtime.groups.deadLetters,
      topic: runtime.topics.deadLetters,
      partition: letter?.partition === 0 ? 1 : 0,
      clock: systemClock,
      observer: silentObserver,
      maxBatchBytes: runtime.maxBatchBytes,
      session: runtime.admin.session,
    })
    const killed = runtime.client.kafka.producer({ transactionalId: uniqueName('killed'), maxInFlightRequests: 1, idempotent: true })
    await killed.connect()
    try {
      await other.fence()
      const transaction = await killed.transaction()
      const mark = newCommand({ clock: systemClock, kind: 'set', subject: subject.deadLetters('m'), by: 'a test' })
      const value = runtime.codec.encode('Command', mark, runtime.topics.control)
      await transaction.send({ topic: runtime.topics.control, messages: [{ key: mark.subject, value, partition: 0 }] })
      await announce(runtime, { kind: 'set', subject: subject.site('a.example'), payload: { paused: true } })
      expect((await runtime.control()).get(subject.site('a.example'))?.payload).toBe('{"paused":true}')
      await transaction.abort()

      const places = new Set([`${letter?.partition}:${letter?.offset}`])
      expect(await resolveDeadLetters(runtime, { action: 'dropped', filter: { places }, execute: true })).toMatchObject({ dropped: 1 })
      expect(await open()).toEqual([])
      await other.commit([], 0n, '')
    } finally {
      await killed.disconnect()
      await other.close()
    }
  })

  it('waits for no offset that hangs in a transaction: what is done stands in the marks', async () => {
    await buryTask(task('one'))
    const [letter] = await open()
    const hanging = runtime.client.kafka.producer({ transactionalId: uniqueName('hanging'), maxInFlightRequests: 1 })
    await hanging.connect()
    try {
      const transaction = await hanging.transaction()
      const partitions = [{ partition: letter?.partition ?? 0, offset: '1' }]
      await transaction.sendOffsets({
        consumerGroupId: runtime.groups.deadLetters,
        topics: [{ topic: runtime.topics.deadLetters, partitions }],
      })
      const places = new Set([`${letter?.partition}:${letter?.offset}`])
      expect(await resolveDeadLetters(runtime, { action: 'dropped', filter: { places }, execute: true })).toMatchObject({ dropped: 1 })
      expect(await open()).toEqual([])
      await transaction.abort()
    } finally {
      await hanging.disconnect()
    }
  })

  it('does nothing again whose mark lies behind the transaction of another command', async () => {
    await buryTask(task('one'))
    const [letter] = await open()
    const { topics, codec } = runtime
    const mark = { action: 'dropped', partition: letter?.partition, offsets: String(letter?.offset), newestMs: letter?.timestamp }
    const command = newCommand({ clock: systemClock, kind: 'set', subject: subject.deadLetters('done'), payload: mark, by: 'a test' })
    const value = codec.encode('Command', command, topics.control)
    const another = runtime.client.kafka.producer({ transactionalId: uniqueName('open'), maxInFlightRequests: 1, idempotent: true })
    await another.connect()
    try {
      const transaction = await another.transaction()
      const own = newCommand({ clock: systemClock, kind: 'set', subject: subject.deadLetters('m'), by: 'a test' })
      const messages = [{ key: own.subject, value: codec.encode('Command', own, topics.control), partition: 0 }]
      await transaction.send({ topic: topics.control, messages })
      await (await runtime.producer()).send([{ topic: topics.control, partition: 0, key: command.subject, value }])
      const asked = vi.spyOn(runtime.admin, 'endOffsets')
      const report = requeue(true)
      let isDone = false
      const done = report.then(() => {
        isDone = true
      })
      await eventually(() => isDone || asked.mock.calls.length >= 3, { what: 'it to wait for the transaction' })
      await transaction.abort()
      await done
      expect(await report).toMatchObject({ tasks: 0 })
      expect(await committed(runtime, topics.urls.high)).toEqual([])
    } finally {
      await another.disconnect()
    }
  })

  it('writes each of them once when two commands do it at the same time', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `n${index}`)
    for (const name of names) await buryTask(task(name))
    const both = await Promise.allSettled([requeue(true), requeue(true)])
    for (const result of both) if (result.status === 'rejected') expect(result.reason).toMatchObject(SHUT_OUT)
    // Whatever the one that was shut out has left.
    await requeue(true)
    const written = (await committed(runtime, runtime.topics.urls.high)).map(({ value }) => runtime.codec.decode('UrlTask', value).url)
    expect(written.sort()).toEqual(names.map((name) => `http://${name}.example/`).sort())
    expect(await open()).toEqual([])
  })
})

describe('requeue of a page', () => {
  const page = testPage('<h1>p</h1>', 'http://p.example/')

  it('writes its bytes for the one extractor that failed, once for all where none could read it, and for the frontier alone', async () => {
    const { topics, codec } = runtime
    const value = codec.encode('Page', page, topics.html)
    const stored = read(topics.html, 4n, page.canonicalUrl, value, { 'x-own': Buffer.from('1'), ...buffers(codec.headers('Page')) })
    const failed = { stage: 'extract', code: 'EXTRACT_FIELD_MISSING', message: 'title', failedAt: 1 } as const
    await bury(stored, { ...failed, extractor: 'book:2' })
    await bury({ ...stored, offset: 5n }, { ...failed, code: 'EXTRACT_PAGE_BROKEN' })
    await bury({ ...stored, offset: 5n }, { ...failed, code: 'EXTRACT_PAGE_BROKEN' })
    await bury({ ...stored, offset: 6n }, { ...failed, stage: 'frontier', code: 'EXTRACT_PAGE_BROKEN' })
    // A copy that was put back and has failed again.
    await bury({ ...stored, offset: 7n }, { ...failed, extractor: 'book:3' })
    expect(await requeue(true)).toMatchObject({ tasks: 0, pages: 3, samePage: 2 })
    const written = await eventually(async () => {
      const found = await committed(runtime, topics.html)
      return found.length >= 3 && found
    })
    expect(written.map(({ headers }) => headers[HEADER.only]?.toString())).toEqual(['book', '@extract', '@frontier'])
    for (const message of written) {
      expect(message.value).toEqual(value)
      expect(message.key?.toString()).toBe(page.canonicalUrl)
      expect(message.headers['x-own']?.toString()).toBe('1')
      expect(message.headers[HEADER.errorCode]).toBeUndefined()
      expect(message.headers[HEADER.origTopic]).toBeUndefined()
    }
    expect(await open()).toEqual([])
  })

  it('writes each of two pages of one fetch that differ in their bytes, and all that name no fetch', async () => {
    const { topics, codec } = runtime
    const failed = { stage: 'extract', code: 'EXTRACT_TIMEOUT', message: 'slow', failedAt: 1, extractor: 'book:2' } as const
    const other = { ...testPage('<h1>answered otherwise</h1>', 'http://p.example/'), fetchId: page.fetchId }
    const [foreign, second] = ['<p>1</p>', '<p>1</p>'].map((html) => ({ ...testPage(html, 'http://f.example/'), fetchId: '' }))
    const pages = [page, other, page, foreign, second].flatMap((each) => each ?? [])
    for (const [index, each] of pages.entries())
      await bury(read(topics.html, BigInt(index), each.canonicalUrl, codec.encode('Page', each, topics.html)), failed)
    expect(await requeue(true)).toMatchObject({ pages: 4, samePage: 1 })
  })

  it('names the page that fetch has written, in a copy of a copy too, unless html has never come that far', async () => {
    const { topics, codec } = runtime
    const value = codec.encode('Page', page, topics.html)
    await (await runtime.producer()).send([{ topic: topics.html, partition: 0, key: page.canonicalUrl, value, timestamp: 7 }])
    const failed = { stage: 'extract', code: 'EXTRACT_TIMEOUT', message: 'slow', failedAt: 1, extractor: 'book:2' } as const
    const copies = async (): Promise<KafkaMessage[]> =>
      (await committed(runtime, topics.html)).filter(({ headers }) => headers[HEADER.requeued] !== undefined)
    await bury(read(topics.html, 0n, page.canonicalUrl, value), failed)
    await requeue(true)
    const [first] = await copies()
    if (first === undefined) throw new Error('it was put back')
    await bury(first, failed)
    await requeue(true)
    const second = (await copies()).find(
      ({ headers }) => headers[HEADER.requeued]?.equals(first.headers[HEADER.requeued] ?? Buffer.of()) === false,
    )
    const toldBy = ({ headers }: KafkaMessage) =>
      [HEADER.origTopic, HEADER.origPartition, HEADER.origOffset, HEADER.origTimestamp, HEADER.copyOf].map((name) =>
        headers[name]?.toString(),
      )
    expect(toldBy(first)).toEqual([topics.html, '0', '0', '7', '0:0'])
    expect(second === undefined ? [] : toldBy(second)).toEqual([topics.html, '0', '0', '7', `${first.partition}:${first.offset}`])
    await bury(read(topics.html, 4711n, 'of a topic that was made anew', value), failed)
    await requeue(true)
    expect((await copies()).map(toldBy)).toContainEqual(Array(5).fill(undefined))
  })

  it('takes the bytes from the original where the dead letter was cut, and leaves it where that is another message', async () => {
    const { topics, codec } = runtime
    const body = Buffer.alloc(400_000, 'x')
    const large = { ...page, body, bodySha256: createHash('sha256').update(body).digest('hex'), bodyLength: body.length }
    const value = codec.encode('Page', large, topics.html)
    await (await runtime.producer()).send([{ topic: topics.html, partition: 0, key: page.canonicalUrl, value }])
    const failed = { stage: 'extract', code: 'EXTRACT_TIMEOUT', message: 'slow', failedAt: 1, extractor: 'book:2' } as const
    await bury(read(topics.html, 0n, page.canonicalUrl, value), failed, 300_000)
    await bury(read(topics.html, 0n, page.canonicalUrl, Buffer.concat([value, value])), failed, 300_000)
    await bury(read(topics.html, 99n, page.canonicalUrl, value), failed, 300_000)
    expect(await requeue(true)).toMatchObject({ pages: 1, left: { 'original-gone': 2 } })
    const copies = (await committed(runtime, topics.html)).filter(({ headers }) => headers[HEADER.requeued] !== undefined)
    expect(copies.map((copy) => copy.value?.equals(value))).toEqual([true])
  })
})

function buffers(headers: Readonly<Record<string, string | Buffer>>): Record<string, Buffer> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Buffer.from(value)]))
}
