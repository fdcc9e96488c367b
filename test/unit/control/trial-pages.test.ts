import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { trialPages } from '../../../src/control/trial-pages.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { TEST_CERTIFICATE } from '../../support/test-certificate.ts'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  closing.push(() => server.close())
  return (server.address() as AddressInfo).port
}

function tried(url: string, ...sets: string[]) {
  const { config } = loadConfig({ sets: ['fetch.allowAddresses=127.0.0.0/8', ...sets], flags: {}, environment: {} })
  return trialPages([{ kind: 'url', url }], {
    config,
    version: '0',
    clock: systemClock,
    openRuntime: () => Promise.reject(new Error('a page of a site needs no broker')),
    signal: new AbortController().signal,
  })
}

describe('a page that an extractor is tried on', () => {
  it('is asked for through the proxies of the configuration, and not directly where they fail', async () => {
    let requests = 0
    const server = createServer((_request, response) => {
      requests += 1
      response.writeHead(200, { 'content-type': 'text/html', connection: 'close' }).end('<title>seen</title>')
    })
    const url = `http://127.0.0.1:${await listening(server)}/`
    await expect(tried(url, 'fetch.proxies=http://127.0.0.1:1')).rejects.toMatchObject({
      code: 'FETCH_FAILED',
      message: expect.stringContaining('proxy'),
    })
    expect(requests).toBe(0)
    expect((await tried(url)).map(({ page }) => page.body.toString())).toEqual(['<title>seen</title>'])
  })

  it('is believed by the certificates of the configuration', async () => {
    const server = createTlsServer({ cert: TEST_CERTIFICATE.cert, key: TEST_CERTIFICATE.key }, (socket) => {
      socket.on('error', () => undefined)
      socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 3\r\nconnection: close\r\n\r\nyes')
    })
    const folder = mkdtempSync(join(tmpdir(), 'millrace-ca-'))
    closing.push(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'ca.pem'), TEST_CERTIFICATE.cert)
    const url = `https://localhost:${await listening(server)}/`
    const pages = await tried(url, `fetch.tls.ca=${join(folder, 'ca.pem')}`, 'fetch.resolve=localhost=127.0.0.1')
    expect(pages.map(({ page }) => page.body.toString())).toEqual(['yes'])
  })
})
