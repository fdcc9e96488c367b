import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Admin, Kafka, logLevel } from 'kafkajs'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { brokerFolder, newKafkaId, readProcessFile } from '../../src/embedded/broker-folder.ts'
import type { EmbeddedBroker } from '../../src/embedded/broker-options.ts'
import { acquireBroker, downBroker, keepBroker } from '../../src/embedded/embedded-broker.ts'
import { isRegistered } from '../../src/embedded/former-registration.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { isAlive, ownIdentity, type ProcessIdentity } from '../../src/machine/process-identity.ts'
import { brokerOptions, brokerStatus, RecordingObserver } from '../support/embedded.ts'
import { eventually } from '../support/eventually.ts'
import { expectInTime } from '../support/in-time.ts'

let dataDir: string
let observer: RecordingObserver
const children: ChildProcess[] = []

beforeAll(async () => {
  // The first start on a machine fetches the jars and writes the class-data archive; the tests below are about warm starts.
  const folder = mkdtempSync(join(tmpdir(), 'millrace-warm-'))
  const broker = await acquireBroker(brokerOptions(folder, new RecordingObserver()))
  await broker.release()
  rmSync(folder, { recursive: true, force: true })
}, 600_000)

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'millrace-embedded-'))
  observer = new RecordingObserver()
})

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  const left = processes()
  if (left.length > 0) rmSync(brokerFolder(dataDir).keep, { force: true })
  await eventually(() => !left.some((identity) => isAlive(identity)), {
    what: 'broker and supervisor to end by themselves',
  })
  rmSync(dataDir, { recursive: true, force: true })
})

const acquire = (owner?: string) => acquireBroker(brokerOptions(dataDir, observer, owner))

/** Supervisor and broker that the data folder names. */
function processes(): ProcessIdentity[] {
  const file = readProcessFile(brokerFolder(dataDir))
  return file === undefined || file === 'broken' ? [] : [file.supervisor, file.broker]
}

function running(): { supervisor: ProcessIdentity; broker: ProcessIdentity } {
  const [supervisor, broker] = processes()
  if (supervisor === undefined || broker === undefined) throw new Error('no broker is noted in the data folder')
  return { supervisor, broker }
}

/** A broker that still runs writes into the folder meanwhile. */
const REMOVED = { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }

/** Copies a folder in which a broker works: a file that went away while it was copied is no reason to give up. */
function copyLive(from: string, to: string): void {
  for (let tries = 20; ; tries -= 1) {
    try {
      cpSync(from, to, { recursive: true })
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tries === 1) throw error
      rmSync(to, { recursive: true, force: true })
    }
  }
}

async function withAdmin<T>(brokers: string[], use: (admin: Admin, kafka: Kafka) => Promise<T>): Promise<T> {
  const kafka = new Kafka({
    clientId: 'test',
    brokers,
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 30, maxRetryTime: 300, retries: 12 },
  })
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await use(admin, kafka)
  } finally {
    await admin.disconnect()
  }
}

/** Creates a topic and writes one message: proof that the broker works. */
const produceOne = (broker: EmbeddedBroker, topic: string) =>
  withAdmin(broker.brokers, async (admin, kafka) => {
    await admin.createTopics({ topics: [{ topic, numPartitions: 1 }] })
    const producer = kafka.producer()
    await producer.connect()
    await producer.send({ topic, acks: -1, messages: [{ value: 'x' }] })
    await producer.disconnect()
  })

/** From nothing to the first acknowledged message, each time a test begins that way. */
const startsMs: number[] = []

async function timedStart(topic: string): Promise<EmbeddedBroker> {
  const started = performance.now()
  const broker = await acquire()
  await produceOne(broker, topic)
  startsMs.push(performance.now() - started)
  return broker
}

const highWatermark = (broker: EmbeddedBroker, topic: string) =>
  withAdmin(broker.brokers, async (admin) => (await admin.fetchTopicOffsets(topic))[0]?.high)

/** Another process that acquires the broker; resolves with the line it prints. */
async function startOwner(): Promise<{ child: ChildProcess; address: string; clusterId: string }> {
  const script = fileURLToPath(new URL('../support/broker-owner.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', script, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const [address = '', clusterId = ''] = line.toString().trim().split(' ')
  return { child, address, clusterId }
}

describe('the embedded broker', () => {
  it('stops with its last user, and comes back on the same port with its data', async () => {
    const first = await timedStart('kept')
    const second = await acquire()
    expect([second.port, second.clusterId]).toEqual([first.port, first.clusterId])
    await first.release()
    await first.release()
    expect(brokerStatus(dataDir)).toMatchObject({ kind: 'up', port: first.port, users: [`a test (pid ${process.pid})`], kept: false })
    const { broker, supervisor } = running()
    await second.release()
    expect([isAlive(broker), brokerStatus(dataDir)]).toEqual([false, { kind: 'down' }])
    await eventually(() => !isAlive(supervisor), { what: 'the supervisor to end' })
    expect(observer.names()).toEqual(['BrokerStarting', 'BrokerStarted', 'BrokerStopped'])
    // It was taken out of service at its end, so that the next start need not.
    const { data, fenced: note } = brokerFolder(dataDir)
    expect(isRegistered({ data, note })).toBe(false)

    const third = await acquire()
    expect([third.port, third.clusterId]).toEqual([first.port, first.clusterId])
    expect(await highWatermark(third, 'kept')).toBe('1')
    expect(observer.repairs()).toEqual([])
    // Whoever comes while the broker is ending waits for its end and starts the next one.
    await third.release({ wait: false })
    await eventually(() => brokerStatus(dataDir).kind === 'down', { what: 'the broker to be ending' })
    expect(processes()).toHaveLength(2)
    const again = await acquire()
    expect([again.port, again.clusterId]).toEqual([first.port, first.clusterId])
    expect(await highWatermark(again, 'kept')).toBe('1')
    await again.release()
    expect(observer.repairs()).toEqual([])
  })

  it('is shared by processes that start at once, outlives the one that started it, and ends by itself when all were killed', async () => {
    const [{ child, address, clusterId }, other] = await Promise.all([startOwner(), startOwner()])
    expect([other.address, other.clusterId]).toEqual([address, clusterId])
    const shared = await acquire('the second')
    expect([shared.brokers[0], shared.clusterId]).toEqual([address, clusterId])
    expect(observer.names()).toEqual([])
    child.kill('SIGKILL')
    await once(child, 'exit')
    await produceOne(shared, 'after')

    await shared.release()
    const { broker, supervisor } = running()
    expect(isAlive(broker)).toBe(true)
    other.child.kill('SIGKILL')
    await eventually(() => !isAlive(broker) && !isAlive(supervisor), { what: 'the orphaned broker to end' })
    expect(existsSync(brokerFolder(dataDir).process)).toBe(false)
  })

  it('is back within 10 s after a kill -9, with its data and for those who use it', async () => {
    const user = await acquire()
    await produceOne(user, 'survives')
    const before = running()
    process.kill(before.broker.pid, 'SIGKILL')
    const started = performance.now()
    await eventually(() => !isAlive(before.broker), { what: 'the broker to die' })
    const next = await acquire('the next')
    const tookMs = performance.now() - started
    expect(next.port).toBe(user.port)
    expect(await highWatermark(next, 'survives')).toBe('1')
    await produceOne(user, 'goes-on')
    expectInTime(tookMs, 10_000)
    await next.release()
    await user.release()
  })

  it('is started again when broker, supervisor and user were killed together', async () => {
    const { child, clusterId } = await startOwner()
    const killed = running()
    for (const pid of [killed.supervisor.pid, killed.broker.pid]) process.kill(pid, 'SIGKILL')
    child.kill('SIGKILL')
    await eventually(() => !isAlive(killed.broker) && !isAlive(killed.supervisor), { what: 'both to die' })
    const started = performance.now()
    const next = await acquire()
    expectInTime(performance.now() - started, 10_000)
    await produceOne(next, 'again')
    expect(next.clusterId).toBe(clusterId)
    expect(observer.repairs()).toEqual([expect.stringMatching(/the broker \(process \d+, .*\) is dead and was not stopped in order/)])
    await next.release()
  })

  it('gets another supervisor when its own was killed, and still ends with its last user', async () => {
    const user = await acquire()
    const before = running()
    process.kill(before.supervisor.pid, 'SIGKILL')
    await eventually(() => !isAlive(before.supervisor), { what: 'the supervisor to die' })
    const next = await acquire()
    const after = running()
    expect(after.broker).toEqual(before.broker)
    expect(after.supervisor.pid).not.toBe(before.supervisor.pid)
    expect(observer.repairs()).toEqual(['the supervisor of the broker was gone: started another'])
    await user.release()
    await next.release()
    expect(isAlive(before.broker)).toBe(false)
  })

  it('kept by up stays without users, refuses down while it has some, and stops then', async () => {
    await keepBroker(brokerOptions(dataDir, observer, 'millrace up'))
    expect(brokerStatus(dataDir)).toMatchObject({ kind: 'up', kept: true, users: [] })
    const { broker } = running()
    const user = await acquire('millrace run')
    const options = { dataDir, clock: systemClock, observer }
    await expect(downBroker(options)).rejects.toMatchObject({
      code: 'DATA_DIR_LOCKED',
      message: expect.stringContaining(`\`millrace run\` (process ${process.pid}, running since `),
    })
    await user.release()
    expect([isAlive(broker), brokerStatus(dataDir).kind]).toEqual([true, 'up'])
    await expect(acquireBroker({ ...brokerOptions(dataDir, observer), port: 1 })).rejects.toMatchObject({ code: 'USAGE' })
    expect(await downBroker(options)).toBe(true)
    expect([isAlive(broker), brokerStatus(dataDir).kind]).toEqual([false, 'down'])
    expect(await downBroker(options)).toBe(false)
  })

  it('whose supervisor was killed is stopped by down as well', async () => {
    await keepBroker(brokerOptions(dataDir, observer, 'millrace up'))
    const { broker, supervisor } = running()
    process.kill(supervisor.pid, 'SIGKILL')
    await eventually(() => !isAlive(supervisor), { what: 'the supervisor to die' })
    expect(await downBroker({ dataDir, clock: systemClock, observer })).toBe(true)
    expect(isAlive(broker)).toBe(false)
  })

  it('is joined by whoever comes where an older version has noted it, which says no folder', async () => {
    const first = await acquire()
    const { supervisor } = running()
    // The supervisor of an older version writes the note as it stands here.
    process.kill(supervisor.pid, 'SIGSTOP')
    try {
      const path = brokerFolder(dataDir).process
      const { folder: _, ...note } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
      writeFileSync(path, JSON.stringify(note))
      const second = await acquire()
      expect([second.port, second.clusterId]).toEqual([first.port, first.clusterId])
      await second.release({ wait: false })
    } finally {
      process.kill(supervisor.pid, 'SIGCONT')
    }
    await first.release()
    expect(observer.repairs()).toEqual([])
  })

  it('ends when its data folder is moved, is said to be lost, and starts in the new place with its data', async () => {
    const user = await acquire()
    await produceOne(user, 'moved')
    const { broker, supervisor } = running()
    const moved = `${dataDir}-moved`
    renameSync(dataDir, moved)
    try {
      await expect(user.lost).rejects.toMatchObject({ code: 'KAFKA_LOST', message: expect.stringContaining('moved, removed or replaced') })
      await eventually(() => !isAlive(broker) && !isAlive(supervisor), { what: 'the broker to end' })
      const next = await acquireBroker(brokerOptions(moved, observer))
      expect([next.clusterId, await highWatermark(next, 'moved')]).toEqual([user.clusterId, '1'])
      await next.release()
      await user.release()
    } finally {
      rmSync(moved, { recursive: true, force: true })
    }
  })

  it('ends when another folder is put in its place, as from a backup, and leaves the broker of that one alone', async () => {
    await keepBroker(brokerOptions(dataDir, observer, 'millrace up'))
    const before = running()
    const backup = `${dataDir}-backup`
    copyLive(dataDir, backup)
    rmSync(dataDir, REMOVED)
    renameSync(backup, dataDir)
    const next = await acquire()
    const after = running()
    await eventually(() => !isAlive(before.broker) && !isAlive(before.supervisor), { what: 'the first broker to end' })
    await produceOne(next, 'restored')
    expect([running(), isAlive(after.broker)]).toEqual([after, true])
    await next.release()
    expect(isAlive(after.broker)).toBe(false)
  })

  it.each(['removed', 'replaced'])('is lost to its users where another one begins in its %s folder first', async (what) => {
    const user = await acquire()
    const lost = expect(user.lost).rejects.toMatchObject({ code: 'KAFKA_LOST', message: expect.stringContaining('removed or replaced') })
    const before = running()
    const backup = `${dataDir}-backup`
    if (what === 'replaced') copyLive(dataDir, backup)
    rmSync(dataDir, REMOVED)
    if (what === 'replaced') renameSync(backup, dataDir)
    await eventually(() => !isAlive(before.broker) && !isAlive(before.supervisor), { what: 'the first broker to end' })
    const next = await acquire('another test')
    const after = running()
    expect(next.clusterId === user.clusterId).toBe(what === 'replaced')
    await lost
    await user.release({ wait: false })
    expect([running(), isAlive(after.broker)]).toEqual([after, true])
    await next.release()
    expect(isAlive(after.broker)).toBe(false)
  })

  it('ends when its whole data folder is removed', async () => {
    await keepBroker(brokerOptions(dataDir, observer, 'millrace up'))
    const { broker, supervisor } = running()
    // The broker writes on meanwhile.
    rmSync(dataDir, REMOVED)
    await eventually(() => !isAlive(broker) && !isAlive(supervisor), { what: 'the broker to end' })
  })
})

describe('a data folder in disorder', () => {
  it('is put right: half formatted, stale lock, stale pids, unreadable notes', async () => {
    const folder = brokerFolder(dataDir)
    mkdirSync(folder.data, { recursive: true })
    mkdirSync(folder.leases)
    writeFileSync(join(folder.data, 'meta.properties'), '')
    writeFileSync(folder.cluster, '{"clusterId":')
    const dead = { ...ownIdentity(), pid: 4_194_303 }
    writeFileSync(join(folder.path, 'start.lock.3'), JSON.stringify({ process: dead, what: 'millrace run', released: false }))
    writeFileSync(join(folder.leases, 'old.json'), JSON.stringify({ process: dead, owner: 'millrace run' }))
    writeFileSync(folder.process, JSON.stringify({ phase: 'up', clusterId: 'a'.repeat(22), port: 1, supervisor: dead, broker: dead }))
    const broker = await timedStart('works')
    expect(observer.repairs().map((what) => what.replace(/\(process[^)]*\)/, '()').replaceAll(folder.path, ''))).toEqual([
      'the start lock was left by `millrace run` (), which is dead',
      'the broker () is dead and was not stopped in order',
      // Nothing was known yet of how to start one: the lock was given back meanwhile.
      '/cluster.json was unreadable and was written again',
      'the log was half formatted and empty: formatted it anew',
    ])
    expect(brokerStatus(dataDir)).toMatchObject({ users: [`a test (pid ${process.pid})`] })

    // The same while it runs: whoever comes next still finds it.
    writeFileSync(folder.process, '{')
    const second = await acquire()
    expect(second.port).toBe(broker.port)
    await second.release()
    await broker.release()
  })

  it('gets another port when its own was taken meanwhile, and says so', async () => {
    const first = await timedStart('t')
    await first.release()
    const server = createServer((socket) => socket.destroy())
    server.listen(first.port, '127.0.0.1')
    await once(server, 'listening')
    try {
      const second = await acquire()
      expect(second.port).not.toBe(first.port)
      expect(observer.events.filter((event) => event.name === 'BrokerPortChanged')).toEqual([
        { name: 'BrokerPortChanged', fields: { from: first.port, port: second.port } },
      ])
      await second.release()
      const wanted = acquireBroker({ ...brokerOptions(dataDir, observer), port: first.port })
      await expect(wanted).rejects.toMatchObject({
        code: 'KAFKA_START_FAILED',
        message: expect.stringContaining('is taken by another program'),
      })
    } finally {
      server.close()
    }
  })

  it('that is a copy has a broker of its own, beside that of the original, and is told of none that is not its own', async () => {
    const original = await timedStart('t')
    const { broker } = running()
    const copy = join(dataDir, 'copy')
    copyLive(brokerFolder(dataDir).path, brokerFolder(copy).path)
    // Once with the note of the broker, as it was copied while it ran, and once without, as it was copied before.
    for (const isNoted of [true, false]) {
      if (!isNoted) rmSync(brokerFolder(copy).process, { force: true })
      expect(brokerStatus(copy)).toEqual({ kind: 'down' })
      const second = await acquireBroker(brokerOptions(copy, observer))
      expect(second.port).not.toBe(original.port)
      await produceOne(second, isNoted ? 'of-copy' : 'again')
      await second.release()
    }
    expect([running().broker, isAlive(broker)]).toEqual([broker, true])
    expect(await withAdmin(original.brokers, (admin) => admin.listTopics())).toEqual(['t'])
    await original.release()
  })

  it('that Kafka refuses is explained with the last lines of its log, and nothing stays behind', async () => {
    const { data } = brokerFolder(dataDir)
    mkdirSync(join(data, 'scrape.urls-0'), { recursive: true })
    const ids = `cluster.id=${newKafkaId()}\ndirectory.id=${newKafkaId()}`
    writeFileSync(join(data, 'meta.properties'), `version=99\nnode.id=1\n${ids}\n`)
    await expect(acquire()).rejects.toMatchObject({
      code: 'KAFKA_START_FAILED',
      exitCode: 4,
      message: expect.stringMatching(/broker\.log:\n.*\[main\] ERROR .*meta\.properties/s),
    })
    expect([brokerStatus(dataDir), processes()]).toEqual([{ kind: 'down' }, []])
  })

  it('that takes Kafka minutes to read through is waited for, and whoever waits is told', async () => {
    // For whoever waits a second counts as ten.
    const clock = { ...systemClock, mono: () => systemClock.mono() * 10 }
    const starting = acquireBroker({ ...brokerOptions(dataDir, observer), clock })
    const file = await eventually(() => processes().length > 0 && running(), { everyMs: 5, what: 'the broker process' })
    process.kill(file.broker.pid, 'SIGSTOP')
    const told = () => observer.events.filter(({ name }) => name === 'BrokerStartSlow').map(({ fields }) => Number(fields.seconds))
    await eventually(() => (told().at(-1) ?? 0) > 60, { what: 'a minute' })
    process.kill(file.broker.pid, 'SIGCONT')
    const broker = await starting
    expect(told()[0]).toBeGreaterThanOrEqual(15)
    // By a clock that is ten times as fast.
    expectInTime((told()[0] ?? Number.NaN) * 1_000, 45_000, 'the first word')
    await broker.release()
  })

  it('that can not be written is explained', async () => {
    writeFileSync(join(dataDir, 'kafka'), '')
    await expect(acquire()).rejects.toMatchObject({
      code: 'DATA_DIR_UNUSABLE',
      message: expect.stringContaining('a part of its path is a file'),
    })
  })
})

describe('a warm start', () => {
  it('is from nothing to the first message acknowledged in less than 2.5 s', async () => {
    const broker = await timedStart('once-more')
    await broker.release()
    // The best of several, since other tests run beside these.
    expectInTime(Math.min(...startsMs), 2_500, 'the best start')
  })
})
