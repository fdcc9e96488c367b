import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Kafka, logLevel } from 'kafkajs'
import { beforeAll, describe, expect, it } from 'vitest'
import { type CliResult, lines, runCli, startCli } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { expectInTime } from '../support/in-time.ts'
import { brokers, uniqueName } from '../support/services.ts'

/** The commands as a user types them, against the broker of the tests. */
const cwd = mkdtempSync(join(tmpdir(), 'millrace-cli-'))
const prefix = `${uniqueName('cli')}.`

const scope = ['--brokers', brokers().join(','), '--set', `topics.prefix=${prefix}`, '--set', 'topics.partitions.urls=4']

function cli(...args: string[]): Promise<CliResult> {
  return runCli([...args, ...scope], { cwd })
}

describe('topics', () => {
  it('are planned, made, and then need nothing', async () => {
    const before = JSON.parse((await cli('topics', 'plan', '--json')).stdout) as { kind: string; topic: string }[]
    expect(before.map(({ kind }) => kind)).toEqual(Array(12).fill('create'))
    expect((await cli('topics', 'apply')).code).toBe(0)
    const after = await cli('topics', 'plan', '--json')
    expect([after.code, JSON.parse(after.stdout)]).toEqual([0, []])
    expect((await cli('topics', 'describe')).stdout).toContain(`${prefix}html`)
    const fewer = await cli('topics', 'apply', '--set', 'topics.partitions.html=2')
    expect([fewer.code, fewer.stdout]).toEqual([2, ''])
    expect(fewer.stderr).toContain('Kafka can not take partitions away')
    const refused = await cli('topics', 'plan', '--set', 'topics.partitions.html=2')
    expect([refused.code, refused.stdout]).toEqual([2, '0 changes, and 1 that can not be made; nothing was changed\n'])
  })

  it('are missing before, and the command says what to type', async () => {
    const result = await runCli(
      ['run', 'http://127.0.0.1:1/', '--brokers', brokers().join(','), '--set', `topics.prefix=${uniqueName('none')}.`],
      { cwd },
    )
    expect(result.code).toBe(4)
    expect(result.stderr).toContain('millrace topics apply')
  })
})

describe('a stage', () => {
  it('goes on though nobody reads what it remarks', async () => {
    await cli('topics', 'apply')
    const running = startCli(['delay', ...scope], { cwd })
    // It says that it runs, once it does.
    running.child.stderr?.destroy()
    const works = async (): Promise<boolean> => (await cli('status', '--json')).stdout.includes('"stage":"delay"')
    await eventually(works, { what: 'its heartbeat', everyMs: 200 })
    running.child.kill('SIGTERM')
    expect((await running.done).code).toBe(143)
  })
})

describe('produce and consume', () => {
  beforeAll(async () => {
    await cli('topics', 'apply')
  })

  it('follow until a time that is still ahead, and give what was written before it', async () => {
    await cli('produce', 'http://ahead.example.test/', '--crawl', 'ahead')
    const to = Date.now() + 10_000
    const consumed = await cli('consume', 'urls', '--crawl', 'ahead', '--from-beginning', '--follow', '--to', new Date(to).toISOString())
    expect([consumed.code, lines(consumed).length]).toEqual([0, 1])
    expect(Date.now()).toBeGreaterThanOrEqual(to)
  })

  it('write what is good, tell bad lines with their number, and end with 3', async () => {
    const file = join(cwd, 'urls.txt')
    writeFileSync(file, '# list\n\n  http://a.example.test/  \nhttp://b.example.test/#x\nnot a url\n')
    const result = await cli('produce', '--file', file, '--crawl', 'c1', '--meta', 'k=v')
    expect(result.code).toBe(3)
    expect(result.stderr).toContain('line 5: "not a url"')
    const bodies = await cli('consume', 'urls', '--body')
    expect([bodies.code, bodies.stderr]).toEqual([2, expect.stringContaining('--body goes with html')])
    const consumed = await cli('consume', 'urls', '--crawl', 'c1')
    const urls = lines<{ value: { url: string; meta: object; taskId: string } }>(consumed).map(({ value }) => value)
    expect(urls.map(({ url }) => url).sort()).toEqual(['http://a.example.test/', 'http://b.example.test/'])
    expect(urls[0]?.meta).toEqual({ k: 'v' })
    expect(new Set(urls.map(({ taskId }) => taskId)).size).toBe(2)
  })

  it('write method, headers and body of the request', async () => {
    const file = join(cwd, 'body.bin')
    writeFileSync(file, Buffer.from([0x61, 0x3d, 0xff]))
    await cli('produce', 'http://post.example.test/', '--crawl', 'c-post', '--body-file', file, '--header', 'content-type: text/plain')
    await cli('produce', 'http://put.example.test/', '--crawl', 'c-post', '--method', 'put', '--body', 'é')
    const get = await cli('produce', 'http://get.example.test/', '--crawl', 'c-get', '--method', 'get', '--body', 'x')
    expect(get).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('note: a GET with a body, which many servers pass over or refuse'),
    })
    const consumed = lines<{ value: { method: string; body: string; headers: object } }>(await cli('consume', 'urls', '--crawl', 'c-post'))
    const tasks = consumed.map(({ value: { method, body, headers } }) => ({ method, body, headers }))
    expect(tasks.sort((a, b) => a.method.localeCompare(b.method))).toEqual([
      { method: 'POST', body: 'YT3/', headers: { 'content-type': 'text/plain' } },
      { method: 'PUT', body: 'w6k=', headers: {} },
    ])
  })

  it('take a list from standard input as it comes, and keep what was written when they are interrupted', async () => {
    const running = startCli(['produce', '--file', '-', '--crawl', 'c2', ...scope], {
      cwd,
      input: 'http://f.example.test/\r\nnonsense\r\n',
      keepInputOpen: true,
    })
    const consumed = await eventually(
      async () => {
        const found = lines<{ value: { url: string } }>(await cli('consume', 'urls', '--crawl', 'c2'))
        return found.length > 0 && found
      },
      { what: 'the line that was given' },
    )
    expect(consumed.map(({ value }) => value.url)).toEqual(['http://f.example.test/'])
    running.child.kill('SIGINT')
    const result = await running.done
    expect(result.code).toBe(130)
    expect(result.stderr).toContain('line 2: "nonsense"')
    expect(result.stderr).toContain('interrupted after line 2: the rest of the input was not read')
    expect(result.stdout).toBe('1 URL written, 1 bad one skipped\n')
  })

  it('read JSON that another producer wrote, and show what is no task with its reason', async () => {
    const producer = new Kafka({ brokers: brokers(), clientId: 'foreign', logLevel: logLevel.NOTHING }).producer()
    await producer.connect()
    const values = ['{"url": "http://g.example.test/", "crawlId": "c3"}', 'rubbish']
    await producer.send({ topic: `${prefix}urls.low`, messages: values.map((value) => ({ partition: 0, value })) })
    await producer.disconnect()
    const shown = lines<{ value: unknown; undecodable?: string }>(await cli('consume', 'urls.low'))
    expect(shown.map(({ undecodable }) => undecodable)).toEqual([undefined, 'MESSAGE_FRAMING_UNKNOWN'])
    expect(shown[0]?.value).toMatchObject({ url: 'http://g.example.test/', crawlId: 'c3' })
    expect(Buffer.from(String(shown[1]?.value), 'base64').toString()).toBe('rubbish')
  })

  it('end with 1 when not one line is good, and with 0 when all are', async () => {
    expect((await cli('produce', 'nonsense')).code).toBe(1)
    expect((await cli('produce', 'http://c.example.test/')).code).toBe(0)
  })

  it('say of a depth what is wrong with it, before what it lacks', async () => {
    const refused = await cli('produce', 'http://a.example.test/', '--max-depth', '-1')
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('crawl.maxDepth (--depth): "-1" is not at least 0')])
  })

  it('count what waits, and find no difference', async () => {
    const result = await cli('audit', '--json', '--crawl', 'c1')
    expect(result.code).toBe(0)
    expect(JSON.parse(result.stdout)).toMatchObject({ produced: 2, inFlight: 2, difference: 0, missing: [] })
    expect((await cli('audit', '--crawl', 'c1')).stderr).not.toContain('is known')
    expect((await cli('audit', '--crawl', 'c11')).stderr).toContain('no task of a crawl "c11" is known')
  })

  it('C201: take the URLs of a list, not its blank lines and comments, and count those alone', async () => {
    const file = join(cwd, 'list.txt')
    writeFileSync(file, '# list\n\n  http://a.example.test/  \nhttp://b.example.test/#x\n\n')
    const urlsOf = async (crawl: string): Promise<string[]> =>
      lines<{ value: { url: string } }>(await cli('consume', 'urls', '--crawl', crawl)).map(({ value }) => value.url)
    const all = await cli('produce', '--file', file, '--crawl', 'c201', '--strict')
    expect([all.code, all.stdout, all.stderr]).toEqual([0, '2 URLs written\n', ''])
    expect((await urlsOf('c201')).sort()).toEqual(['http://a.example.test/', 'http://b.example.test/'])
    const input =
      '# list\n\n\thttp://a.example.test/#not a comment\u00a0\r\nnonsense\r\n\r\nhttp://b.example.test/\r\nhttp://c.example.test/'
    const two = await runCli(['produce', '--file', '-', '--crawl', 'c201-two', '--limit', '2', ...scope], { cwd, input })
    expect([two.code, two.stdout]).toEqual([3, '2 URLs written, 1 bad one skipped\n'])
    expect((await urlsOf('c201-two')).sort()).toEqual(['http://a.example.test/', 'http://b.example.test/'])
    expect(await cli('produce', 'http://a.example.test/', '--limit', '0')).toMatchObject({ code: 2, stdout: '' })
  })

  it('C203: write what is good of a list and report all that is bad together; write nothing where they are strict, or nothing is good', async () => {
    const file = join(cwd, 'seeds.txt')
    const isBad = (index: number): boolean => index % 20 === 7
    const bad = ['not a url', 'ftp://x.example.test/', 'http://[::1', '/relative', 'http://']
    const seeds = Array.from({ length: 100 }, (_, index) =>
      isBad(index) ? (bad[Math.floor(index / 20)] ?? '') : `http://s.example.test/${index}`,
    )
    writeFileSync(file, seeds.join('\n'))
    const strict = await cli('produce', '--file', file, '--crawl', 'c203', '--strict')
    expect([strict.code, strict.stdout]).toEqual([1, '0 URLs written, 5 bad ones skipped\n'])
    expect(lines(await cli('consume', 'urls', '--crawl', 'c203'))).toEqual([])
    const strictRun = await cli('run', '--seeds', file, '--crawl', 'c203', '--strict')
    expect([strictRun.code, strictRun.stdout]).toEqual([1, '0 URLs written, 5 bad ones skipped\n'])
    const loose = await cli('produce', '--file', file, '--crawl', 'c203')
    expect([loose.code, loose.stdout]).toEqual([3, '95 URLs written, 5 bad ones skipped\n'])
    for (const { stderr } of [strict, strictRun, loose]) {
      expect(stderr.match(/^line \d+(?=:)/gm)).toEqual([8, 28, 48, 68, 88].map((line) => `line ${line}`))
    }
    expect(lines(await cli('consume', 'urls', '--crawl', 'c203'))).toHaveLength(95)
    writeFileSync(file, bad.join('\n'))
    for (const flags of [[], ['--strict']]) {
      const none = await cli('produce', '--file', file, '--crawl', 'c203-none', ...flags)
      expect([none.code, none.stdout]).toEqual([1, '0 URLs written, 5 bad ones skipped\n'])
    }
  })

  it('show one message at an offset', async () => {
    const all = lines<{ partition: number; offset: number }>(await cli('consume', 'urls'))
    const some = all[0]
    const one = lines<{ partition: number; offset: number }>(
      await cli('consume', `${prefix}urls`, '--offset', `${some?.partition}:${some?.offset}`, '--max', '1'),
    )
    expect(one).toHaveLength(1)
    expect(one[0]).toMatchObject({ partition: some?.partition, offset: some?.offset })
  })

  it.each([
    ['consume', 'urls', '--follow', '--from-beginning'],
    ['consume', 'urls'],
    ['config', 'print'],
    ['schemas', 'list', '--json'],
  ])('C199: end quietly when the reader closes: %s %s', async (...args) => {
    const running = startCli([...args, ...scope], { cwd })
    running.child.stdout?.once('data', () => running.child.stdout?.destroy())
    if (args.includes('--follow')) await cli('produce', 'http://d.example.test/', 'http://e.example.test/')
    await eventually(() => running.child.exitCode !== null, { what: 'the command to end' })
    expect([running.child.exitCode, running.stderr()]).toEqual([0, ''])
  })
})

describe('looking', () => {
  it('gives the status of every group and partition', async () => {
    const report = JSON.parse((await cli('status', '--json')).stdout) as { groups: object[] }
    expect(report.groups.length).toBe(3 * 4 + 4 * 4 + 4 + 4)
    expect(Object.keys(report.groups[0] ?? {})).toEqual(
      expect.arrayContaining(['group', 'topic', 'partition', 'committed', 'end', 'lag', 'lagSeconds', 'runnable']),
    )
    const table = await cli('status')
    expect(Math.max(...table.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
  })

  it('gives the status again and again with rates, and ends with the code of the signal', async () => {
    const running = startCli(['status', '--watch', '--json', ...scope], { cwd })
    await eventually(() => running.stdout().split('\n').length > 2, { what: 'a second status' })
    running.child.kill('SIGINT')
    const result = await running.done
    expect([result.code, result.stderr]).toEqual([130, ''])
    const [first, second] = lines<{ at: number; summary: { group: string }[]; rates?: Record<string, number> }>(result)
    expect(first?.rates).toBeUndefined()
    expect(Object.keys(second?.rates ?? {}).sort()).toEqual(second?.summary.map(({ group }) => group).sort())
    expect(second?.at).toBeGreaterThan(first?.at ?? Number.POSITIVE_INFINITY)
  })

  it('names a task that is neither finished nor waiting, and ends with 1, so that a script notices', async () => {
    await cli('produce', 'http://lost.test/', '--crawl', 'lost')
    const [lost] = lines<{ topic: string; partition: number; offset: number; value: { taskId: string } }>(
      await cli('consume', 'urls', '--crawl', 'lost'),
    )
    if (lost === undefined) throw new Error('it was not written')
    const { topic, partition, offset } = lost
    const admin = new Kafka({ brokers: brokers(), clientId: 'foreign', logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    await admin.setOffsets({ groupId: `${prefix}fetch`, topic, partitions: [{ partition, offset: String(BigInt(offset) + 1n) }] })
    await admin.disconnect()
    const shown = await cli('audit', '--crawl', 'lost')
    expect([shown.code, shown.stdout.split('\n').at(-2)]).toEqual([
      1,
      `missing: http://lost.test/ (task ${lost.value.taskId}, ${topic}:${partition}:${offset})`,
    ])
    const counted = await cli('audit', '--crawl', 'lost', '--json')
    expect([counted.code, JSON.parse(counted.stdout)]).toMatchObject([1, { produced: 1, inFlight: 0, difference: 1 }])
  })

  it('lists schemas whole, and dead letters', async () => {
    const schemas = JSON.parse((await cli('schemas', 'list', '--json')).stdout) as { name: string; schema: { fields: object[] } }[]
    expect(schemas.find(({ name }) => name === 'io.millrace.v1.Page')?.schema.fields.length).toBeGreaterThan(20)
    expect((await cli('dead-letters', 'list', '--json')).stdout).toBe('')
    const shown = await cli('dead-letters', 'show', '0:5')
    expect([shown.code, shown.stdout]).toEqual([2, ''])
    expect(shown.stderr).toContain('there is no dead letter at 0:5')
  })

  it('refuses a place that is not there rather than show another', async () => {
    const offset = await cli('consume', 'urls.high', '--offset', '0:99')
    expect([offset.code, offset.stdout]).toEqual([2, ''])
    expect(offset.stderr).toContain('99 is not in partition 0')
    expect((await cli('consume', 'html', '--offset', '77:0')).stderr).toContain('has no partition 77; it has 4, from 0')
    const topic = await cli('consume', 'recods')
    expect(topic.code).toBe(2)
    expect(topic.stderr).toContain('did you mean records?')
  })

  it('prints every option with its value and where it came from', async () => {
    const options = JSON.parse((await cli('config', 'print', '--json', '--set', 'fetch.concurrency=7')).stdout) as {
      option: string
      value: string
      source: string
    }[]
    const byName = new Map(options.map((option) => [option.option, option]))
    expect(byName.get('fetch.concurrency')?.value).toBe('7')
    expect(byName.get('fetch.concurrency')?.source).toContain('--set')
    expect(byName.get('topics.retention.html')?.source).toBe('default')
    const table = await cli('config', 'print')
    expect(Math.max(...table.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
  })

  it('examines what a crawl needs', async () => {
    const findings = JSON.parse((await cli('doctor', '--json')).stdout) as { check: string; level: string; fix?: string }[]
    expect(findings.find(({ check }) => check === 'Kafka')?.level).toBe('ok')
    for (const finding of findings) if (finding.level !== 'ok') expect(finding.fix).toBeTruthy()
  })

  it('speaks up where sites could not tell who asks, nor write to them: before a crawl, and of the configuration', async () => {
    const unnamed = 'fetch.userAgent is not set: sites can not tell who asks, nor write to you'
    const told = (texts: readonly string[]): string[] => texts.filter((text) => text.startsWith('fetch.userAgent'))
    const findings = JSON.parse((await cli('doctor', '--json')).stdout) as { check: string; level: string; text: string }[]
    const warned = findings.filter(({ check, level }) => check === 'configuration' && level === 'warn')
    expect(told(warned.map(({ text }) => text))).toEqual([expect.stringContaining(unnamed)])
    const shown = await cli('config', 'check')
    expect([shown.code, shown.stdout]).toEqual([0, 'the configuration is valid\n'])
    expect(shown.stderr).toContain(`note: ${unnamed}`)
    const named = await cli('config', 'check', '--json', '--set', 'fetch.userAgent=examplebot/1.0 (+https://example.com/bot)')
    expect(told((JSON.parse(named.stdout) as { advice: string[] }).advice)).toEqual([])
  })
})

describe('mistakes', () => {
  it.each([
    [['runn'], 'Did you mean run?'],
    [['run', '--extractr', 'x'], 'Did you mean --extractor?'],
    [['replay', 'prevew', '--extractor', 'x'], "unknown command 'prevew'\n(Did you mean preview?)"],
    [['replay', 'undo'], "unknown command 'undo'\n"],
    [['config', 'print', '--set', 'fetch.concurency=1'], 'did you mean fetch.concurrency?'],
    [['consume', '--max', '0'], 'is not a whole number above 0'],
    [['consume', '--from', 'yesterday'], 'is no time'],
    [['replay', 'run', '--extractor', 'x.yaml'], 'say --in-place'],
    [['produce'], 'give URLs'],
    [['produce', 'http://a.test/', '--file', 'no-such-file'], 'no such file'],
    [['produce', '--file', '.'], 'it is a folder'],
    [['produce', 'http://a.test/', '--max-depth', '2'], 'name it with --crawl'],
    [['produce', 'http://a.test/', '--expires', '2020-01-01'], 'is not after now'],
    [['produce', 'http://a.test/', '--header', 'no colon'], "is not 'name: value'"],
    [['produce', 'http://a.test/', '--header', 'a: b\r\nc: d'], '"a" has characters that no header may hold'],
    [['produce', 'http://a.test/', '--header', 'Host: b.test'], '"Host" is a header that is not the task\'s to set'],
    [['produce', 'http://a.test/', '--header', 'a b: c'], '"a b" is no name of a header'],
    [['produce', 'http://a.test/', '--method', 'X!'], 'is no method for a page'],
    [['sites', 'pause', '*.a.test'], 'write a.test, which covers all hosts below it'],
    [['produce', 'http://a.test/', '--method', 'CONNECT'], 'is no method for a page'],
    [['produce', 'http://a.test/', '--body', 'x', '--body-file', 'y'], 'not both'],
    [['produce', 'http://a.test/', '--body-file', 'no-such-file'], 'no such file'],
    [['produce', '--file', '-', '--body-file', '-'], 'can not both be standard input'],
    [['produce', 'http://a.test/', '--lane', 'fast'], 'Allowed choices are high, normal, low'],
    [['dead-letters', 'show', 'x'], 'is not PARTITION:OFFSET'],
    [['dead-letters', 'list', '--code', 'INTERNALL'], 'dead letters have no "INTERNALL"; did you mean INTERNAL?'],
    [['dead-letters', 'list', '--stage', 'fetches-them'], 'expected one of'],
    [['consume', '--from-beginning', '--from', '1h'], 'give one of'],
    [['up', '--port', '99999'], 'is no port'],
    [['extract', '--candidate', '--group', 'other'], 'a candidate has a group of its own'],
    [['status', '--fields', '--watch'], 'say one'],
    [['run', '--strict'], '--strict goes with URLs'],
    [['run', '--depth', '2'], '--depth goes with URLs'],
    [['replay', 'run', '--extractor', 'x.yaml', '--in-place', '--drain-timeout', '1s'], '--drain-timeout goes with --shadow'],
  ])('%j end with 2 and say what was meant', async (args, text) => {
    const result = await runCli(args, { cwd })
    expect(result.code).toBe(2)
    expect(result.stderr).toContain(text)
    expect(result.stdout).toBe('')
  })

  it('name every broker that could not be reached, in less than 15 s, and end with 4', async () => {
    const started = performance.now()
    const result = await runCli(['status', '--brokers', '127.0.0.1:1,nowhere.invalid:9092'], { cwd })
    expectInTime(performance.now() - started, 15_000)
    expect(result.code).toBe(4)
    expect(result.stderr).toContain('127.0.0.1:1: connect ECONNREFUSED')
    expect(result.stderr).toContain('nowhere.invalid:9092')
  })

  it('show a stack only when asked, and JSON where JSON was asked for', async () => {
    const plain = await runCli(['status', '--brokers', '127.0.0.1:1'], { cwd })
    expect(plain.stderr).not.toContain('    at ')
    const json = await runCli(['status', '--brokers', '127.0.0.1:1', '--json'], { cwd })
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: 'KAFKA_UNREACHABLE' } })
  })

  it('are told for every command with an example in its help', async () => {
    for (const args of [
      ['run'],
      ['produce'],
      ['consume'],
      ['replay', 'plan'],
      ['replay', 'run'],
      ['topics', 'apply'],
      ['extractors', 'test'],
      ['up'],
      ['doctor'],
    ]) {
      const help = await runCli([...args, '--help'], { cwd })
      expect(help.code).toBe(0)
      expect(help.stdout).toContain('Example:')
      expect(Math.max(...help.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(81)
    }
  })
})

describe('a signal', () => {
  it('ends a command that follows, with the code of the signal', async () => {
    const args = ['consume', 'urls', '--follow', '--from-beginning', '--brokers', brokers().join(','), '--set', `topics.prefix=${prefix}`]
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const running = startCli(args, { cwd })
      await eventually(() => running.stdout() !== '', { what: 'the first message' })
      running.child.kill(signal)
      expect((await running.done).code).toBe(code)
    }
  })
})
