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
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const clock = { ...systemClock, sleep: async () => undefined }
  const store = openBlobStore({ url: 's3://bucket', endpoint, accessKeyId: 'a', secretAccessKey: 'b' }, clock)
  expect(await store.deleteUntouched(`${'ab'.repeat(32)}.br`, Date.parse(YOUNG))).toBe(false)
  expect(asked).toEqual(['HEAD', 'DELETE', 'HEAD'])
})
