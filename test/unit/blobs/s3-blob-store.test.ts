import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openBlobStore } from '../../../src/blobs/open-blob-store.ts'
import { systemClock } from '../../../src/kernel/clock.ts'

const OLD = 'Thu, 01 Jan 2026 00:00:00 GMT'
const YOUNG = 'Mon, 01 Jun 2026 00:00:00 GMT'
const asked: (string | undefined)[] = []
/** Written anew while the first DELETE fails. */
const server = createServer(({ method }, response) => {
  response.writeHead(method === 'DELETE' ? 503 : 200, { 'last-modified': asked.includes('DELETE') ? YOUNG : OLD }).end()
  asked.push(method)
})
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => new Promise((resolve) => server.close(resolve)))

it('the age of an object is looked at again before a deletion is tried again', async () => {
  const endpoint = originOf(server)
  const clock = { ...systemClock, sleep: async () => undefined }
  const store = openBlobStore({ url: 's3://bucket', endpoint, accessKeyId: 'a', secretAccessKey: 'b' }, clock)
  expect(await store.deleteUntouched(`${'ab'.repeat(32)}.br`, Date.parse(YOUNG))).toBe(false)
  expect(asked).toEqual(['HEAD', 'DELETE', 'HEAD'])
})

it.each([301, 302, 303, 307, 308])('a service that answers %s has stored nothing, and nobody else is asked', async (status) => {
  const asked: string[] = []
  const login = createServer(({ method }, response) => {
    asked.push(`login ${method}`)
    response.end('<html>log in</html>')
  })
  const gate = createServer((request, response) => {
    asked.push(request.method ?? '')
    request.resume().on('end', () => response.writeHead(status, { location: `${originOf(login)}/login` }).end())
  })
  for (const each of [login, gate]) await new Promise<void>((resolve) => each.listen(0, '127.0.0.1', resolve))
  try {
    const credentials = { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: 'secret' }
    const store = openBlobStore({ url: 's3://bucket', endpoint: originOf(gate), ...credentials }, systemClock)
    const refused = { code: 'BLOBS_REFUSED', message: expect.stringContaining(`with ${status}, which leads to ${originOf(login)}/login`) }
    const ref = `${'ab'.repeat(32)}.br`
    await expect(store.check()).rejects.toMatchObject(refused)
    await expect(store.put(ref, Buffer.from('body'))).rejects.toMatchObject(refused)
    await expect(store.get(ref, 1_000)).rejects.toMatchObject(refused)
    await expect(store.deleteUntouched(ref, Date.parse(YOUNG))).rejects.toMatchObject(refused)
    expect(asked).toEqual(['GET', 'PUT', 'GET', 'HEAD'])
  } finally {
    for (const each of [login, gate]) await new Promise((resolve) => each.close(resolve))
  }
})

function originOf(listening: ReturnType<typeof createServer>): string {
  return `http://127.0.0.1:${(listening.address() as AddressInfo).port}`
}
