import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lines } from '../support/cli.ts'
import { Deployment } from '../support/deployment.ts'
import { storeSets } from '../support/services.ts'

const STRICT = 'name: book\nversion: 1\nfields: { title: { select: h1, required: true } }\n'
const LENIENT = 'name: book\nversion: 2\nfields: { title: h2 }\n'
const OTHER = 'name: other\nversion: 1\nfields: { heading: h2 }\n'

/** `/down` answers 503 until it is told otherwise, and `/lost` always; `/page` has no h1. */
let isDown = true
const asked: string[] = []
const server = createServer((request, response) => {
  const path = request.url ?? '/'
  asked.push(path)
  if (path === '/robots.txt') response.writeHead(404).end()
  else if (path === '/lost' || (path === '/down' && isDown)) response.writeHead(503).end()
  else response.writeHead(200, { 'content-type': 'text/html' }).end(`<h2>${path}</h2>`)
})
let deployment: Deployment
let base = ''

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://shop.example:${(server.address() as AddressInfo).port}`
  deployment = await Deployment.open({ set: ['retry.maxAttempts=1'] })
  deployment.file('book.yaml', STRICT)
  deployment.file('other.yaml', OTHER)
})
afterAll(async () => {
  await deployment.close()
  server.close()
})

describe('what was given up on', () => {
  it('is told by the commands, let be or tried again when they say so, and adds up in the ledger', async () => {
    const extractors = ['--extractor', 'book.yaml', '--extractor', 'other.yaml']
    const first = await deployment.run(['run', `${base}/down`, `${base}/page`, `${base}/lost`, ...extractors, '--crawl', 'c'])
    expect(first.code).toBe(3)
    const stats = JSON.parse((await deployment.run(['dead-letters', 'stats', '--json'])).stdout)
    expect(stats).toMatchObject({
      open: 3,
      byStage: { fetch: 2, extract: 1 },
      byReason: { 'http-503': 2 },
      byDomain: { 'shop.example': 3 },
    })

    const refused: [string[], string][] = [
      [['requeue', '99:5'], 'there is no dead letter at 99:5'],
      [['drop', '99:5', '0:4711', '--execute'], 'there is no dead letter at 99:5, 0:4711'],
      [['show', '99:5'], 'there is no dead letter at 99:5'],
      [['requeue', '5'], '"5" is not PARTITION:OFFSET'],
      [['list', '--code', 'FETCH_FAILD'], 'did you mean FETCH_FAILED?'],
      [['stats', '--stage', 'crawl'], 'expected one of fetch, delay, frontier, extract'],
    ]
    for (const [args, said] of refused) {
      const result = await deployment.run(['dead-letters', ...args])
      expect([result.code, result.stdout], args.join(' ')).toEqual([2, ''])
      expect(result.stderr).toContain(said)
    }

    // One is given up for good: it is told with the others, and no requeue takes it up.
    const atFetch = lines<{ partition: number; offset: string; url: string }>(
      await deployment.run(['dead-letters', 'list', '--stage', 'fetch', '--json']),
    )
    const lost = atFetch.find(({ url }) => url === `${base}/lost`)
    const place = `${lost?.partition}:${lost?.offset}`
    const drop = (...more: string[]) => deployment.run(['dead-letters', 'drop', place, ...more])
    expect(await drop()).toMatchObject({ code: 0, stdout: expect.stringMatching(/\nwould be 1 dropped\n$/) })
    expect(await drop('--execute')).toMatchObject({ code: 0, stdout: expect.stringMatching(/\n1 dropped\n$/) })
    expect(JSON.parse((await deployment.run(['dead-letters', 'stats', '--json'])).stdout)).toMatchObject({ open: 2, dropped: 1 })
    expect(await drop('--execute')).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining(`${place} was dropped before`) })

    // The page by its whole URL, and whose failure it is; of one the reason, and how to look at what it holds.
    const listed = (await deployment.run(['dead-letters', 'list', '--stage', 'extract'])).stdout.split('\n')
    expect(listed[0]?.split(/ {2,}/)).toEqual(['P:N', 'TIME', 'STAGE', 'CODE', 'EXTRACTOR', 'REASON', 'URL'])
    expect(listed[1]).toMatch(/extract {2}EXTRACT_FIELD_MISSING {2}book:1 {5}the required field .*http:\/\/.*\/page$/)
    const failed = (await deployment.run(['dead-letters', 'list', '--stage', 'fetch'])).stdout
    expect(failed).toMatch(/ fetch {2}FETCH_FAILED {2}http-503: answered with status 503 {2}http:\/\/shop\.example:\d+\/down\n$/)
    const ofTask = JSON.parse((await deployment.run(['dead-letters', 'list', '--stage', 'fetch', '--json'])).stdout)
    expect(ofTask).toMatchObject({ key: 'shop.example', url: `${base}/down`, info: { reason: 'http-503' } })
    const shown = (await deployment.run(['dead-letters', 'show', listed[1]?.split(' ')[0] ?? ''])).stdout
    expect(shown).toMatch(/what it holds: millrace consume \S+html --offset \d+:\d+ --max 1/)

    const plan = await deployment.run(['dead-letters', 'requeue'])
    expect(plan.code).toBe(0)
    expect(plan.stdout).toContain('would be 1 new task, 1 page for extract')
    expect(plan.stderr).toContain('add --execute')
    expect(plan.stdout).toContain(`new task  ${base}/down`)
    isDown = false
    deployment.file('book.yaml', LENIENT)
    const done = await deployment.run(['dead-letters', 'requeue', '--execute'])
    expect([done.code, done.stdout.trim().split('\n').at(-1)]).toEqual([0, '1 new task, 1 page for extract'])
    expect((await deployment.run(['dead-letters', 'list', '--json'])).stdout).toBe('')
    const all = await deployment.run(['dead-letters', 'list', '--all'])
    expect([all.stdout.match(/\(requeued\)/g)?.length, all.stdout.match(/\(dropped\)/g)?.length]).toEqual([2, 1])

    // Without URLs: what is queued is worked off, and that run ends by itself, and well: what failed had failed before it.
    const second = await deployment.run(['run', ...extractors, '--json'])
    expect(second.code, second.stderr).toBe(0)
    const ledger = JSON.parse((await deployment.run(['audit', '--crawl', 'c', '--json'])).stdout)
    expect(ledger).toMatchObject({ produced: 4, outcomes: { FETCHED: 2, FAILED: 2 }, inFlight: 0, difference: 0, missing: [] })
    expect(asked.filter((path) => path !== '/robots.txt').sort()).toEqual(['/down', '/down', '/lost', '/page'])
    const records = (await deployment.records()).map(
      ({ value }) => `${value.extractor} ${value.extractorVersion} ${new URL(value.url).pathname}`,
    )
    // The page went to the extractor that had failed alone, and the new task to both.
    expect(records.sort()).toEqual(['book 2 /down', 'book 2 /page', 'other 1 /down', 'other 1 /page'])
  }, 300_000)

  it('waits once it is put back, and adds up, with the state in Redis too', async () => {
    isDown = true
    asked.length = 0
    const onRedis = await Deployment.open({ set: ['retry.maxAttempts=1', ...storeSets('redis')] })
    const extractors = ['--extractor', onRedis.file('book.yaml', LENIENT)]
    try {
      expect((await onRedis.run(['run', `${base}/down`, `${base}/page`, ...extractors, '--crawl', 'c'])).code).toBe(3)
      isDown = false
      expect((await onRedis.run(['dead-letters', 'requeue', '--execute'])).stdout).toMatch(/\n1 new task\n$/)
      const waiting = JSON.parse((await onRedis.run(['explain', `${base}/down`, '--json'])).stdout)
      expect(waiting).toMatchObject({ state: 'waiting' })
      const second = await onRedis.run(['run', ...extractors, '--json'])
      expect(second.code, second.stderr).toBe(0)
      const ledger = JSON.parse((await onRedis.run(['audit', '--crawl', 'c', '--json'])).stdout)
      expect(ledger).toMatchObject({ produced: 3, outcomes: { FETCHED: 2, FAILED: 1 }, inFlight: 0, difference: 0, missing: [] })
      expect(asked.filter((path) => path !== '/robots.txt').sort()).toEqual(['/down', '/down', '/page'])
    } finally {
      await onRedis.close()
    }
  })
})
