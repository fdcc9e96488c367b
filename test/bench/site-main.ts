import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { benchPages, pageIndex } from './bench-pages.ts'
import type { SiteMessage, SiteOptions, SiteRequestLog } from './bench-site.ts'
import { loadPages } from './replay-load.ts'

/**
 * The site of a bench, in a process of its own: answers for every host, after a time that depends on the host, and keeps a log with
 * the clock of the machine.
 */
const options = JSON.parse(process.argv[2] ?? '{}') as SiteOptions
const pages = options.corpus === true ? loadPages() : benchPages(20, options.pageBytes)
const log: SiteRequestLog[] = []
/** Hosts that never answer, or a byte a second; their sockets are kept. */
const slow = new Set(options.silentHosts ?? [])
const dripping = new Set(options.drippingHosts ?? [])

const server = createServer((request, response) => {
  const at = performance.timeOrigin + performance.now()
  const host = (request.headers.host ?? '').replace(/:\d+$/, '')
  const path = request.url ?? '/'
  if (path === '/robots.txt') {
    response.writeHead(404).end()
    return
  }
  const entry: SiteRequestLog = { host, path, at, endedAt: undefined }
  if (options.keepLog) log.push(entry)
  response.once('close', () => {
    entry.endedAt = performance.timeOrigin + performance.now()
  })
  if (slow.has(host)) return
  const page = pages[pageIndex(path, pages.length)]
  if (page === undefined) {
    response.writeHead(404).end()
    return
  }
  const headers = { 'content-type': 'text/html; charset=utf-8', 'content-encoding': 'gzip', 'content-length': page.packed.length }
  if (dripping.has(host)) {
    response.writeHead(200, headers)
    let sent = 0
    const drip = setInterval(() => response.write(page.packed.subarray(sent, ++sent)), 1_000)
    response.once('close', () => clearInterval(drip))
    return
  }
  const answer = (): void => void response.writeHead(200, headers).end(page.packed)
  if (options.latencyMs > 0) setTimeout(answer, options.latencyMs)
  else answer()
})
server.keepAliveTimeout = 120_000

process.on('message', (message: SiteMessage) => {
  if (message === 'log') process.send?.(log.splice(0))
})
process.once('disconnect', () => process.exit(0))
server.listen({ port: 0, host: '0.0.0.0', backlog: 4_096 }, () => process.send?.((server.address() as AddressInfo).port))
