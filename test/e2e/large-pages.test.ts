import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lines } from '../support/cli.ts'
import { Deployment } from '../support/deployment.ts'

/** Text that no codec makes smaller than half. */
const FILLING = randomBytes(200_000).toString('hex')
const PAGES: Readonly<Record<string, string>> = {
  '/': `<title>Large</title><h1>Large page</h1><a href="/small">next</a><p>${FILLING}</p>`,
  '/small': '<title>Small</title><h1>Small page</h1>',
}
const SHA256 = createHash('sha256')
  .update(PAGES['/'] ?? '')
  .digest('hex')
const LIMIT = ['topics.maxMessageBytes=64KiB', 'crawl.maxDepth=1']
const MONTH_S = 30 * 86_400

const server = createServer((request, response) => {
  const body = PAGES[request.url ?? '']
  response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'text/html' }).end(body)
})
const seed = (): string => `http://large.example:${(server.address() as AddressInfo).port}/`

beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => void server.close())

describe('a page that no message takes', () => {
  let deployment: Deployment
  let folder: string
  const run = (...args: string[]) => deployment.run(args)
  const blobFiles = (): string[] =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.includes(SHA256))
      .map((name) => join(folder, name))
  const codes = async (): Promise<string[]> =>
    lines<{ info: { code: string } }>(await run('dead-letters', 'list', '--json')).map(({ info }) => info.code)
  /** The same pages once more, with a version that has not run yet. */
  const extractAgain = async (version: number): Promise<void> => {
    deployment.file('page.yaml', `name: page\nversion: ${version}\nfields: { title: title, heading: { select: h1, required: true } }\n`)
    const replayed = await run(
      'replay',
      'run',
      '--extractor',
      'page.yaml',
      '--to-earliest',
      '--in-place',
      '--force',
      'bodies are missing on purpose',
    )
    expect(replayed.code, replayed.stderr).toBe(0)
    const worked = await run('run', '--extractor', 'page.yaml')
    expect(worked.code, worked.stderr).toBe(0)
  }

  beforeAll(async () => {
    deployment = await Deployment.open({ set: LIMIT })
    folder = join(deployment.folder, 'blobs')
    writeFileSync(join(deployment.folder, 'millrace.yaml'), `blobs: { url: '${pathToFileURL(folder).href}' }\n`)
    deployment.file('page.yaml', 'name: page\nversion: 1\nfields: { title: title, heading: { select: h1, required: true } }\n')
  })
  afterAll(() => deployment.close())

  it('gives its record and its links all the same: the body is in the blob store, and the message names it', async () => {
    const result = await run('run', seed(), '--extractor', 'page.yaml')
    expect(result.code, result.stderr).toBe(0)
    const records = await deployment.records()
    expect(records.map(({ value }) => value.data.heading).sort()).toEqual(['Large page', 'Small page'])
    const pages = (await deployment.pages()).map(({ value }) => value)
    const large = pages.find(({ bodySha256 }) => bodySha256 === SHA256)
    expect(large).toMatchObject({ bodyLength: PAGES['/']?.length, bodyRef: `${SHA256}.${large?.bodyEncoding}`, truncated: null })
    expect(large?.body.length).toBe(0)
    expect(blobFiles()).toEqual([join(folder, SHA256.slice(0, 2), large?.bodyRef ?? '')])
    // One that fits stays in its message.
    expect(pages.find(({ bodySha256 }) => bodySha256 !== SHA256)?.bodyRef).toBeNull()
  })

  it('is shown with its very bytes, and is there for a new extractor', async () => {
    const large = (await deployment.pages()).find(({ value }) => value.bodySha256 === SHA256)
    const place = `${large?.message.partition}:${large?.message.offset}`
    const shown = await run('consume', 'html', '--offset', place, '--max', '1', '--body')
    const [page] = lines<{ value: { body: string } }>(shown)
    expect(Buffer.from(page?.value.body ?? '', 'base64').toString()).toBe(PAGES['/'])
    const tested = await run('extractors', 'test', 'page.yaml', `${deployment.prefix}html:${place}`)
    expect(tested.code, tested.stderr).toBe(0)
    expect(tested.stdout).toContain('Large page')
  })

  it('is collected when it is older than every page, after a look, and not before', async () => {
    const [blob = ''] = blobFiles()
    const young = await run('blobs', 'collect', '--execute')
    expect([young.code, young.stderr]).toEqual([0, ''])
    expect(young.stdout).toMatch(/1 blob, \d+.*KiB\ndeleted: 0 blobs/)
    const seconds = Date.now() / 1_000 - MONTH_S
    utimesSync(blob, seconds, seconds)
    const looked = await run('blobs', 'collect')
    expect(looked.stdout).toMatch(/would be deleted: 1 blob, .*nothing was changed, --execute does it/)
    expect(blobFiles()).toHaveLength(1)
    const bytes = readFileSync(blob)
    const done = await run('blobs', 'collect', '--execute', '--json')
    expect(JSON.parse(done.stdout)).toMatchObject({ executed: true, collected: { count: 1, bytes: bytes.length } })
    expect(blobFiles()).toEqual([])
    writeFileSync(blob, bytes)
  })

  it('is a dead letter that says so where its blob was cut, and another one where it is missing', async () => {
    const [blob = ''] = blobFiles()
    const bytes = readFileSync(blob)
    const large = (await deployment.pages()).find(({ value }) => value.bodySha256 === SHA256)
    const show = () => run('consume', 'html', '--offset', `${large?.message.partition}:${large?.message.offset}`, '--max', '1', '--body')
    rmSync(blob)
    const shown = await show()
    expect([shown.code, shown.stderr]).toEqual([3, expect.stringMatching(/html \d+:\d+: the blob \S+ is not in the blob store/)])
    expect(lines<{ value: { body: string | null }; bodyProblem: string }>(shown)[0]).toMatchObject({
      value: { body: null },
      bodyProblem: expect.any(String),
    })
    writeFileSync(blob, bytes)
    expect((await show()).code).toBe(0)
    truncateSync(blob, 1_000)
    await extractAgain(2)
    expect(await codes()).toEqual(['BLOB_BROKEN'])
    rmSync(blob)
    await extractAgain(3)
    expect((await codes()).sort()).toEqual(['BLOB_BROKEN', 'BLOB_MISSING'])
    // The neighbour is none the worse, and with the blob back all is well.
    writeFileSync(blob, bytes)
    await extractAgain(4)
    const headings = (await deployment.records()).map(({ value }) => `${value.extractorVersion} ${value.data.heading}`)
    expect(headings.sort()).toEqual(['1 Large page', '1 Small page', '2 Small page', '3 Small page', '4 Large page', '4 Small page'])

    const requeued = await run('dead-letters', 'requeue', '--code', 'BLOB_MISSING', '--execute')
    expect(requeued.code, requeued.stderr).toBe(0)
    expect((await run('run', '--extractor', 'page.yaml')).code).toBe(0)
    const again = (await deployment.records()).filter(({ value }) => value.data.heading === 'Large page')
    expect(again.map(({ value }) => value.extractorVersion).sort()).toEqual([1, 4, 4])
  })

  it('fails with the reason where no blob store is configured, and others go on', async () => {
    const without = await Deployment.open({ set: LIMIT })
    try {
      without.file('page.yaml', 'name: page\nversion: 1\nfields: { title: title }\n')
      const result = await without.run(['run', seed(), `${seed()}small`, '--extractor', 'page.yaml'])
      expect(result.code).toBe(3)
      const outcomes = (await without.outcomes()).map(({ value }) => `${new URL(value.url).pathname} ${value.kind} ${value.reason}`)
      expect(outcomes.sort()).toEqual(['/ FAILED body-too-large', '/small FETCHED null'])
    } finally {
      await without.close()
    }
  })

  it('ends the command at once where the store can not be used', async () => {
    const refused = await run(
      'run',
      seed(),
      '--extractor',
      'page.yaml',
      '--set',
      `blobs.url=${pathToFileURL(join(deployment.folder, 'page.yaml')).href}`,
    )
    expect(refused.code).toBe(4)
    expect(refused.stderr).toContain('page.yaml can not be read')
  })
})
