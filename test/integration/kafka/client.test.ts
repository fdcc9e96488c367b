import net from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createKafkaClient } from '../../../src/kafka/client.ts'
import { clusterMetadata } from '../../../src/kafka/cluster.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { expectInTime } from '../../support/in-time.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { brokers, uniqueName } from '../../support/services.ts'

const servers: net.Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** A server that takes connections and does with them what it is told. */
async function server(onSocket: (socket: net.Socket) => void): Promise<string> {
  const created = net.createServer((socket) => {
    socket.on('error', () => undefined)
    onSocket(socket)
  })
  servers.push(created)
  await new Promise<void>((resolve) => created.listen(0, '127.0.0.1', resolve))
  return `127.0.0.1:${(created.address() as net.AddressInfo).port}`
}

const clientOf = (...addresses: string[]) => createKafkaClient({ brokers: addresses, clientId: 'test' }, silentObserver)

describe('the Kafka client', () => {
  it('reaches a cluster by any of its addresses', async () => {
    await expect(clientOf('127.0.0.1:1', ...brokers()).verifyReachable()).resolves.toBeUndefined()
  })

  it('names every address that it tried, and why each failed', async () => {
    const mute = await server(() => undefined)
    const rude = await server((socket) => socket.destroy())
    const started = performance.now()
    const failure = await clientOf('127.0.0.1:1', 'no-such-host.invalid:9092', mute, rude, 'localhost')
      .verifyReachable({ timeoutMs: 2_000 })
      .catch((error: unknown) => error)
    expectInTime(performance.now() - started, 15_000)
    expect(failure).toMatchObject({ code: 'KAFKA_UNREACHABLE', exitCode: 4 })
    const text = String(failure)
    expect(text).toMatch(/127\.0\.0\.1:1: connect ECONNREFUSED/)
    // A machine whose name server is away has no answer in time.
    expect(text).toMatch(/no-such-host\.invalid:9092: (getaddrinfo|no answer within)/)
    expect(text).toContain(`${mute}: no answer within 2000 ms`)
    expect(text).toMatch(new RegExp(`${rude}: \\w+`))
    expect(text).toContain('localhost: is not of the form host:port')
  })

  it('says so when no address was given', async () => {
    await expect(clientOf().verifyReachable()).rejects.toThrow(/no address was given/)
  })

  it('can be stopped while it tries', async () => {
    const mute = await server(() => undefined)
    const abort = new AbortController()
    const tried = clientOf(mute).verifyReachable({ timeoutMs: 10_000, signal: abort.signal })
    abort.abort(new Error('no more'))
    await expect(tried).rejects.toThrow('no more')
  })

  it('opens connections of its own for calls that the public client does not have', async () => {
    const cluster = await clientOf(...brokers()).openCluster()
    try {
      const coordinator = await cluster.findGroupCoordinator({ groupId: uniqueName('group') })
      expect(coordinator.isConnected()).toBe(true)
      expect((await clusterMetadata(cluster)).brokers.length).toBeGreaterThan(0)
    } finally {
      await cluster.disconnect()
    }
  })

  it('keeps what kafkajs says of the daily life of groups out of the log, and tells the rest as events', async () => {
    const { observer, events } = recordingObserver()
    const client = createKafkaClient({ brokers: brokers(), clientId: 'test' }, observer)
    const lines: string[] = []
    const logger = client.isolated((line) => lines.push(line.message)).logger()
    logger.error('Response Heartbeat(key: 12, version: 3)', { error: 'The group is rebalancing, so a rejoin is needed' })
    logger.info('Pausing fetching from 1 topics')
    logger.error('Connection error', { broker: 'b:1', error: 'ECONNRESET' })
    expect(lines).toEqual(['Response Heartbeat(key: 12, version: 3)', 'Connection error'])
    expect(events).toEqual([
      { event: 'KafkaClientLogged', fields: expect.objectContaining({ text: 'Connection error', broker: 'b:1', error: 'ECONNRESET' }) },
    ])
  })
})
