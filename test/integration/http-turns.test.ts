import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { HttpClient } from '../../src/fetch/http-client.ts'
import type { HttpRequest, HttpResult } from '../../src/fetch/http-exchange.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { eventually } from '../support/eventually.ts'
import { TestSite } from '../support/fetch-fixture.ts'

const limits = { connectMs: 30_000, headersMs: 30_000, idleMs: 30_000, totalMs: 30_000, maxBodyBytes: 1_000 }

/** Requests that wait, once their connection stands, until they may leave. */
describe('a request whose connection has to be made', () => {
  const client = new HttpClient({ resolve: { '*.test': '127.0.0.1' }, allowAddresses: ['127.0.0.0/8'], clock: systemClock })
  const closings: (() => unknown)[] = [() => client.close()]
  afterEach(async () => {
    for (const close of closings.splice(1)) await close()
  })

  async function siteOf(): Promise<TestSite> {
    const site = await new TestSite((_, response) => response.setHeader('content-type', 'text/plain').end('x')).open()
    closings.push(() => site.close())
    return site
  }

  /** Sockets that the client makes from now on. */
  function madeSockets(): readonly Socket[] {
    const made: Socket[] = []
    const note = (message: unknown): void => void made.push((message as { socket: Socket }).socket)
    subscribe('net.client.socket', note)
    closings.push(() => unsubscribe('net.client.socket', note))
    return made
  }

  const ask = (url: string, more: Partial<HttpRequest> = {}): Promise<HttpResult> =>
    client.request({
      url: new URL(url),
      method: 'GET',
      headers: {},
      limits,
      keepBody: () => true,
      signal: new AbortController().signal,
      ...more,
    })

  it('is held until it may leave, with its connection open; one that has a connection is not asked', async () => {
    const site = await siteOf()
    let leave = (): void => undefined
    let held = 0
    let sent = 0
    const beforeSent = (): Promise<void> => {
      held += 1
      return new Promise((resolve) => {
        leave = resolve
      })
    }
    const first = ask(site.url('a.test', '/first'), { beforeSent, onSent: () => (sent += 1) })
    await eventually(() => held === 1, { what: 'the connection' })
    await new Promise((resolve) => setImmediate(resolve))
    expect([sent, site.requests.length]).toEqual([0, 0])
    leave()
    expect(await first).toMatchObject({ kind: 'response', status: 200 })
    let connections = 0
    const again = async (): Promise<boolean> => {
      const before = connections
      const beforeSent = async (): Promise<void> => {
        connections += 1
      }
      await ask(site.url('a.test', '/again'), { beforeSent })
      return connections === before
    }
    // A connection is free again a moment after its answer was read.
    await eventually(again, { what: 'a request on an open connection' })
    expect([held, sent]).toEqual([1, 1])
    expect(site.requests.length).toBeGreaterThan(1)
  })

  it('is held by itself: others of the site leave before it', async () => {
    const site = await siteOf()
    const order: string[] = []
    let leave = (): void => undefined
    let isHeld = false
    const beforeSent = (): Promise<void> => {
      isHeld = true
      return new Promise((resolve) => {
        leave = resolve
      })
    }
    const first = ask(site.url('b.test', '/held'), { beforeSent, onSent: () => order.push('held') })
    await eventually(() => isHeld, { what: 'the connection' })
    await ask(site.url('b.test', '/other'), { beforeSent: async () => undefined, onSent: () => order.push('other') })
    leave()
    await first
    expect(order).toEqual(['other', 'held'])
    expect(site.requests.map(({ path }) => path)).toEqual(['/other', '/held'])
  })

  it('fails when it may not leave, when its time is over, and when the site has closed the connection meanwhile', async () => {
    const site = await siteOf()
    const refused = await ask(site.url('c.test', '/'), { beforeSent: () => Promise.reject(new Error('not now')) })
    expect(refused).toMatchObject({ kind: 'failure', reason: 'network-error', detail: expect.stringContaining('not now') })
    const never = (): Promise<void> => new Promise(() => undefined)
    const late = await ask(site.url('c.test', '/'), { beforeSent: never, limits: { ...limits, totalMs: 150 } })
    expect(late).toMatchObject({ kind: 'failure', reason: 'total-timeout' })
    expect(site.requests).toEqual([])

    const made = madeSockets()
    const sockets: Socket[] = []
    const impatient: Server = createTcpServer((socket) => sockets.push(socket))
    await new Promise<void>((resolve) => impatient.listen(0, '127.0.0.1', resolve))
    closings.push(() => impatient.close())
    const { port } = impatient.address() as { port: number }
    const beforeSent = async (): Promise<void> => {
      await eventually(() => sockets.length === 1, { what: 'the connection' })
      sockets[0]?.resetAndDestroy()
      await eventually(() => made[0]?.destroyed, { what: 'the client to find it closed' })
    }
    expect(await ask(`http://d.test:${port}/`, { beforeSent })).toMatchObject({ kind: 'failure', reason: 'connection-reset' })
  })

  it('fails at once where the server speaks before it was asked, and asks for no other connection', async () => {
    let connections = 0
    const greeting = createTcpServer((socket) => {
      connections += 1
      socket.on('error', () => undefined).write('220 mail.test ready\r\n')
    })
    await new Promise<void>((resolve) => greeting.listen(0, '127.0.0.1', resolve))
    closings.push(() => greeting.close())
    const { port } = greeting.address() as { port: number }
    const made = madeSockets()
    const beforeSent = async (): Promise<void> => {
      await eventually(() => (made[0]?.bytesRead ?? 0) > 0, { what: 'the greeting' })
    }
    expect(await ask(`http://e.test:${port}/`, { beforeSent })).toMatchObject({ kind: 'failure', reason: 'protocol-error' })
    expect(connections).toBe(1)
  })
})
