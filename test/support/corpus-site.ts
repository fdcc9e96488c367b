import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { CorpusPage } from './corpus.ts'

export interface CorpusSite {
  readonly port: number
  /** Address of a page. */
  urlOf(page: CorpusPage): string
  requestCount(): number
  close(): Promise<void>
}

/** How a page is served: all four mixtures of these occur equally often. */
export function servedAs(index: number): { readonly gzip: boolean; readonly contentType: string } {
  return { gzip: index % 2 === 0, contentType: index % 4 < 2 ? 'text/html; charset=utf-8' : 'text/html' }
}

/**
 * Real pages, byte for byte: half of them gzip-encoded, half plain, with and without a charset, spread over a few hosts. There is no
 * robots.txt.
 */
export async function startCorpusSite(pages: readonly CorpusPage[]): Promise<CorpusSite> {
  let requestCount = 0
  const byPath = new Map(pages.map((page, index) => [`/pages/${page.id}.html`, { page, index }]))
  const server = createServer((request, response) => {
    requestCount += 1
    const found = byPath.get(request.url ?? '')
    if (found === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('no such page')
      return
    }
    const { gzip, contentType } = servedAs(found.index)
    const body = gzip ? gzipSync(found.page.bytes) : found.page.bytes
    response.writeHead(200, { 'content-type': contentType, ...(gzip ? { 'content-encoding': 'gzip' } : {}) }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    urlOf: (page) => `http://site${Number(page.id) % 8}.example:${port}/pages/${page.id}.html`,
    requestCount: () => requestCount,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
