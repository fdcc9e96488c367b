import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RunningCli } from '../support/cli.ts'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { TestProxy } from '../support/test-proxy.ts'

const BOOK = `
name: book
version: 1
fields: { title: h1, stock: .stock, price: { select: .price, type: decimal, scale: 2 } }
`
/** At two a second it is worked off long after the test. */
const PAGES = 60

const server = createServer((request, response) => {
  if (request.url === '/robots.txt') response.writeHead(404).end()
  else if (request.url === '/busy') response.writeHead(503).end('busy')
  else response.writeHead(200, { 'content-type': 'text/html' }).end(`<h1>${request.url}</h1><p class="price">on request</p>`)
})
let proxy: TestProxy
let deployment: Deployment
let port = 0

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
  proxy = await TestProxy.http({ leadsTo: port })
  deployment = await Deployment.open({
    set: [
      'politeness.default.ratePerSecond=2',
      'politeness.default.burst=2',
      // An address of the open internet, which the proxy leads back to this machine.
      'fetch.resolve=public.example=93.184.216.34,*.example=127.0.0.1',
      `politeness.rules=[{match: public.example, proxies: ["http://127.0.0.1:${proxy.port}"]}]`,
    ],
  })
  deployment.file('book.yaml', BOOK)
})
afterAll(async () => {
  await deployment.close()
  await proxy.close()
  server.closeAllConnections()
  server.close()
})

/** A stage with a port of its own for its metrics. */
async function startMeasured(...args: string[]): Promise<{ readonly running: RunningCli; readonly text: () => Promise<string> }> {
  const metricsPort = await freePort()
  const running = deployment.start([...args, '--set', `metrics.port=${metricsPort}`, '--set', 'metrics.host=127.0.0.1'])
  return { running, text: async () => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text() }
}

/** Sum of the series of a metric whose labels contain the text. */
function sum(text: string, name: string, labels = ''): number {
  const series = text.split('\n').filter((line) => /^[a-z_]+/.exec(line)?.[0] === name && line.includes(labels))
  return series.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/** Until each of them has counted something. */
async function areCounted(text: () => Promise<string>, wanted: readonly (readonly [string, string?])[]): Promise<void> {
  const missing = async (): Promise<string> => {
    const scraped = await text()
    return wanted
      .filter(([name, labels]) => sum(scraped, name, labels) === 0)
      .map(([name, labels = '']) => `${name} ${labels}`)
      .join(', ')
  }
  await eventually(async () => expect(await missing()).toBe('') ?? true, { what: 'the metrics', everyMs: 200 })
}

describe('the metrics of a stage', () => {
  it('tell of requests, waits and outcomes in fetch, and of pages, records and fields in extract', async () => {
    const urls = Array.from({ length: PAGES }, (_, index) => `http://paced.example:${port}/${index}`)
    await deployment.run(['produce', ...urls, `http://busy.example:${port}/busy`, `http://public.example:${port}/`])
    const fetching = await startMeasured('fetch')
    await areCounted(fetching.text, [
      ['millrace_queue_wait_seconds_count', 'lane="normal"'],
      ['millrace_request_duration_seconds_count', 'kind="response"'],
      ['millrace_response_bytes_total'],
      ['millrace_outcomes_total', 'kind="RETRY",reason="http-503"'],
      ['millrace_outcomes_total', 'kind="FETCHED"'],
      ['millrace_limiter_waits_total', 'reason="rate"'],
      ['millrace_group_lag_messages', `group="${deployment.prefix}fetch",topic="${deployment.prefix}urls"`],
      ['millrace_fetch_sites_waiting', 'reason="rate"'],
    ])
    // Nothing is set by which sites could tell who asks, and one of them is no machine of ours.
    const warned = () => fetching.running.stderr().match(/no fetch\.userAgent is set/g)?.length ?? 0
    await eventually(() => proxy.tunnels.length > 0 && warned() > 0, { what: 'the word about the user agent' })
    expect([proxy.tunnels[0]?.target, warned()]).toEqual([`93.184.216.34:${port}`, 1])

    const extracting = await startMeasured('extract', '--extractor', 'book.yaml')
    const about = 'extractor="book",version="1"'
    await areCounted(extracting.text, [
      ['millrace_extract_pages_total', about],
      ['millrace_extract_records_total', about],
      ['millrace_extract_field_nulls_total', about],
      ['millrace_extract_invalid_values_total', about],
    ])
    const text = await extracting.text()
    const [pages, records] = ['pages', 'records'].map((name) => sum(text, `millrace_extract_${name}_total`))
    const nulls = (field: string): number => sum(text, 'millrace_extract_field_nulls_total', `field="${field}"`)
    expect(sum(text, 'millrace_extract_pages_total', 'result="records"')).toBe(pages)
    expect([nulls('title'), nulls('stock'), nulls('price')]).toEqual([0, records, records])
    expect(sum(text, 'millrace_extract_invalid_values_total', 'field="price"')).toBe(records)
  })
})
