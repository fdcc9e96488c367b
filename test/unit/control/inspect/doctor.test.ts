import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { doctor, type Finding } from '../../../../src/control/inspect/doctor.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { LmdbStore } from '../../../../src/state/lmdb/lmdb-store.ts'
import { freePort } from '../../../support/free-port.ts'

let folder = ''
let server: Server | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-doctor-'))
})
afterEach(() => {
  server?.close()
  rmSync(folder, { recursive: true })
})

async function findings(...sets: string[]): Promise<Map<string, Finding>> {
  const { config } = loadConfig({ sets: [`data=${join(folder, 'data')}`, ...sets], flags: {}, environment: {} })
  const found = new Map<string, Finding>()
  const signal = new AbortController().signal
  for await (const finding of doctor({ config, clock: systemClock, observer: silentObserver, signal })) found.set(finding.check, finding)
  return found
}

it('doctor looks at all that needs no Kafka where that is not reached, and says what it did not look at', async () => {
  server = createServer((_request, response) => response.writeHead(404, { 'content-type': 'application/json' }).end('{}'))
  await new Promise<void>((done) => server?.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  mkdirSync(join(folder, 'blobs'))
  const away = `brokers=127.0.0.1:${await freePort()}`
  const blobs = `blobs.url=${pathToFileURL(join(folder, 'blobs')).href}`
  const found = await findings(away, blobs, `registry.url=http://127.0.0.1:${port}`)
  expect(found.get('Kafka')).toMatchObject({ level: 'fail', unreachable: true })
  for (const check of ['offsets', 'topics', 'layout'])
    expect(found.get(check)).toMatchObject({ level: 'warn', text: expect.stringMatching(/^not checked/) })
  for (const check of ['state', 'blobs', 'registry']) expect(found.get(check)).toMatchObject({ level: 'ok' })
  expect(found.get('state')?.text).toMatch(/^none yet/)
})

it('doctor tells what else is away beside Kafka, and of a state that is there', async () => {
  const store = await LmdbStore.open({
    folder: join(folder, 'data', 'state'),
    namespace: { clusterId: 'c', prefix: 'p.' },
    clock: systemClock,
    observer: silentObserver,
    warmUp: false,
  })
  await store.close()
  const port = await freePort()
  const found = await findings(`brokers=127.0.0.1:${port}`, `registry.url=http://127.0.0.1:${port}`)
  expect(found.get('state')).toMatchObject({ level: 'ok', text: expect.stringMatching(/^lmdb /) })
  expect(found.get('registry')).toMatchObject({ level: 'fail', unreachable: true })
})
