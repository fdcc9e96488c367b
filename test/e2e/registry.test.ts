import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { SchemaRegistry } from '@kafkajs/confluent-schema-registry'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Apicurio, findApicurio } from '../support/apicurio.ts'
import { lines } from '../support/cli.ts'
import { committed, Deployment } from '../support/deployment.ts'
import { findJavaRunner } from '../support/java-program.ts'
import { run } from '../support/kafka-tools.ts'
import { findPython } from '../support/python.ts'
import { brokers } from '../support/services.ts'

const found = await findApicurio()
const python = found.kind === 'none' ? found : await findPython(['confluent-kafka[avro,schemaregistry]==2.16.1'])
const java = found.kind === 'none' ? found : await findJavaRunner()
const reason = found.kind === 'none' ? ` (skipped: ${found.reason})` : ''
const PYTHON = fileURLToPath(new URL('registry_client.py', import.meta.url))
const JAVA = fileURLToPath(new URL('RegistryClient.java', import.meta.url))

const FIELDS = 'title: h1, price: { select: .price, type: decimal, scale: 2 }'
const LATER = 'day: { select: "time@datetime", type: date }, seen: { select: "time@datetime", type: timestamp }'
const extractor = (version: number, fields: string): string => `name: book\nversion: ${version}\nfields: { ${fields} }\n`
const page = (name: string): string => `<h1>${name}</h1><p class="price">12.50</p><time datetime="2026-03-04T05:06:07Z">in spring</time>`

interface PlainRecord {
  readonly version: number
  readonly url: string
  readonly data: Readonly<Record<string, string | null>>
}

/** One user with a registry of somebody else's. Each test goes on where the one before ended. */
describe.skipIf(found.kind === 'none')(`with a schema registry${reason}`, () => {
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(page((request.url ?? '/').slice(1)))
  })
  let apicurio: Apicurio
  let deployment: Deployment
  let records: string
  const site = (path: string): string => `http://books.example:${(server.address() as AddressInfo).port}/${path}`
  const crawl = async (...paths: string[]): Promise<void> => {
    const result = await deployment.run(['run', ...paths.map(site), '--extractor', 'book.yaml'])
    expect(result.code, result.stderr).toBe(0)
  }
  const sorted = (found: readonly PlainRecord[]): PlainRecord[] => [...found].sort((one, other) => one.version - other.version)

  beforeAll(async () => {
    if (found.kind === 'none') return
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    apicurio = await found.start()
    deployment = await Deployment.open({ set: [`registry.url=${apicurio.url}`] })
    records = `${deployment.prefix}records`
    deployment.file('book.yaml', extractor(1, FIELDS))
  })
  afterAll(async () => {
    await deployment?.close()
    await apicurio?.stop()
    server.close()
  })

  it('checks schemas for a build, and registers them with their levels', async () => {
    const before = await deployment.run(['schemas', 'check', 'book.yaml', '--json'])
    expect(before.code, before.stderr).toBe(0)
    const checked = JSON.parse(before.stdout) as { subject: string; verdict: string }[]
    expect(checked.find(({ subject }) => subject === `${records}-io.millrace.records.Book`)?.verdict).toBe('first')
    const registered = await deployment.run(['schemas', 'register', 'book.yaml', '--json'])
    expect(registered.code, registered.stderr).toBe(0)
    const levels = Object.fromEntries(
      (JSON.parse(registered.stdout) as { subject: string; level: string }[]).map(({ subject, level }) => [subject, level]),
    )
    expect(levels).toMatchObject({
      [`${records}-io.millrace.records.Book`]: 'BACKWARD_TRANSITIVE',
      [`${deployment.prefix}urls-value`]: 'FULL_TRANSITIVE',
      [`${deployment.prefix}html-value`]: 'FULL_TRANSITIVE',
    })
    const after = await deployment.run(['schemas', 'check', 'book.yaml'])
    expect(after.stdout).toMatch(/\d+ schemas may go live/)
    expect(after.stdout).not.toMatch(/\bfirst\b/)
  })

  it('writes every message in its framing, and reads them all again', async () => {
    await crawl('one', 'two')
    await deployment.read(async (runtime) => {
      const { topics } = runtime
      for (const topic of [topics.urls.normal, topics.html, topics.outcomes, topics.records])
        for (const { value } of await committed(runtime, topic)) expect([topic, value?.[0]]).toEqual([topic, 0])
    })
    const consumed = lines<{ value: { data: object } }>(await deployment.run(['consume', 'records']))
    expect(consumed.map(({ value }) => value.data)).toHaveLength(2)
    const audited = await deployment.run(['audit', '--json'])
    expect(JSON.parse(audited.stdout)).toMatchObject({ produced: 2, difference: 0 })
    expect((await deployment.run(['doctor'])).stdout).toContain(`${apicurio.url} answers`)
  })

  it('lets a new version live that reads the old one, and refuses one that does not, by field and reason', async () => {
    deployment.file('book.yaml', extractor(2, `${FIELDS}, ${LATER}`))
    await crawl('three')
    deployment.file('bad.yaml', extractor(3, 'title: h1, price: { select: .price, type: decimal, scale: 3 }'))
    const checked = await deployment.run(['schemas', 'check', 'bad.yaml'])
    expect(checked.code).toBe(2)
    expect(checked.stdout).toMatch(/^book:\d+:$/m)
    expect(checked.stdout).toMatch(
      /version 1: data\.price: a decimal of precision 38 and scale 3 can't be read from a decimal of precision 38 and scale 2/,
    )
    const ran = await deployment.run(['run', site('four'), '--extractor', 'bad.yaml'])
    expect(ran.code).toBe(2)
    expect(ran.stderr).toContain('data.price')
    const registered = await deployment.run(['schemas', 'register', 'bad.yaml'])
    expect(registered.code).toBe(2)
  })

  it('refuses a version that only the registry knows to be incompatible', async () => {
    deployment.file('shelf.yaml', 'name: shelf\nversion: 1\nfields: { price: { select: .price, type: decimal, scale: 2 } }\n')
    expect((await deployment.run(['schemas', 'register', 'shelf.yaml'])).code).toBe(0)
    deployment.file('shelf.yaml', 'name: shelf\nversion: 2\nfields: { price: { select: .price, type: decimal, scale: 3 } }\n')
    const ran = await deployment.run(['run', site('four'), '--extractor', 'shelf.yaml'])
    expect(ran.code).toBe(2)
    expect(ran.stderr).toContain(`may not follow what is registered under ${records}-io.millrace.records.Shelf`)
    expect(ran.stderr).toContain('version 1: data.price')
    const promoted = await deployment.run(['promote', 'shelf:2', '--extractor', 'shelf.yaml'])
    expect(promoted.code).toBe(2)
    expect(promoted.stderr).toContain('version 1: data.price')
    const preview = await deployment.run(['replay', 'preview', '--extractor', 'shelf.yaml', '--json'])
    expect(preview.code, preview.stderr).toBe(0)
    const { compatibility } = JSON.parse(preview.stdout) as { compatibility: { ok: boolean; problems: { path: string; reason: string }[] } }
    expect(compatibility).toMatchObject({ ok: false, problems: [{ path: 'data.price' }] })
  })

  it("is read by kafkajs's own registry client", async () => {
    const client = new SchemaRegistry({ host: apicurio.url })
    await deployment.read(async (runtime) => {
      const decoded = await Promise.all((await committed(runtime, records)).map(({ value }) => client.decode(value as Buffer)))
      const versions = decoded.map(({ extractorVersion, data }) => [extractorVersion, data.title, Object.keys(data)])
      expect(versions.sort()).toEqual([
        [1, 'one', ['title', 'price']],
        [1, 'two', ['title', 'price']],
        [2, 'three', ['title', 'price', 'day', 'seen']],
      ])
    })
  })

  it.skipIf(python.kind === 'none')(
    `is read by Confluent's client in Python, as written and as the newest schema has it, and takes its tasks${python.kind === 'none' ? ` (skipped: ${python.reason})` : ''}`,
    { timeout: 120_000 },
    async () => {
      if (python.kind === 'none') return
      const client = async (command: string, topic: string, ...rest: string[]): Promise<PlainRecord[]> => {
        const result = await run(python.command, [PYTHON, command, brokers().join(','), apicurio.url, topic, ...rest])
        expect(result.code, result.stderr).toBe(0)
        return result.stdout
          .toString('utf8')
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line) as PlainRecord)
      }
      const old = { price: 'Decimal 12.50' }
      const later = { ...old, day: 'date 2026-03-04', seen: 'datetime 2026-03-04T05:06:07+00:00' }
      const written = sorted(await client('consume', records, '3'))
      expect(written.map(({ data: { title: _, ...data } }) => data)).toEqual([old, old, later])
      await client('produce', `${deployment.prefix}urls`, site('five'))
      const worked = await deployment.run(['run', '--extractor', 'book.yaml'])
      expect(worked.code, worked.stderr).toBe(0)
      // The old ones too, as whoever reads with the newest schema sees them.
      const none = { ...old, day: null, seen: null }
      const read = sorted(await client('upgrade', records, '4'))
      expect(read.map(({ data: { title: _, ...data } }) => data)).toEqual([none, none, later, later])
    },
  )

  it.skipIf(java.kind === 'none')(
    `is read by Apache's Avro in Java with the newest schema, whichever version wrote it${java.kind === 'none' ? ` (skipped: ${java.reason})` : ''}`,
    { timeout: 120_000 },
    async () => {
      if (java.kind === 'none') return
      const count = (await deployment.read((runtime) => committed(runtime, records))).length
      const args = [brokers().join(','), apicurio.url, records, `${records}-io.millrace.records.Book`, String(count)]
      const result = await java.run(JAVA, args)
      expect(result.code, result.stderr).toBe(0)
      const read = result.stdout
        .toString('utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as PlainRecord)
      const price = 'BigDecimal 12.50'
      const old = { price, day: null, seen: null }
      const later = { price, day: 'LocalDate 2026-03-04', seen: 'Instant 2026-03-04T05:06:07Z' }
      for (const { version, data } of read) expect(data).toMatchObject(version === 1 ? old : later)
      expect(read.filter(({ version }) => version === 1)).toHaveLength(2)
    },
  )

  it('replays beside live work in the same framing', async () => {
    const replayed = await deployment.run(['replay', 'run', '--extractor', 'book.yaml', '--to-earliest', '--shadow', '--id', 'again'])
    expect(replayed.code, replayed.stderr).toBe(0)
    await deployment.read(async (runtime) => {
      const shadow = await committed(runtime, `${records}.shadow.again`)
      expect(shadow.length).toBeGreaterThanOrEqual(3)
      for (const { value } of shadow) expect(value?.[0]).toBe(0)
    })
  })

  it('says at once that the registry is away, and what to look at', async () => {
    await apicurio.stop()
    const result = await deployment.run(['run', site('six'), '--extractor', 'book.yaml'])
    expect(result.code).toBe(4)
    expect(result.stderr).toContain(`the schema registry ${apicurio.url} did not answer`)
    expect(result.stderr).toContain('registry.url')
    expect((await deployment.run(['doctor'])).code).toBe(4)
  })
})
