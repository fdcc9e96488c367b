import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { shopPage } from './shop.ts'

/** The example shop on loopback, with the count of what it was asked: proof that a replay asks for nothing. */
export interface ShopServer {
  readonly port: number
  /** Requests so far, robots.txt included. */
  requestCount(): number
  close(): Promise<void>
}

export async function startShopServer(): Promise<ShopServer> {
  let requestCount = 0
  let port = 0
  const server = createServer((request, response) => {
    requestCount += 1
    const host = (request.headers.host ?? '').replace(/:\d+$/, '')
    const page = shopPage(host, (request.url ?? '/').replace(/\?.*$/, ''), port)
    response.writeHead(page.status, { 'content-type': page.contentType, 'content-length': Buffer.byteLength(page.body) })
    response.end(page.body)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  port = (server.address() as AddressInfo).port
  return {
    port,
    requestCount: () => requestCount,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
