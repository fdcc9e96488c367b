import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { KafkaMessage } from '../../src/kafka/message.ts'
import { loadKafkajs } from '../../src/kafka/patches/load-kafkajs.ts'
import type { Page } from '../../src/message/generated/types.ts'
import { outcomeOf } from '../../src/message/outcome.ts'
import { newUrlTask } from '../../src/message/url-task.ts'
import { runCli, startCli } from '../support/cli.ts'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { expectInTime } from '../support/in-time.ts'
import { kafkaTool } from '../support/kafka-tools.ts'
import { LinkedSite } from '../support/linked-site.ts'
import { childrenOf } from '../support/processes.ts'
import { brokers } from '../support/services.ts'

const { CompressionTypes, Kafka, logLevel } = loadKafkajs()

const PAGE = 'name: page\nversion: 1\nfields: { title: title, heading: { select: h1, required: true } }\n'

/** Written by a client of somebody else's, straight to the topic. */
async function write(topic: string, values: readonly (Buffer | null)[], options: { gzip?: boolean } = {}): Promise<bigint[]> {
  const producer = new Kafka({ brokers: brokers(), clientId: 'foreign', logLevel: logLevel.NOTHING }).producer()
  await producer.connect()
  const offsets: bigint[] = []
  for (const [index, value] of values.entries()) {
    const [answer] = await producer.send({
      topic,
      messages: [{ key: `key-${index}`, value, partition: 0 }],
      ...(options.gzip === true ? { compression: CompressionTypes.GZIP } : {}),
    })
    offsets.push(BigInt(answer?.baseOffset ?? -1))
  }
  await producer.disconnect()
  return offsets
}

const header = (message: KafkaMessage | undefined, name: string): string | undefined => message?.headers[name]?.toString('utf8')

const site = new LinkedSite({ hosts: 2, pagesPerHost: 30, latencyMs: ({ path }) => (path === '/robots.txt' ? 0 : 20) })
const open: Deployment[] = []
const deployments = async (options: Parameters<typeof Deployment.open>[0] = {}): Promise<Deployment> => {
  const deployment = await Deployment.open(options)
  open.push(deployment)
  deployment.file('page.yaml', PAGE)
  return deployment
}
const good = (index: number): string => site.urls()[index]?.url as string

beforeAll(() => site.start())
afterAll(async () => {
  for (const deployment of open) await deployment.close()
  await site.stop()
})

describe('malformed messages on urls', () => {
  it('each becomes a dead letter with its bytes and a code, and the worker goes on to the good one behind', async () => {
    const deployment = await deployments()
    const topic = `${deployment.prefix}urls`
    const fingerprint = await deployment.read(async ({ codec }) => codec.schemas.current('UrlTask').fingerprint)
    const frame = Buffer.alloc(10)
    frame.writeUInt16BE(0xc301)
    frame.writeBigUInt64LE(BigInt(`0x${fingerprint}`), 2)
    const bad: readonly (readonly [string, Buffer | null, string])[] = [
      ['text', Buffer.from('hello'), 'MESSAGE_FRAMING_UNKNOWN'],
      ['an unknown schema', Buffer.concat([Buffer.from([0xc3, 0x01]), Buffer.alloc(8, 7), Buffer.from('abc')]), 'MESSAGE_SCHEMA_UNKNOWN'],
      ['an id of a registry that is not there', Buffer.from([0, 0, 0, 0, 9, 1, 2, 3]), 'MESSAGE_SCHEMA_UNKNOWN'],
      ['our schema and other bytes', Buffer.concat([frame, Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f])]), 'MESSAGE_MALFORMED'],
      [
        'a length that would take all memory',
        Buffer.concat([frame, Buffer.from([0xfe, 0xff, 0xff, 0xff, 0x0f, 0x61])]),
        'MESSAGE_MALFORMED',
      ],
      ['no value', null, 'MESSAGE_EMPTY'],
      ['an empty value', Buffer.alloc(0), 'MESSAGE_EMPTY'],
      ['half a JSON', Buffer.from('{"url": "http://a.example/'), 'MESSAGE_MALFORMED'],
      ['JSON with an unknown name', Buffer.from(`{"url": "${good(1)}", "maxdepth": 1}`), 'TASK_FIELD_INVALID'],
      ['JSON with a wrong type', Buffer.from(`{"url": "${good(1)}", "maxDepth": "1"}`), 'TASK_FIELD_INVALID'],
      ['JSON without a url', Buffer.from('{"maxDepth": 1}'), 'TASK_FIELD_INVALID'],
      ['900 KB of nothing', Buffer.alloc(900_000, 0x20), 'MESSAGE_FRAMING_UNKNOWN'],
      ['900 KB of a field', Buffer.from(`{"url": "${good(1)}", "meta": {"x": "${'x'.repeat(900_000)}"}, "y": 1}`), 'TASK_FIELD_INVALID'],
    ]
    const offsets = await write(
      topic,
      bad.map(([, value]) => value),
    )
    await write(topic, [Buffer.from(`{"url": "${good(2)}"}`)], { gzip: true })
    const result = await deployment.run(['run', '--extractor', 'page.yaml', '--json', '--quiet'])
    const letters = await deployment.deadLetters()
    for (const [index, [what, value, code]] of bad.entries()) {
      const letter = letters.find((message) => header(message, 'millrace-orig-offset') === String(offsets[index]))
      expect({
        what,
        code: header(letter, 'millrace-error-code'),
        topic: header(letter, 'millrace-orig-topic'),
        stage: header(letter, 'millrace-stage'),
        isWhole: value === null ? letter?.value === null : letter?.value?.equals(value),
        key: letter?.key?.toString(),
      }).toEqual({ what, code, topic, stage: 'fetch', isWhole: true, key: `key-${index}` })
    }
    expect(letters).toHaveLength(bad.length)
    expect((await deployment.pages()).map(({ value }) => value.url)).toEqual([good(2)])
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(result.stdout)).toMatchObject({
      audit: { produced: 1, malformed: bad.length, difference: 0, outcomes: { FETCHED: 1 } },
    })
  })

  it.each([
    { of: 'no crawl', crawlId: null },
    // A task of a crawl has page budgets, which are by domain.
    { of: 'a crawl', crawlId: 'mistyped' },
  ])('a URL of $of that is none ends FAILED bad-url, with a dead letter', async ({ crawlId }) => {
    const deployment = await deployments()
    const urls = ['not a url', 'shop.example/page', '/page', 'ftp://a.example/', 'http://', 'javascript:alert(1)', '']
    await write(
      `${deployment.prefix}urls`,
      urls.map((url) => Buffer.from(JSON.stringify(crawlId === null ? { url } : { url, crawlId }))),
    )
    const result = await deployment.run(['run', '--json', '--quiet'])
    expect(result.code).toBe(3)
    const outcomes = await deployment.outcomes()
    expect(outcomes.map(({ value }) => `${value.url} ${value.kind} ${value.reason}`).sort()).toEqual(
      urls.map((url) => `${url} FAILED bad-url`).sort(),
    )
    const letters = await deployment.deadLetters()
    expect(letters.map((message) => header(message, 'millrace-error-code'))).toEqual(urls.map(() => 'TASK_URL_INVALID'))
  })

  it('is read whatever codec another client packs it with, since the broker repacks it', async () => {
    const deployment = await deployments()
    const codecs = ['snappy', 'lz4', 'zstd', 'gzip']
    for (const [index, codec] of codecs.entries()) {
      const sent = await kafkaTool(
        'org.apache.kafka.tools.ConsoleProducer',
        ['--bootstrap-server', brokers().join(','), '--topic', `${deployment.prefix}urls`, '--compression-codec', codec],
        `{"url":"${good(index)}"}\n`,
      )
      expect(sent).toMatchObject({ code: 0 })
    }
    expect(await deployment.run(['run', '--quiet'])).toMatchObject({ code: 0, stderr: '' })
    expect((await deployment.pages()).map(({ value }) => value.url).sort()).toEqual([0, 1, 2, 3].map(good).sort())
  })
})

describe('broken pages on html', () => {
  it('each becomes a dead letter that names its offset; never half a record', async () => {
    const deployment = await deployments()
    const html = `${deployment.prefix}html`
    const first = await deployment.run(['run', good(0), good(1), '--extractor', 'page.yaml', '--quiet'])
    expect(first).toMatchObject({ code: 0, stderr: '' })
    const [whole] = await deployment.pages()
    const packed = gzipSync('<title>t</title><h1>never to be seen</h1>'.repeat(100))
    const broken: readonly (readonly [string, Partial<Page>])[] = [
      ['a body that ends in the middle', { body: packed.subarray(0, packed.length / 2), bodyEncoding: 'gzip' }],
      ['a body in another codec', { body: packed, bodyEncoding: 'br' }],
      ['a body in a codec that nobody knows', { body: packed, bodyEncoding: 'rot13' }],
      ['a body of other bytes than its sum says', { body: Buffer.from('<h1>forged</h1>'), bodyEncoding: 'identity' }],
    ]
    const values = await deployment.read(async ({ codec }) => [
      Buffer.from('garbage'),
      ...broken.map(([, fields]) => codec.encode('Page', { ...(whole?.value as Page), ...fields }, html)),
    ])
    const offsets = await write(html, values)
    const result = await deployment.run(['run', '--extractor', 'page.yaml', '--quiet'])
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 0, stderr: '' })
    const letters = (await deployment.deadLetters()).filter((message) => header(message, 'millrace-stage') === 'extract')
    const found = letters.map((message) => [
      BigInt(header(message, 'millrace-orig-offset') ?? -1),
      header(message, 'millrace-orig-topic'),
      header(message, 'millrace-error-code'),
    ])
    expect(found.sort()).toEqual(
      offsets.map((offset, index) => [offset, html, index === 0 ? 'MESSAGE_FRAMING_UNKNOWN' : 'EXTRACT_PAGE_BROKEN']).sort(),
    )
    expect(await deployment.records()).toHaveLength(2)
  })
})

describe('extractors that misbehave', () => {
  const LOOP = `import { defineExtractor } from 'millrace'
export default defineExtractor({
  name: 'loop', version: 1,
  schema: { type: 'record', name: 'Loop', fields: [{ name: 'title', type: 'string' }] },
  extract({ $, url }) {
    while (url.endsWith('/page/2')) {}
    return [{ key: url, data: { title: $('h1').text() } }]
  },
})
`
  // On text of many spaces and letters this takes longer than the sun will shine.
  const REGEX =
    "name: regex\nversion: 1\nfields: { slow: { select: p, match: '^((?:[A-Za-z. ]+)+)\\d$' } }\nmatch: { paths: ['/page/3'] }\n"

  it('one that never ends costs its page one dead letter, and no other extractor or page anything', async () => {
    const deployment = await deployments({ set: ['extract.pageTimeout=3s'] })
    deployment.file('loop.mjs', LOOP)
    deployment.file('regex.yaml', REGEX)
    const extractors = ['page.yaml', 'loop.mjs', 'regex.yaml'].flatMap((file) => ['--extractor', file])
    const result = await deployment.run(['run', ...[0, 1, 2, 3, 4].map(good), ...extractors, '--quiet'])
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 0, stderr: '' })
    const letters = await deployment.deadLetters()
    const told = letters.map(
      (message) => `${header(message, 'millrace-extractor')} ${header(message, 'millrace-error-code')} ${message.key?.toString()}`,
    )
    expect(told.sort()).toEqual([`loop:1 EXTRACT_TIMEOUT ${good(2)}`, `regex:1 EXTRACT_TIMEOUT ${good(3)}`])
    const records = (await deployment.records()).map(({ value }) => `${value.extractor} ${value.url}`)
    const expected = [0, 1, 2, 3, 4].flatMap((index) => [`page ${good(index)}`, ...(index === 2 ? [] : [`loop ${good(index)}`])])
    expect(records.sort()).toEqual(expected.sort())
  })

  it('costs its page one dead letter with its place and the reason, whatever it does', async () => {
    const deeds: readonly (readonly [string, string])[] = [
      ["throw new Error('on purpose')", 'EXTRACT_FAILED'],
      ['process.exit(0)', 'EXTRACT_CRASHED'],
      ['const all = []; for (;;) all.push(new Array(1000).fill(all.length))', 'EXTRACT_MEMORY'],
      ["return 'nonsense'", 'EXTRACT_RECORD_INVALID'],
      ['for (;;);', 'EXTRACT_TIMEOUT'],
    ]
    const cases = deeds.map(([deed], index) => `if (url.endsWith('/page/${index + 1}')) { ${deed} }`).join('\n')
    const wild = `export default {
  name: 'wild', version: 1,
  schema: { type: 'record', name: 'Wild', fields: [{ name: 'title', type: 'string' }] },
  extract({ $, url }) {
    ${cases}
    return [{ key: url, data: { title: $('h1').text() } }]
  },
}
`
    const deployment = await deployments({ set: ['extract.pageTimeout=12s', 'extract.pageMemory=64MiB'] })
    deployment.file('wild.mjs', wild)
    const urls = [0, 1, 2, 3, 4, 5].map(good)
    const result = await deployment.run(['run', ...urls, '--extractor', 'page.yaml', '--extractor', 'wild.mjs', '--quiet'])
    expect(result.code).toBe(0)
    const places = new Map((await deployment.pages()).map(({ message, value }) => [value.url, `${message.partition}:${message.offset}`]))
    const told = (await deployment.deadLetters()).map(
      (message) =>
        `${message.key?.toString()} ${header(message, 'millrace-error-code')} ${header(message, 'millrace-orig-partition')}:${header(message, 'millrace-orig-offset')}`,
    )
    expect(told.sort()).toEqual(deeds.map(([, code], index) => `${good(index + 1)} ${code} ${places.get(good(index + 1))}`).sort())
    const records = (await deployment.records()).map(({ value }) => `${value.extractor} ${value.url}`)
    expect(records.sort()).toEqual([...urls.map((url) => `page ${url}`), `wild ${good(0)}`].sort())
  })

  it('a file that is wrong is told with file, line and column before anything is started', async () => {
    const deployment = await deployments()
    const cases: readonly (readonly [string, string, RegExp])[] = [
      ['no-yaml.yaml', 'name: x\n  version: : 1\n', /no-yaml\.yaml:\d+:\d+ /],
      ['no-selector.yaml', "name: x\nversion: 1\nfields:\n  title: 'h1['\n", /no-selector\.yaml:4:10 /],
      ['no-field.yaml', 'name: x\nversion: 1\nfields:\n  title: { selct: h1 }\n', /no-field\.yaml:4:\d+ .*select/],
      ['no-version.yaml', 'name: x\nfields: { title: h1 }\n', /no-version\.yaml:1:1 .*version/],
      ['no-regex.yaml', "name: x\nversion: 1\nfields:\n  title: { select: h1, match: '(' }\n", /no-regex\.yaml:4:\d+ /],
      ['no-module.mjs', 'export default defineExtractor({\n  name: ,\n})\n', /no-module\.mjs:2:\d+ /],
      ['throws.mjs', "const a = 1\n\n  throw new Error('at once')\n", /throws\.mjs:3:9 .*at once/],
      ['no-export.ts', "export default {\n  name: 'x', version: '1' }\n", /no-export\.ts:2:14 "version" is "1"/],
      ['not-there.yaml', '', /not-there\.yaml/],
    ]
    for (const [name, text, expected] of cases) {
      if (text !== '') deployment.file(name, text)
      const result = await deployment.run(['run', good(0), '--extractor', name])
      expect({ name, code: result.code, stdout: result.stdout }).toEqual({ name, code: 2, stdout: '' })
      expect(result.stderr).toMatch(expected)
      expect(result.stderr).not.toMatch(/^\s+at /m)
    }
    expect(await deployment.pages()).toEqual([])
  })
})

describe('the command line', () => {
  it('names the nearest option, key or command for one that is unknown, and does nothing', async () => {
    const deployment = await deployments()
    const cases: readonly (readonly [string[], RegExp])[] = [
      [['run', good(0), '--dept', '2'], /--depth/],
      [['rum', good(0)], /run/],
      [['run', good(0), '--set', 'fetch.concurency=2'], /fetch\.concurrency/],
      [['run', good(0), '--set', 'fetch.timeouts.total=30'], /30.*(unit|s)/],
      [['run', good(0), '--max-wait', '10'], /--max-wait/],
      [['run', good(0), '--depth', 'deep'], /--depth/],
      [['run', good(0), '--out', 'no/such/folder/out.ndjson'], /no\/such\/folder/],
      [['run', '--seeds', 'no-such-seeds.txt'], /no-such-seeds\.txt/],
      [['config', 'check', '--set', 'fetch.proxies=socks4://proxy.example:1'], /socks4/],
    ]
    for (const [args, expected] of cases) {
      const result = await deployment.run(args)
      expect({ args, code: result.code, stdout: result.stdout }).toEqual({ args, code: 2, stdout: '' })
      expect(result.stderr).toMatch(expected)
    }
    expect(await deployment.outcomes()).toEqual([])
  })

  it('checks what is no extractor file at all, each with its own message', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'millrace-odd-'))
    mkdirSync(join(cwd, 'folder'))
    const files: Readonly<Record<string, string | Buffer>> = {
      'empty.yaml': '',
      'empty.ts': '',
      'latin.yaml': Buffer.from('name: x\nversion: 1\nfields: { t: { select: h1, match: "Gr\xf6\xdfe" } }\n', 'latin1'),
      'twice.yaml': 'name: x\nversion: 1\nfields: { t: h1, t: h2 }\n',
      'two.yaml': 'name: x\n---\nname: y\n',
      'one.yaml': PAGE,
      'other.yaml': PAGE,
    }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text)
    const result = await runCli(['extractors', 'check', 'folder', ...Object.keys(files)], { cwd })
    rmSync(cwd, { recursive: true })
    expect(result).toMatchObject({ code: 2, stderr: "note: one.yaml is page version 1 as well; they can't run together\n" })
    expect(result.stdout.split('\n').filter((line) => line !== '' && !line.startsWith('  parser: '))).toEqual([
      'folder: it is a folder; name the files in it, as in folder/*.yaml',
      'empty.yaml:1:1 the file holds no extractor; expected a map with name, version and fields',
      'empty.ts: its default export is no extractor; expected `export default defineExtractor({ … })`',
      'latin.yaml:3:38 the file is no text in UTF-8: byte 57 is 0xf6; save it as UTF-8',
      'twice.yaml:3:18 the key t is there twice',
      'two.yaml:2:1 the file holds several documents (---); expected one',
      'one.yaml: page version 1 is valid',
      'other.yaml: page version 1 is valid',
    ])
  })

  it('says of a page that gives no record that it gives none', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'millrace-none-'))
    writeFileSync(join(cwd, 'none.yaml'), 'name: none\nversion: 1\neach: article\nfields:\n  title: h1\n')
    writeFileSync(join(cwd, 'none.html'), '<h1>No article</h1>')
    const result = await runCli(['extractors', 'test', 'none.yaml', 'none.html'], { cwd })
    rmSync(cwd, { recursive: true })
    expect(result).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('note: the page gives no record') })
  })

  it('C110, C116: says which JSON-LD of a page is broken, and which was repaired', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'millrace-jsonld-'))
    const blocks = ['{"@type":"A","name":"a"}', '{bad}', '{"@type":"B","name":"b"};']
    const html = blocks.map((text) => `<script type="application/ld+json">${text}</script>`).join('\n')
    writeFileSync(join(cwd, 'names.yaml'), 'name: names\nversion: 1\nfields: { a: { jsonld: A.name }, b: { jsonld: B.name } }\n')
    writeFileSync(join(cwd, 'page.html'), html)
    const result = await runCli(['extractors', 'test', 'names.yaml', 'page.html'], { cwd })
    rmSync(cwd, { recursive: true })
    expect([result.code, result.stdout]).toEqual([0, expect.stringContaining('{"a":"a","b":"b"}')])
    const notes = result.stderr.split('\n').filter((line) => line.includes('JSON-LD'))
    expect(notes).toEqual([
      expect.stringMatching(/^note: JSON-LD block 2 of the page is broken: ./),
      expect.stringMatching(/^note: JSON-LD block 3 of the page is repaired: ./),
    ])
  })

  it('lets no page and no answer steer the terminal', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'millrace-steering-'))
    writeFileSync(join(cwd, 'key.yaml'), 'name: key\nversion: 1\nkey: title\nfields:\n  title: h1\n')
    writeFileSync(join(cwd, 'page.html'), '<h1>a&#27;]0;owned&#7;b\u009b2J</h1>')
    const args = ['extractors', 'test', 'key.yaml', 'page.html']
    const [shown, asJson] = [await runCli(args, { cwd }), await runCli([...args, '--json'], { cwd })]
    const failed = await runCli(['extractors', 'test', 'a\x1b[2J.yaml', 'page.html'], { cwd })
    rmSync(cwd, { recursive: true })
    expect([shown.code, shown.stdout.split('\n')[0]]).toEqual([0, expect.stringContaining('a\ufffd]0;owned\ufffdb\ufffd2J')])
    for (const text of [shown.stdout, shown.stderr, asJson.stdout, failed.stderr]) expect(text).not.toMatch(/[^\P{Cc}\n]/u)
    expect(JSON.parse(asJson.stdout).records[0].record.data.title).toBe('a\x1b]0;owned\x07b\x9b2J')
    expect(failed.stderr).toContain('a\ufffd[2J.yaml')
  })

  it.each([
    [[], 3],
    [['--strict'], 1],
  ])('of seeds gives its exit code though nobody reads what is said of them: %j', async (flags, code) => {
    const deployment = await deployments()
    deployment.file('mixed.txt', 'http://a.example/1\nno URL\nhttp://a.example/2\n')
    const { child, done } = deployment.start(['produce', '--file', 'mixed.txt', ...flags])
    child.stdout?.destroy()
    child.stderr?.destroy()
    expect((await done).code).toBe(code)
  })

  it.skipIf(!existsSync('/proc/self/mem'))('that can not be read on is told by name, and is no defect of ours', async () => {
    const result = await (await deployments()).run(['produce', '--file', '/proc/self/mem'])
    expect([result.code, result.stderr]).toEqual([2, expect.stringContaining('can not read on in /proc/self/mem: EIO')])
  })

  it('reports bad seeds by line and fetches the good ones', async () => {
    const deployment = await deployments()
    const seeds = deployment.file('seeds.txt', `${good(0)}\nnot a url\n\n# a comment\nftp://x.example/\n${good(1)}\n`)
    const result = await deployment.run(['run', '--seeds', seeds])
    expect(result.code).toBe(3)
    expect(result.stdout).toMatch(/^2 URLs: 2 fetched$/m)
    expect(result.stderr).toMatch(/^line 2: "not a url" /m)
    expect(result.stderr).toMatch(/^line 5: "ftp:\/\/x\.example\/" /m)
  })

  it('exits 4 within 15 s where the broker is not there, saying which address', async () => {
    const deployment = await deployments()
    const began = performance.now()
    const result = await deployment.run(['run', good(0), '--brokers', '127.0.0.1:1'])
    expect(result.code).toBe(4)
    expect(result.stderr).toMatch(/127\.0\.0\.1:1\b/)
    expectInTime(performance.now() - began, 15_000)
  })
})

describe('signals', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends a command that loads a module which never ends, with %i', async (signal, code) => {
    const cwd = mkdtempSync(join(tmpdir(), 'millrace-spins-'))
    writeFileSync(join(cwd, 'spins.mjs'), 'for (;;) {}\n')
    const running = startCli(['extractors', 'check', 'spins.mjs'], { cwd })
    // The extraction process of the command: it is there before the module is.
    await eventually(() => childrenOf(running.child.pid, 'extraction-process-main').length > 0, { what: 'the module to be loaded' })
    running.child.kill(signal)
    expect(await running.done).toMatchObject({ code, stdout: '' })
    rmSync(cwd, { recursive: true })
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    // A shell sends one to its jobs when a terminal is closed, and the system another one.
    ['SIGHUP', 129, 'SIGHUP'],
  ] as const)('%s drains and exits %i; a later run goes on', async (signal, code, again = undefined) => {
    const deployment = await deployments({ set: ['politeness.default.ratePerSecond=10'] })
    const before = site.requests.length
    const running = deployment.start([
      'run',
      ...site.seeds(),
      '--depth',
      String(site.depth),
      '--extractor',
      'page.yaml',
      '--crawl',
      'signals',
    ])
    await eventually(() => site.requests.length >= before + 12, { what: 'some requests' })
    running.child.kill(signal)
    if (again !== undefined) running.child.kill(again)
    const result = await running.done
    expect({ code: result.code, stderr: result.stderr }).toMatchObject({ code })
    expect(result.stderr).toContain('stopped before the crawl had ended')
    const atStop = site.requests.length
    expect(atStop - before).toBeLessThan(50)
    const rest = await deployment.run(['run', '--extractor', 'page.yaml', '--crawl', 'signals', '--json', '--quiet'])
    expect({ code: rest.code, stderr: rest.stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(rest.stdout)).toMatchObject({ audit: { difference: 0, inFlight: 0, repeats: 0, outcomes: { FETCHED: 60 } } })
    const pages = await deployment.pages()
    expect(pages).toHaveLength(60)
    expect(await deployment.records()).toHaveLength(pages.filter(({ value }) => value.status === 200).length)
  })
})

describe('the ledger at the end of a run', () => {
  it('says that it counts, and the first signal leaves it out: what is known is told at once', async () => {
    const deployment = await deployments()
    await deployment.read(async (runtime) => {
      const topic = runtime.topics.outcomes
      const outcomes = Array.from({ length: 100_000 }, (_, index) => {
        const task = newUrlTask({ url: `http://former.example/${index}`, taskId: `former-${index}` })
        return {
          topic,
          partition: 0,
          key: 'k',
          value: runtime.codec.encode('Outcome', outcomeOf(task, { kind: 'FETCHED', reason: null, at: 1 }), topic),
        }
      })
      const producer = await runtime.producer()
      for (let at = 0; at < outcomes.length; at += 5_000) await producer.send(outcomes.slice(at, at + 5_000))
    })
    const running = deployment.start(['run', '--json'])
    await eventually(() => running.stderr().includes('"counting"'), { what: 'the progress of the count' })
    running.child.kill('SIGINT')
    const signalled = performance.now()
    const result = await running.done
    expectInTime(performance.now() - signalled, 3_000)
    expect({ code: result.code, report: JSON.parse(result.stdout) }).toMatchObject({
      code: 130,
      report: { audit: null, records: 0, interrupted: false },
    })
  })
})

describe('a second run in the same folder', () => {
  it('is refused, and names the first', async () => {
    const deployment = await deployments({ set: ['politeness.default.ratePerSecond=0.2'] })
    const before = site.requests.length
    const running = deployment.start(['run', ...site.seeds(), '--depth', '1'])
    await eventually(() => site.requests.length > before, { what: 'a request' })
    const second = await deployment.run(['run', good(0)])
    expect(second.code).toBe(2)
    expect(second.stderr).toContain(String(running.child.pid))
    running.child.kill('SIGINT')
    expect((await running.done).code).toBe(130)
  })
})

describe('a reader of --out - that leaves', () => {
  it('drains the run, which keeps the rest of the crawl for the next one and says so', async () => {
    const deployment = await deployments({ set: ['politeness.default.ratePerSecond=1'] })
    const line = ['run', ...site.seeds(), '--depth', '30', '--extractor', 'page.yaml', '--out', '-', '--crawl', 'left', '--json']
    const running = deployment.start(line)
    await eventually(() => running.stdout().includes('\n'), { what: 'a record' })
    running.child.stdout?.destroy()
    const { code, stderr } = await running.done
    expect(code).toBe(3)
    expect(
      stderr
        .split('\n')
        .filter((text) => text.startsWith('{"crawlId":"left"'))
        .map((text) => JSON.parse(text)),
    ).toMatchObject([{ interrupted: true, audit: { difference: 0 } }])
  })
})

describe('the file of --out', () => {
  it('is left as it is by a run that is refused, and emptied by one that works, which says so', async () => {
    const deployment = await deployments({ set: ['politeness.default.ratePerSecond=1'] })
    const former = '{"former":"night"}\n'
    const out = deployment.file('out.ndjson', former)
    const written = (): string => readFileSync(out, 'utf8')
    const line = ['run', ...site.seeds(), '--depth', '30', '--extractor', 'page.yaml', '--out', out, '--crawl', 'nightly']
    // Port 1 of loopback: nobody listens there.
    const away = await deployment.run(line, undefined, ['brokers=127.0.0.1:1'])
    expect({ code: away.code, written: written() }).toEqual({ code: 4, written: former })

    const running = deployment.start(line)
    await eventually(() => written().startsWith('{"recordId"') && written().endsWith('\n'), { what: 'a record' })
    const [first] = written().split('\n')
    expect((await deployment.run(line)).code).toBe(2)
    expect(written().split('\n')[0]).toBe(first)
    running.child.kill('SIGINT')
    const stopped = await running.done
    expect(stopped.code).toBe(130)
    expect(stopped.stderr).toMatch(/--out: .* held 19 B, which the records of this crawl replace/)
    const records = written().trimEnd().split('\n')
    expect(records.map((record) => (JSON.parse(record) as { crawlId: string }).crawlId)).toEqual(records.map(() => 'nightly'))

    // Not a file: there is nothing to empty.
    expect(await deployment.run(['run', good(0), '--extractor', 'page.yaml', '--out', '/dev/null'])).toMatchObject({ code: 0 })
  })
})

describe('a site that refuses connections', () => {
  // Port 1 of loopback: nobody listens there.
  const dead = 'http://dead.example:1/'

  it('is tried as often as configured, and ends FAILED', async () => {
    const deployment = await deployments({ set: ['retry.maxAttempts=2', 'retry.firstDelay=1s', 'fetch.robots=ignore'] })
    const result = await deployment.run(['run', dead, good(0), '--json', '--quiet'])
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 3, stderr: '' })
    expect(JSON.parse(result.stdout)).toMatchObject({ audit: { produced: 2, difference: 0, outcomes: { FAILED: 1, FETCHED: 1 } } })
    const kinds = (await deployment.outcomes())
      .filter(({ value }) => value.url === dead)
      .map(({ value }) => `${value.kind} ${value.attempt} ${value.reason}`)
    expect(kinds).toEqual(['RETRY 1 connect-refused', 'FAILED 2 connect-refused'])
    expect(await deployment.deadLetters()).toHaveLength(1)
    // It was told when it failed: a run that finds nothing to do has done all of it.
    const again = await deployment.run(['run', '--json', '--quiet'])
    expect({ code: again.code, report: JSON.parse(again.stdout) }).toMatchObject({
      code: 0,
      report: { audit: { outcomes: { FAILED: 1 } }, endedNow: { outcomes: {} }, waitingCount: 0 },
    })
  })

  it('whose robots.txt can not be had is refused in the end', async () => {
    const deployment = await deployments({ set: ['retry.maxAttempts=2', 'retry.firstDelay=1s'] })
    const result = await deployment.run(['run', dead, '--json', '--quiet'])
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 3, stderr: '' })
    expect(JSON.parse(result.stdout)).toMatchObject({ audit: { reasons: { 'robots-unreachable': 1 }, outcomes: { REFUSED: 1 } } })
  })

  it('waits in the queue where it is due later than --max-wait, and the run says so', async () => {
    const deployment = await deployments({ set: ['retry.firstDelay=1h', 'fetch.robots=ignore'] })
    const result = await deployment.run(['run', dead, good(0), '--max-wait', '5s'])
    expect(result.code).toBe(3)
    expect(result.stdout).toMatch(/^2 URLs: 1 fetched, 1 waiting$/m)
    expect(result.stdout).toContain(dead)
  })
})
