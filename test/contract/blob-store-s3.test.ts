import { AwsClient } from 'aws4fetch'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BlobStore } from '../../src/blobs/blob-store.ts'
import { openBlobStore } from '../../src/blobs/open-blob-store.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { findSeaweedFs, type S3Server } from '../support/seaweedfs.ts'
import { blobStoreContract } from './blob-store.contract.ts'

const found = await findSeaweedFs()
const reason = found.kind === 'none' ? ` (skipped: ${found.reason})` : ''
const BUCKET = 'millrace-test'

describe.skipIf(found.kind === 'none')(`the blob store in S3${reason}`, () => {
  let server: S3Server
  let store: BlobStore

  const open = (options: { prefix?: string; secret?: string; bucket?: string } = {}): BlobStore =>
    openBlobStore(
      {
        url: `s3://${options.bucket ?? BUCKET}/${options.prefix ?? 'pages/of me & you'}`,
        endpoint: server.endpoint,
        accessKeyId: server.accessKeyId,
        secretAccessKey: options.secret ?? server.secretAccessKey,
      },
      systemClock,
    )
  const plain = (): AwsClient => new AwsClient({ ...server, service: 's3', region: 'us-east-1', retries: 0 })

  beforeAll(async () => {
    if (found.kind === 'none') return
    server = await found.start()
    expect((await plain().fetch(`${server.endpoint}/${BUCKET}`, { method: 'PUT' })).status).toBe(200)
    store = open()
  })
  afterAll(() => server?.stop())

  const putPlain = async (name: string, bytes: Buffer): Promise<void> => {
    const url = `${server.endpoint}/${BUCKET}/pages/${encodeURIComponent('of me & you')}/${name}`
    expect((await plain().fetch(url, { method: 'PUT', body: new Uint8Array(bytes) })).status).toBe(200)
  }
  blobStoreContract(() => ({
    store,
    now: Date.now,
    damage: putPlain,
    putForeign: (name) => putPlain(name, Buffer.from('x')),
  }))

  it('keeps to its prefix: what lies beside it is not listed', async () => {
    const [one, other] = [open({ prefix: 'one' }), open({ prefix: 'one-more' })]
    const ref = `${'12'.repeat(32)}.br`
    await one.put(ref, Buffer.from('1'))
    await other.put(ref, Buffer.from('22'))
    const sizes: number[] = []
    for await (const { ref: key, bytes } of one.list()) if (key === ref) sizes.push(bytes)
    expect(sizes).toEqual([1])
  })

  it('lists more than one answer holds', async () => {
    const many = open({ prefix: 'many' })
    const refs = Array.from({ length: 1_005 }, (_, index) => `${index.toString(16).padStart(64, '0')}.br`)
    for (let start = 0; start < refs.length; start += 67)
      await Promise.all(refs.slice(start, start + 67).map((ref) => many.put(ref, Buffer.from('x'))))
    const seen: string[] = []
    for await (const { ref } of many.list()) seen.push(ref)
    expect(seen.sort()).toEqual(refs)
  })

  it('says that a wrong secret is refused, without telling it', async () => {
    const wrong = open({ secret: 'no-secret' })
    const failure = await wrong.check().then(
      () => undefined,
      (error: unknown) => error as { code: string; message: string },
    )
    expect(failure).toMatchObject({ code: 'BLOBS_REFUSED', message: expect.stringMatching(/403 SignatureDoesNotMatch/) })
    expect(failure?.message).not.toContain('no-secret')
    await expect(wrong.put(`${'34'.repeat(32)}.br`, Buffer.from('x'))).rejects.toMatchObject({ code: 'BLOBS_REFUSED' })
  })

  it('says that the bucket is not there', async () => {
    await expect(open({ bucket: 'no-such-bucket' }).check()).rejects.toMatchObject({
      code: 'BLOBS_REFUSED',
      message: expect.stringContaining('NoSuchBucket'),
    })
  })

  it('may succeed later where nobody answers', async () => {
    const nowhere = openBlobStore(
      { url: `s3://${BUCKET}`, endpoint: 'http://127.0.0.1:9', accessKeyId: 'a', secretAccessKey: 'b' },
      systemClock,
    )
    await expect(nowhere.get(`${'56'.repeat(32)}.br`, 10)).rejects.toMatchObject({ code: 'BLOBS_UNREACHABLE' })
  })
})
