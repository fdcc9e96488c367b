import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { packageVersion } from '../../../src/control/package-version.ts'
import { Millrace } from '../../../src/index.ts'

it('the library makes the topics of its own Kafka before it produces, and sites see the version of Millrace', async () => {
  const data = mkdtempSync(join(tmpdir(), 'millrace-library-'))
  const agents = new Set<string | undefined>()
  const site = createServer((request, response) => {
    agents.add(request.headers['user-agent'])
    response.writeHead(request.url === '/robots.txt' ? 404 : 200, { 'content-type': 'text/html' }).end('<h1>a</h1>')
  })
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`
  const millrace = new Millrace({
    data,
    'fetch.allowAddresses': ['127.0.0.0/8'],
    'topics.partitions.urls': '1',
    'topics.partitions.html': '1',
  })
  try {
    expect(await millrace.produce([url], { expiresAt: Date.now() + 3_600_000 })).toMatchObject({ produced: 1, badCount: 0 })
    expect((await millrace.run()).audit.outcomes).toEqual({ FETCHED: 1 })
    expect([...agents]).toEqual([`millrace/${packageVersion()}`])
  } finally {
    await millrace.stop()
    site.close()
    rmSync(data, { recursive: true, force: true })
  }
})
