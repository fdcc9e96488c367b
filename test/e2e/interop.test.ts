import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import avsc from 'avsc'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Deployment } from '../support/deployment.ts'
import { findJavaRunner } from '../support/java-program.ts'
import { kafkaTool, run, type ToolResult } from '../support/kafka-tools.ts'
import { LinkedSite } from '../support/linked-site.ts'
import { findPython } from '../support/python.ts'
import { brokers } from '../support/services.ts'

const EXTRACTOR =
  'name: page\nversion: 1\nfields: { title: title, heading: { select: h1, required: true }, links: { select: "a@href", type: list }, price: { select: .none, type: decimal, scale: 2, default: "12.50" } }\n'
/** The same with a field more, which records of the one before do not have. */
const NEWER = EXTRACTOR.replace('version: 1', 'version: 2').replace(' } }\n', ' }, currency: { select: .none, default: EUR } }\n')
const GROUPS = 'org.apache.kafka.tools.consumer.group.ConsumerGroupCommand'
const SCRIPT = fileURLToPath(new URL('foreign_client.py', import.meta.url))

const python = await findPython()
const java = await findJavaRunner()

interface PlainRecord {
  readonly recordId: string
  readonly url: string
  readonly extractor: string
  readonly source: { readonly topic: string; readonly offset: number }
  readonly data: { readonly title: string; readonly heading: string; readonly links: string[] }
}

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')

/** The program of a language under "Other languages", as a user copies it. Its topics are those of a folder with nothing configured. */
function exampleOf(language: string, prefix: string): string {
  const section = README.slice(README.indexOf('\n## Other languages\n'))
  const program = new RegExp(`\n\`\`\`${language}\n([\\s\\S]*?)\n\`\`\`\n`).exec(section)?.[1]
  if (program === undefined) throw new Error(`README.md has no example in ${language}`)
  return program.replaceAll('"scrape.', `"${prefix}`)
}

/** One user, whose clients are not ours. Each test goes on where the one before ended. */
describe('other Kafka clients', () => {
  const site = new LinkedSite({ hosts: 1, pagesPerHost: 30, latencyMs: () => 0 })
  let deployment: Deployment
  const bootstrap = (): string[] => ['--bootstrap-server', brokers().join(',')]
  const urlOf = (index: number): string => site.urls()[index]?.url as string
  const work = () => deployment.run(['run', '--extractor', 'page.yaml', '--quiet'])

  beforeAll(async () => {
    await site.start()
    deployment = await Deployment.open()
    deployment.file('page.yaml', EXTRACTOR)
  })
  afterAll(async () => {
    await deployment.close()
    await site.stop()
  })

  it("a line in Kafka's console producer is a task, and its page becomes a record", async () => {
    const lines = [1, 2, 3].map((index) => JSON.stringify({ url: urlOf(index) }))
    const produced = await kafkaTool(
      'org.apache.kafka.tools.ConsoleProducer',
      [...bootstrap(), '--topic', `${deployment.prefix}urls`],
      `${lines.join('\n')}\n`,
    )
    expect(produced).toMatchObject({ code: 0 })
    const result = await work()
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 0, stderr: '' })
    expect(result.stdout).toContain('3 URLs in the log: 3 fetched')
    const records = await deployment.records()
    expect(records.map(({ value }) => value.url).sort()).toEqual([1, 2, 3].map(urlOf).sort())
  })

  it("a record read by Kafka's console consumer decodes with a plain Avro library and the schema file of the data folder", async () => {
    const read = await kafkaTool('org.apache.kafka.tools.consumer.ConsoleConsumer', [
      ...bootstrap(),
      ...[
        '--topic',
        `${deployment.prefix}records`,
        '--from-beginning',
        '--max-messages',
        '1',
        '--isolation-level',
        'read_committed',
        '--timeout-ms',
        '60000',
      ],
    ])
    expect(read.code, read.stderr).toBe(0)
    expect(read.stdout.subarray(0, 2)).toEqual(Buffer.from([0xc3, 0x01]))
    const fingerprint = read.stdout.readBigUInt64LE(2).toString(16).padStart(16, '0')
    const folder = join(deployment.dataDir, 'schemas')
    const file = readdirSync(folder).find((name) => name.includes(fingerprint)) as string
    const type = avsc.Type.forSchema(JSON.parse(readFileSync(join(folder, file), 'utf8')))
    // The consumer ends each message with a line end.
    const record = type.fromBuffer(read.stdout.subarray(10, -1)) as PlainRecord
    const path = new URL(record.url).pathname
    expect(record).toMatchObject({ extractor: 'page', source: { topic: `${deployment.prefix}html` } })
    expect(record.data.heading).toBe(`Page ${path.split('/')[2]}`)
    expect(record.data.links.length).toBeGreaterThan(0)
  })

  it.skipIf(python.kind === 'none')(
    `a client in Python produces a task and reads the records${python.kind === 'none' ? ` (skipped: ${python.reason})` : ''}`,
    { timeout: 180_000 },
    async () => {
      if (python.kind === 'none') return
      const address = brokers().join(',')
      const produced = await run(python.command, [SCRIPT, 'produce', address, `${deployment.prefix}urls`, urlOf(4), urlOf(5)])
      expect(produced.code, produced.stderr).toBe(0)
      expect((await work()).stdout).toContain('5 URLs in the log: 5 fetched')
      const read = await run(python.command, [
        SCRIPT,
        'consume',
        address,
        `${deployment.prefix}records`,
        join(deployment.dataDir, 'schemas'),
        '5',
      ])
      expect(read.code, read.stderr).toBe(0)
      const lines = read.stdout.toString('utf8').trim().split('\n')
      const records = lines.map((line) => JSON.parse(line) as { key: string; headers: Record<string, string>; record: PlainRecord })
      expect(records.map(({ record }) => record.url).sort()).toEqual([1, 2, 3, 4, 5].map(urlOf).sort())
      for (const { key, headers, record } of records) {
        expect(key).toBe(`page/${record.url}`)
        expect(headers['content-type']).toBe('application/avro')
        expect(headers['millrace-schema']).toMatch(/^io\.millrace\.records\.Page:[0-9a-f]{16}$/)
        expect(record.data.title).toMatch(/^shop0\.example \d$/)
      }
    },
  )

  it.skipIf(python.kind === 'none')(
    `the program in Python of the README produces a task, and reads its record once there is one${python.kind === 'none' ? ` (skipped: ${python.reason})` : ''}`,
    { timeout: 180_000 },
    async () => {
      if (python.kind === 'none') return
      deployment.file('example.py', exampleOf('python', deployment.prefix))
      const { command } = python
      await isReadOnceWorked(() => run(command, ['example.py', brokers().join(','), urlOf(6)], '', deployment.folder), 6)
    },
  )

  it.skipIf(java.kind === 'none')(
    `the program in Java of the README produces a task, and reads its record once there is one${java.kind === 'none' ? ` (skipped: ${java.reason})` : ''}`,
    { timeout: 120_000 },
    async () => {
      if (java.kind === 'none') return
      const { run: runJava } = java
      deployment.file('Example.java', exampleOf('java', deployment.prefix))
      await isReadOnceWorked(() => runJava('Example.java', [brokers().join(','), urlOf(7)], deployment.folder), 7)
    },
  )

  /**
   * Runs a program that produces a page and prints all records: none of the page before the work is done, one after it, beside those that
   * an older version of the extractor wrote.
   */
  async function isReadOnceWorked(program: () => Promise<ToolResult>, index: number): Promise<void> {
    const of = (result: ToolResult, page: number): string[] => {
      expect(result.code, result.stderr).toBe(0)
      return result.stdout
        .toString()
        .split('\n')
        .filter((line) => line.startsWith(`page/${urlOf(page)} `))
    }
    expect(of(await program(), index)).toEqual([])
    deployment.file('page.yaml', NEWER)
    await work()
    const printed = await program()
    const lines = of(printed, index)
    expect(lines).toEqual([expect.stringMatching(/shop0\.example \d.*\b12\.50\b.*\bEUR\b/)])
    expect(lines[0]).toContain(`${deployment.prefix}html`)
    const older = of(printed, 1)
    expect(older).toEqual([expect.stringMatching(/shop0\.example \d.*\b12\.50\b/)])
    expect(older[0]).not.toContain('EUR')
    // The second run has produced the page once more; a page that was fetched is fetched again when it is asked for.
    await work()
  }

  it("Kafka's own tool lists and describes the groups, and an extract group that it resets gives every record again", async () => {
    const group = `${deployment.prefix}extract`
    const listed = await kafkaTool(GROUPS, [...bootstrap(), '--list'])
    const groups = listed.stdout.toString().split('\n')
    for (const name of ['fetch', 'extract', 'frontier']) expect(groups).toContain(`${deployment.prefix}${name}`)
    const described = await kafkaTool(GROUPS, [...bootstrap(), '--describe', '--group', group])
    expect(described.code, described.stderr).toBe(0)
    const lags = described.stdout
      .toString()
      .split('\n')
      .filter((line) => line.includes(`${deployment.prefix}html`))
      .map((line) => line.split(/\s+/)[5])
    expect(lags.length).toBeGreaterThan(0)
    expect(new Set(lags)).toEqual(new Set(['0']))

    const before = await deployment.records()
    const requests = site.requests.length
    const reset = await kafkaTool(GROUPS, [
      ...bootstrap(),
      '--group',
      group,
      '--topic',
      `${deployment.prefix}html`,
      '--reset-offsets',
      '--to-earliest',
      '--execute',
    ])
    expect(reset.code, reset.stderr).toBe(0)
    const result = await work()
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 0, stderr: '' })

    const all = await deployment.records()
    const textOf = (value: unknown): string => JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part))
    const counts = (texts: readonly string[]): Set<number> => new Set(texts.map((text) => texts.filter((other) => other === text).length))
    expect(all).toHaveLength(before.length * 2)
    expect(counts(all.map(({ value }) => textOf(value.source)))).toEqual(new Set([2]))
    // What the version that works now had given before is the very same record again.
    const working = Math.max(...before.map(({ value }) => value.extractorVersion))
    const known = new Set(before.filter(({ value }) => value.extractorVersion === working).map(({ value }) => value.recordId))
    const again = all.filter(({ value }) => known.has(value.recordId))
    expect(known.size).toBeGreaterThan(0)
    expect(counts(again.map(({ value }) => textOf([value.recordId, value.source, value.data])))).toEqual(new Set([2]))
    expect(site.requests).toHaveLength(requests)
  })
})
