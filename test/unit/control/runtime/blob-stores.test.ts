import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { blobStoreOf } from '../../../../src/control/runtime/blob-stores.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'

/** A service that answers with what the test has laid out, and remembers what it was asked. */
const asked: { method: string; url: string; headers: IncomingMessage['headers'] }[] = []
let statuses: number[] = []
const server = createServer((request, response) => {
  asked.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers })
  request.resume()
  const status = statuses.shift() ?? 200
  response.writeHead(status).end(status === 200 ? '<ListBucketResult></ListBucketResult>' : '<Error><Code>Told</Code></Error>')
})

beforeEach(async () => {
  asked.length = 0
  statuses = []
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  vi.unstubAllEnvs()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

function open(...sets: string[]) {
  const endpoint = `blobs.endpoint=http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { config } = loadConfig({ sets: ['blobs.url=s3://bucket/pre fix', endpoint, ...sets], flags: {}, environment: {} })
  return blobStoreOf(config, systemClock)
}

const KEYS = ['blobs.accessKeyId=KEY', 'blobs.secretAccessKey=SECRET']

describe('the blob store of the configuration', () => {
  it('is none where none is named', async () => {
    const { config } = loadConfig({ sets: [], flags: {}, environment: {} })
    expect(await blobStoreOf(config, systemClock)).toBeUndefined()
  })

  it('is asked at once, in the region and with the keys that are set', async () => {
    await open(...KEYS, 'blobs.region=eu-central-1', 'blobs.sessionToken=TOKEN')
    expect(asked.map(({ method, url }) => [method, url])).toEqual([['GET', '/bucket?list-type=2&max-keys=1&prefix=pre+fix%2F']])
    const { authorization, 'x-amz-security-token': token } = asked[0]?.headers ?? {}
    expect(authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=KEY\/\d{8}\/eu-central-1\/s3\/aws4_request, /)
    expect(token).toBe('TOKEN')
  })

  it('takes what is not set from where every program of S3 takes it', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'ENVKEY')
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'ENVSECRET')
    vi.stubEnv('AWS_REGION', 'us-west-2')
    await open()
    expect(asked[0]?.headers.authorization).toMatch(/Credential=ENVKEY\/\d{8}\/us-west-2\//)
    await open(...KEYS, 'blobs.region=eu-central-1')
    expect(asked[1]?.headers.authorization).toMatch(/Credential=KEY\/\d{8}\/eu-central-1\//)
  })

  it('takes a variable that is empty as one that is not set', async () => {
    for (const name of ['AWS_SESSION_TOKEN', 'AWS_REGION']) vi.stubEnv(name, '')
    await open(...KEYS)
    expect(asked[0]?.headers).toMatchObject({ authorization: expect.stringContaining('/us-east-1/s3/') })
    expect(asked[0]?.headers['x-amz-security-token']).toBeUndefined()
  })

  it.each(['s3://bucket/50%off', 'file:///pages/50%off', 'file:///a%2Fb'])('says what is wrong with an escape in %s', async (url) => {
    await expect(open(...KEYS, `blobs.url=${url}`)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('blobs.url'),
    })
  })

  it('is asked again where it is overloaded, three times in all, and not where it refuses', async () => {
    statuses = [503, 429]
    const store = await open(...KEYS)
    expect(asked).toHaveLength(3)
    statuses = [500, 500, 500, 500]
    await expect(store?.get('ab', 10)).rejects.toMatchObject({ code: 'BLOBS_UNREACHABLE', message: expect.stringContaining('500 Told') })
    expect(asked).toHaveLength(6)
    statuses = [403]
    await expect(store?.put('ab', Buffer.from('x'))).rejects.toMatchObject({ code: 'BLOBS_REFUSED' })
    expect(asked).toHaveLength(7)
  })

  it('signs the bytes it sends, so that damage on the way is found', async () => {
    const store = await open(...KEYS)
    await store?.put('ab.br', Buffer.from('x'))
    expect(asked.at(-1)).toMatchObject({ method: 'PUT', url: '/bucket/pre%20fix/ab.br' })
    expect(asked.at(-1)?.headers['x-amz-content-sha256']).toBe('2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881')
  })
})
