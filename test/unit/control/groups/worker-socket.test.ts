import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { askWorkers, listenForCommands } from '../../../../src/control/groups/worker-socket.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { ownIdentity } from '../../../../src/machine/process-identity.ts'

const view = {
  waiting: 3,
  inFlight: 1,
  sites: 2,
  runnable: 1,
  windowMessages: 4,
  stalledBy: null,
  proxiesOut: [],
  unwrittenMs: 0,
  siteWaits: { rate: 1 },
}
const worker = {
  view: () => view,
  find: (canonicalUrl: string) => (canonicalUrl === 'http://a.example/' ? [{ taskId: 't' } as never] : []),
}
let folder: string
let stop: (() => Promise<void>) | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-socket-'))
})
afterEach(async () => {
  await stop?.()
  stop = undefined
  rmSync(folder, { recursive: true })
})

const listen = async (dataDir = folder, observer = silentObserver): Promise<void> => {
  stop = await listenForCommands({ dataDir, stages: ['fetch'], worker, clock: systemClock, observer })
}
const ask = (question: Parameters<typeof askWorkers>[1], dataDir = folder) =>
  askWorkers(dataDir, question, { clock: systemClock, timeoutMs: 30_000 })

/** One line to the socket of this process, as it is. */
function raw(line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = createConnection(join(folder, 'sockets', `${process.pid}.sock`), () => socket.write(line))
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => {
      text += chunk
    })
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
  })
}

describe('a worker that runs', () => {
  it('is asked through a socket in the data folder, which is for its user alone and goes with it', async () => {
    await listen()
    expect(await ask({ ask: 'view' })).toEqual([{ pid: process.pid, stages: ['fetch'], answer: view }])
    expect(await ask({ ask: 'find', canonicalUrl: 'http://a.example/' })).toMatchObject([{ answer: [{ taskId: 't' }] }])
    expect(await ask({ ask: 'find', canonicalUrl: 'http://b.example/' })).toMatchObject([{ answer: [] }])
    expect(statSync(join(folder, 'sockets')).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(join(folder, 'sockets'))) expect(statSync(join(folder, 'sockets', name)).mode & 0o777).toBe(0o600)
    await stop?.()
    stop = undefined
    expect(readdirSync(join(folder, 'sockets'))).toEqual([])
    expect(await ask({ ask: 'view' })).toEqual([])
  })

  it('says no to another version, to what it does not know, and to what is no question', async () => {
    await listen()
    expect(JSON.parse(await raw('{"v":2,"ask":"view"}\n'))).toEqual({ v: 1, ok: false, message: 'this process speaks version 1' })
    expect(JSON.parse(await raw('{"v":1,"ask":"stop"}\n'))).toMatchObject({ v: 1, ok: false })
    expect(JSON.parse(await raw('nonsense\n'))).toMatchObject({ v: 1, ok: false })
    expect(await raw('x'.repeat(100_000))).toBe('')
    expect(await ask({ ask: 'view' })).toHaveLength(1)
  })

  it('is reached in a folder whose path is too long for a socket', async () => {
    const deep = join(folder, 'd'.repeat(120))
    await listen(deep)
    expect(await ask({ ask: 'view' }, deep)).toHaveLength(1)
  })

  it('works on where no socket can be made, and says so', async () => {
    const told: string[] = []
    writeFileSync(join(folder, 'sockets'), '')
    const observer = { emit: (event: string) => void told.push(event), child: () => observer }
    await listen(folder, observer)
    expect(told).toEqual(['WorkerSocketFailed'])
  })

  it('does not count when it was killed: what it left is taken away', async () => {
    const sockets = join(folder, 'sockets')
    mkdirSync(sockets)
    const gone = { ...ownIdentity(), start: 'another life' }
    const path = join(sockets, '1.sock')
    writeFileSync(path, '')
    writeFileSync(join(sockets, '1.json'), JSON.stringify({ v: 1, path, stages: ['fetch'], process: gone }))
    writeFileSync(join(sockets, '2.json'), '{')
    expect(await ask({ ask: 'view' })).toEqual([])
    expect(readdirSync(sockets)).toEqual(['2.json'])
  })

  it('is not asked from a copy of its folder', async () => {
    await listen()
    const copy = join(folder, 'copy')
    cpSync(join(folder, 'sockets'), join(copy, 'sockets'), { recursive: true, filter: (path) => !path.endsWith('.sock') })
    expect(await ask({ ask: 'view' }, copy)).toEqual([])
    expect(await ask({ ask: 'view' })).toHaveLength(1)
  })
})

describe('nobody', () => {
  it('answers where there is no folder', async () => {
    expect(await ask({ ask: 'view' }, join(folder, 'none'))).toEqual([])
  })
})
