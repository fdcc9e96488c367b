import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { describeConfig } from '../../src/config/describe.ts'
import { loadConfig } from '../../src/config/load.ts'
import { doctor, type Finding } from '../../src/control/inspect/doctor.ts'
import { registryOf } from '../../src/control/runtime/registry-client.ts'
import { Runtime } from '../../src/control/runtime/runtime.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import { RedisStore } from '../../src/state/redis/redis-store.ts'
import { freePort } from '../support/free-port.ts'
import { OwnBroker } from '../support/own-broker.ts'
import { OwnRedis } from '../support/own-redis.ts'
import { TEST_CERTIFICATE } from '../support/test-certificate.ts'
import * as pki from '../support/test-pki.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-tls-'))
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}
const FILES = {
  ca: file('ca.pem', pki.CA),
  otherCa: file('other-ca.pem', TEST_CERTIFICATE.cert),
  cert: file('me.pem', pki.CLIENT),
  expired: file('expired.pem', pki.CLIENT_EXPIRED),
  key: file('me.key', pki.CLIENT_KEY),
  encrypted: file('encrypted.key', pki.CLIENT_KEY_ENCRYPTED),
  otherCert: file('other.pem', TEST_CERTIFICATE.cert),
  otherKey: file('other.key', TEST_CERTIFICATE.key),
}

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const load = (...sets: string[]) => loadConfig({ sets: [`data=${join(folder, 'data')}`, ...sets], flags: {}, environment: {} })

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  closing.push(() => server.close())
  return (server.address() as AddressInfo).port
}

/** A whole record of TLS 1.2. */
const fatalAlert = (code: number): Buffer => Buffer.from([0x15, 3, 3, 0, 2, 2, code])

describe('Kafka by TLS with certificates of its clients', () => {
  let broker: OwnBroker
  beforeAll(async () => {
    broker = await OwnBroker.start({ tls: { cert: pki.SERVER, key: pki.SERVER_KEY, ca: pki.CA } })
  })
  afterAll(() => broker.end())

  const open = (...sets: string[]): Promise<Runtime> =>
    Runtime.open({
      config: load(`brokers=${broker.guardedAddress}`, ...sets).config,
      owner: 'test',
      clock: systemClock,
      observer: silentObserver,
    })
  const tls = (parts: Partial<Record<'ca' | 'cert' | 'key' | 'passphrase', string>>): string[] => [
    'kafka.ssl=true',
    ...Object.entries(parts).map(([name, value]) => `kafka.tls.${name}=${value}`),
  ]

  it.each([
    ['a key as it is', { key: FILES.key }],
    ['an encrypted key', { key: FILES.encrypted, passphrase: 'hush' }],
  ])('lets in whoever has one: %s', async (_, key) => {
    const runtime = await open(...tls({ ca: FILES.ca, cert: FILES.cert, ...key }))
    closing.push(() => runtime.close())
    expect(await runtime.admin.listTopics()).toEqual([])
    expect(runtime.clusterId).toMatch(/\w/)
  })

  it.each([
    ['without a CA', tls({ cert: FILES.cert, key: FILES.key }), /no CA that is trusted .*name the file of its CA in kafka\.tls\.ca/],
    ['by another CA', tls({ ca: FILES.otherCa, cert: FILES.cert, key: FILES.key }), /that CA is not in the file of kafka\.tls\.ca/],
    ['without a certificate', tls({ ca: FILES.ca }), /it asks for a certificate \(alert .*\): set kafka\.tls\.cert and kafka\.tls\.key/],
    [
      'with one that is over',
      tls({ ca: FILES.ca, cert: FILES.expired, key: FILES.key }),
      /does not take the certificate of kafka\.tls\.cert/,
    ],
    ['with one of a stranger', tls({ ca: FILES.ca, cert: FILES.otherCert, key: FILES.otherKey }), /does not take .*kafka\.tls\.cert/],
    ['without TLS', [], /it may want TLS \(kafka\.ssl\) or a login/],
  ])('says why it was not reached, and what to do: %s', async (_, sets, message) => {
    await expect(open(...sets)).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE', message: expect.stringMatching(message) })
  })

  it('says that it hung up where the port of a Kafka speaks no TLS', async () => {
    await expect(open(...tls({ ca: FILES.ca }), `brokers=${broker.address}`)).rejects.toThrow(/it hung up before TLS was agreed on/)
  })

  it.each([
    ['no TLS', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), /it speaks no TLS at this port/],
    ['the alert "unrecognized name"', fatalAlert(112), /alert unrecognized name\): ask it by a name that it knows/],
    ['the alert "protocol version"', fatalAlert(70), /alert protocol version\): it takes neither TLS 1\.2 nor 1\.3/],
    [
      'the alert "handshake failure"',
      fatalAlert(40),
      /alert handshake failure\): no cipher in common, .* or it wants a certificate \(kafka/,
    ],
  ])('says what it was answered with: %s', async (_, answer, message) => {
    const port = await listening(createTcpServer((socket) => socket.on('error', () => undefined).once('data', () => socket.end(answer))))
    await expect(open(...tls({ ca: FILES.ca }), `brokers=localhost:${port}`)).rejects.toThrow(message)
  })

  it.each([
    ['is over', pki.SERVER_EXPIRED, /certificate has expired: that of the server/],
    ['names another host', pki.SERVER_ELSEWHERE, /DNS:kafka\.example: ask it by a name that its certificate has/],
  ])('says so where the certificate of the broker %s', async (_, cert, message) => {
    const port = await listening(createServer({ cert, key: pki.SERVER_KEY }, (socket) => socket.on('error', () => undefined)))
    await expect(open(...tls({ ca: FILES.ca }), `brokers=localhost:${port}`)).rejects.toThrow(message)
  })

  it('is not reached for by doctor where a file can not be used, and a certificate that is over is told', async () => {
    const findings = async (...sets: string[]): Promise<Finding[]> => {
      const found: Finding[] = []
      const options = { clock: systemClock, observer: silentObserver, signal: new AbortController().signal }
      for await (const finding of doctor({ ...options, config: load(`brokers=${broker.guardedAddress}`, ...sets).config }))
        found.push(finding)
      return found.filter(({ level }) => level === 'fail')
    }
    const wrong = await findings(...tls({ ca: FILES.ca, cert: FILES.cert, key: FILES.otherKey }))
    expect(wrong.map(({ check, text }) => [check, text])).toEqual([['configuration', expect.stringMatching(/^kafka\.tls\.key: /)]])
    const over = await findings(...tls({ ca: FILES.ca, cert: FILES.expired, key: FILES.key }))
    expect(over.map(({ check, text }) => [check, text])).toEqual([
      ['certificate', expect.stringContaining('was valid until 2021-01-01T00:00:00.000Z')],
      ['Kafka', expect.stringContaining('does not take the certificate')],
    ])
  })
})

describe('the options of TLS', () => {
  it('are shown as paths, and the passphrase is hidden', () => {
    const shown = JSON.stringify(
      describeConfig(
        load(
          'brokers=kafka.example:9093',
          'kafka.ssl=true',
          `kafka.tls.cert=${FILES.cert}`,
          `kafka.tls.key=${FILES.encrypted}`,
          'kafka.tls.passphrase=hush',
        ),
      ),
    )
    expect(shown).toContain('me.pem')
    expect(shown).not.toMatch(/hush|BEGIN/)
  })

  it.each([
    [['kafka.tls.ca=ca.pem'], /kafka\.tls\.ca: set, and kafka\.ssl is not true/],
    [['kafka.ssl=true', 'kafka.tls.cert=me.pem'], /kafka\.tls\.cert and kafka\.tls\.key go together/],
    [['kafka.ssl=true', 'kafka.tls.passphrase=hush'], /^(?!.*hush)kafka\.tls\.passphrase is set, and kafka\.tls\.key is not/],
    [['registry.url=http://registry', 'registry.tls.ca=ca.pem'], /registry\.tls\.ca: set, and registry\.url is no https URL/],
  ])('are refused where they could do nothing: %j', (sets, message) => {
    expect(() => load(...sets)).toThrow(message)
  })

  it('are for a registry whose URL is written in capitals too', () => {
    expect(() => load('registry.url=HTTPS://registry', 'registry.tls.ca=ca.pem')).not.toThrow()
  })

  it.each([
    [['kafka.ssl=true'], /kafka\.ssl is set and brokers is not/],
    [
      ['kafka.sasl.mechanism=plain', 'kafka.sasl.username=u', 'kafka.sasl.password=hush'],
      /^(?!.*hush).*kafka\.sasl\.mechanism is set and brokers is not/s,
    ],
  ])('are not for the Kafka that Millrace runs itself, which is not started for them: %j', (sets, message) => {
    expect(() => load(...sets)).toThrow(message)
    expect(() => load(...sets, 'brokers=kafka.example:9093')).not.toThrow()
  })
})

describe('a schema registry by TLS with certificates of its clients', () => {
  const registry = async (): Promise<string> => {
    const options = { cert: pki.SERVER, key: pki.SERVER_KEY, ca: pki.CA, requestCert: true, rejectUnauthorized: true }
    const server = createHttpsServer(options, (_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json', connection: 'close' }).end('{"schema":"\\"string\\""}'),
    )
    return `registry.url=https://localhost:${await listening(server)}`
  }

  it('lets in whoever has one', async () => {
    const files = [`registry.tls.ca=${FILES.ca}`, `registry.tls.cert=${FILES.cert}`, `registry.tls.key=${FILES.key}`]
    expect(await registryOf(load(await registry(), ...files).config)?.schemaById(1)).toBe('"string"')
  })

  it('says why it did not answer, and what to do', async () => {
    const url = await registry()
    const ask = (...sets: string[]) => registryOf(load(url, ...sets).config)?.schemaById(1)
    const code = 'REGISTRY_UNREACHABLE'
    await expect(ask()).rejects.toMatchObject({ code, message: expect.stringMatching(/name the file of its CA in registry\.tls\.ca/) })
    // This server hangs up on whoever shows none, and says nothing.
    await expect(ask(`registry.tls.ca=${FILES.ca}`)).rejects.toMatchObject({ code, message: expect.not.stringMatching(/fetch failed$/) })
  })
})

describe('Redis by TLS with certificates of its clients', () => {
  /** At which port it speaks TLS, and wants a certificate. */
  const serve = async (settings: readonly string[] = [], options: { sentinel?: boolean } = {}): Promise<number> => {
    const port = await freePort()
    const server = [file('server.pem', pki.SERVER), file('server.key', pki.SERVER_KEY)]
    const files = [`tls-cert-file ${server[0]}`, `tls-key-file ${server[1]}`, `tls-ca-cert-file ${FILES.ca}`]
    const redis = await OwnRedis.start([`tls-port ${port}`, 'tls-auth-clients yes', ...files, ...settings], options)
    closing.push(() => redis.end())
    return port
  }
  const open = (url: string): Promise<RedisStore> =>
    RedisStore.open({ url, namespace: { clusterId: 'c', prefix: 'p.' }, clock: systemClock, observer: silentObserver, warmUp: false })

  it('lets in whoever has one, and says what is missing', async () => {
    const url = `rediss://localhost:${await serve()}`
    const store = await open(`${url}?ca=${FILES.ca}&cert=${FILES.cert}&key=${FILES.encrypted}&passphrase=hush`)
    expect((await store.health()).location).toBe(url)
    await store.close()
    const code = 'REDIS_UNREACHABLE'
    await expect(open(url)).rejects.toMatchObject({
      code,
      message: expect.stringContaining('name the file of its CA in `ca` of the redis URL'),
    })
    await expect(open(`${url}?ca=${FILES.ca}`)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(/set `cert` of the redis URL/),
    })
    await expect(open(`${url}?ca=${FILES.ca}&cert=${FILES.cert}`)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })

  it('asks the sentinels by TLS too, with the same files', async () => {
    const leader = await serve()
    const settings = ['tls-replication yes', `sentinel monitor main 127.0.0.1 ${leader} 1`, 'requirepass hush']
    const url = `rediss+sentinel://localhost:${await serve(settings, { sentinel: true })}/main`
    const store = await open(`${url}?ca=${FILES.ca}&cert=${FILES.cert}&key=${FILES.key}&sentinelPassword=hush`)
    expect((await store.health()).location).toBe(url)
    await store.writeValue('n', 'kept')
    expect(await store.readValue('n')).toBe('kept')
    await store.close()
    await expect(open(`${url}?sentinelPassword=hush`)).rejects.toMatchObject({ code: 'REDIS_UNREACHABLE' })
  })
})
