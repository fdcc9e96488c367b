import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AwsClient } from 'aws4fetch'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BlobStore, StoredBlob } from '../../src/blobs/blob-store.ts'
import { openBlobStore } from '../../src/blobs/open-blob-store.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { lines } from '../support/cli.ts'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { findSeaweedFs, type S3Server } from '../support/seaweedfs.ts'

const found = await findSeaweedFs()
const reason = found.kind === 'none' ? ` (skipped: ${found.reason})` : ''
const BUCKET = 'millrace-pages'
const URL = `s3://${BUCKET}/crawls/one`

const HTML = `<title>Large</title><h1>Large page</h1><p>${randomBytes(200_000).toString('hex')}</p>`
const SHA256 = createHash('sha256').update(HTML).digest('hex')
const extractor = (version: number): string =>
  `name: page\nversion: ${version}\nfields: { title: title, heading: { select: h1, required: true } }\n`

/** One page over the limit of a message, from the site to its records and back, with nothing of it on a disk of ours. */
describe.skipIf(found.kind === 'none')(`a page that no message takes, with its body in S3${reason}`, () => {
  const site = createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(HTML))
  let server: S3Server
  let store: BlobStore
  let deployment: Deployment
  const s3 = (): AwsClient => new AwsClient({ ...server, service: 's3', region: 'us-east-1', retries: 0 })
  const blobs = async (): Promise<StoredBlob[]> => {
    const all: StoredBlob[] = []
    for await (const blob of store.list()) all.push(blob)
    return all
  }
  const headings = async (): Promise<string[]> =>
    (await deployment.records()).map(({ value }) => `${value.extractorVersion} ${value.data.heading}`).sort()

  beforeAll(async () => {
    if (found.kind === 'none') return
    server = await found.start()
    expect((await s3().fetch(`${server.endpoint}/${BUCKET}`, { method: 'PUT' })).status).toBe(200)
    const { endpoint, accessKeyId, secretAccessKey } = server
    store = openBlobStore({ url: URL, endpoint, accessKeyId, secretAccessKey }, systemClock)
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
    deployment = await Deployment.open({
      set: [
        'topics.maxMessageBytes=64KiB',
        `blobs.url=${URL}`,
        `blobs.endpoint=${endpoint}`,
        `blobs.accessKeyId=${accessKeyId}`,
        `blobs.secretAccessKey=${secretAccessKey}`,
      ],
    })
    deployment.file('page.yaml', extractor(1))
  })
  afterAll(async () => {
    await deployment?.close()
    site.close()
    await server?.stop()
  })

  it('is fetched and extracted in one run, and shown with its very bytes', async () => {
    const ran = await deployment.run(['run', `http://large.example:${(site.address() as AddressInfo).port}/`, '--extractor', 'page.yaml'])
    expect(ran.code, ran.stderr).toBe(0)
    expect(await headings()).toEqual(['1 Large page'])
    const [page] = await deployment.pages()
    expect(page?.value).toMatchObject({ bodySha256: SHA256, bodyLength: HTML.length })
    expect([page?.value.body.length, (await blobs()).map(({ ref }) => ref)]).toEqual([0, [page?.value.bodyRef]])
    const place = `${page?.message.partition}:${page?.message.offset}`
    const shown = await deployment.run(['consume', 'html', '--offset', place, '--max', '1', '--body'])
    const [consumed] = lines<{ value: { body: string } }>(shown)
    expect(Buffer.from(consumed?.value.body ?? '', 'base64').toString()).toBe(HTML)
  })

  it('is replayed beside live work', async () => {
    deployment.file('page2.yaml', extractor(2))
    const replayed = await deployment.run(['replay', 'run', '--shadow', '--extractor', 'page2.yaml', '--json'])
    expect(replayed.code, replayed.stderr).toBe(0)
    expect(JSON.parse(replayed.stdout)).toMatchObject({ pages: '1', records: 1, deadLetters: 0 })
  })

  it('keeps its blob when its dead letter is put back, and is left alone while that is gone', async () => {
    const [before] = await blobs()
    const bytes = await store.get(before?.ref ?? '', 10_000_000)
    const address = `${server.endpoint}/${BUCKET}/crawls/one/${before?.ref}`
    expect((await s3().fetch(address, { method: 'DELETE' })).status).toBe(204)
    deployment.file('page.yaml', extractor(3))
    const rewound = await deployment.run([
      'replay',
      'run',
      '--in-place',
      '--extractor',
      'page.yaml',
      '--force',
      'its body is missing on purpose',
    ])
    expect(rewound.code, rewound.stderr).toBe(0)
    await deployment.run(['run', '--extractor', 'page.yaml'])
    const letters = lines<{ info: { code: string } }>(await deployment.run(['dead-letters', 'list', '--json']))
    expect(letters.map(({ info }) => info.code)).toEqual(['BLOB_MISSING'])
    const requeue = async (...more: string[]) =>
      JSON.parse((await deployment.run(['dead-letters', 'requeue', '--json', ...more])).stdout) as { pages: number; left: object }
    expect(await requeue()).toMatchObject({ pages: 0, left: { 'body-missing': 1 } })
    expect(await requeue('--execute')).toMatchObject({ pages: 0, left: { 'body-missing': 1 } })

    await store.put(before?.ref ?? '', bytes as Buffer)
    const [back] = await blobs()
    // The store tells times in seconds.
    await eventually(() => Date.now() > (back?.touchedAt ?? 0) + 2_000, { what: 'a later second' })
    expect(await requeue()).toMatchObject({ pages: 1 })
    expect((await blobs())[0]?.touchedAt).toBe(back?.touchedAt)
    expect(await requeue('--execute')).toMatchObject({ pages: 1 })
    expect((await blobs())[0]?.touchedAt).toBeGreaterThan(back?.touchedAt ?? 0)
    const worked = await deployment.run(['run', '--extractor', 'page.yaml'])
    expect(worked.code, worked.stderr).toBe(0)
    expect(await headings()).toEqual(['1 Large page', '3 Large page'])
  })
})
