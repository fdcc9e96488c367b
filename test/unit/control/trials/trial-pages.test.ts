import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { pageUrl, trialPages } from '../../../../src/control/trials/trial-pages.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { unpackPageBodySync } from '../../../../src/message/page-body.ts'
import { TEST_CERTIFICATE } from '../../../support/test-certificate.ts'

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

function text(page: Parameters<typeof unpackPageBodySync>[0]): string {
  const unpacked = unpackPageBodySync(page)
  return unpacked.ok ? unpacked.bytes.toString() : unpacked.detail
}

describe('a page that an extractor is tried on', () => {
  it('is the one at the end of its redirects, with all that a crawl has of it', async () => {
    const server = createServer((request, response) => {
      if (request.url === '/end?b=1&a=2')
        response.writeHead(200, { 'content-type': 'text/html', 'x-seen': String(request.headers.cookie) }).end('end')
      else if (request.url === '/') response.writeHead(301, { location: '/end?b=1&a=2', 'set-cookie': 'c=1' }).end()
      else response.writeHead(302, { location: request.url === '/out' ? 'http://10.0.0.1/' : '/loop' }).end()
    })
    const origin = `http://127.0.0.1:${await listening(server)}`
    const [found] = await tried(pageUrl(`${origin}#top`))
    expect(found?.page).toMatchObject({
      url: `${origin}/`,
      canonicalUrl: `${origin}/`,
      finalUrl: `${origin}/end?b=1&a=2`,
      status: 200,
      redirects: [{ url: `${origin}/`, status: 301, location: '/end?b=1&a=2' }],
      headers: expect.arrayContaining([{ name: 'x-seen', value: 'c=1' }]),
    })
    await expect(tried(`${origin}/loop`)).rejects.toMatchObject({
      code: 'FETCH_FAILED',
      message: expect.stringContaining('redirects more than 10 times'),
    })
    await expect(tried(`${origin}/out`)).rejects.toMatchObject({ code: 'FETCH_FAILED', message: expect.stringContaining('10.0.0.1') })
  })

  it('has the URL that a crawl has, and none that no crawl takes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-saved-'))
    closing.push(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'a.html'), 'a')
    const { config } = loadConfig({ sets: [], flags: {}, environment: {} })
    const options = {
      config,
      version: '0',
      clock: systemClock,
      openRuntime: () => Promise.reject(new Error()),
      signal: new AbortController().signal,
    }
    const url = pageUrl('HTTP://Bücher.example/?b=1&a=2&utm_source=x#top', '--url')
    const [saved] = await trialPages([{ kind: 'file', path: join(folder, 'a.html'), url }], options)
    expect(saved?.page).toMatchObject({
      url: 'http://xn--bcher-kva.example/?b=1&a=2&utm_source=x',
      finalUrl: 'http://xn--bcher-kva.example/?b=1&a=2&utm_source=x',
      canonicalUrl: 'http://xn--bcher-kva.example/?a=2&b=1',
    })
    expect(() => pageUrl('http://me:pw@a.example/', '--url')).toThrow(
      expect.objectContaining({ code: 'USAGE', message: expect.stringMatching(/^--url: /) }),
    )
  })

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
    expect((await tried(url)).map(({ page }) => text(page))).toEqual(['<title>seen</title>'])
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
    expect(pages.map(({ page }) => text(page))).toEqual(['yes'])
  })
})
