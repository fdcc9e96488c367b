import { rmSync } from 'node:fs'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PolitenessKey } from '../../src/kernel/brand.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { EventName } from '../../src/kernel/events.ts'
import type { Observer } from '../../src/kernel/observe.ts'
import { ownProcess } from '../../src/machine/process-identity.ts'
import { RedisStore } from '../../src/state/redis/redis-store.ts'
import type { StateStore } from '../../src/state/state-store.ts'
import { eventually } from '../support/eventually.ts'
import { expectInTime } from '../support/in-time.ts'
import { OwnRedis } from '../support/own-redis.ts'

const KEY = 'a.example' as PolitenessKey
const REQUEST = {
  keys: [{ key: KEY, ratePerSecond: 2, burst: 1, concurrency: 1, crawlDelayMs: 0 }],
  leaseMs: 60_000,
  owner: ownProcess('w'),
  countsForRate: true,
}

const PARKING = { isAdaptive: true, breakerFailures: 1, firstParkMs: 8_000, maxParkMs: 60_000 }

/** The value as a server has written it whose clock is so far ahead: what is found after the clock was set back. */
function setAhead(redis: Redis, key: string, ms: number): Promise<unknown> {
  return redis.eval(SET_AHEAD, 1, key, ms)
}

const SET_AHEAD = `
local raw, by = redis.call('GET', KEYS[1]), tonumber(ARGV[1])
local isPace, pace = pcall(cmsgpack.unpack, raw)
if isPace and type(pace) == 'table' then
  for _, name in ipairs({'at', 'du', 'bo', 'le', 'sv'}) do if pace[name] then pace[name] = pace[name] + by end end
  for _, name in ipairs({'ou', 'cut', 'fs'}) do if pace.h[name] > 0 then pace.h[name] = pace.h[name] + by end end
  for _, lease in ipairs(pace.ls) do lease[2], lease[9] = lease[2] + by, lease[9] + by end
  redis.call('SET', KEYS[1], cmsgpack.pack(pace))
else
  local slot, written = string.match(raw, '^(%S+) (%S+)$')
  redis.call('SET', KEYS[1], string.format('%.17g %.17g', slot + by, written + by))
end
return 1
`

/** What a caller waits at most for a store that does not answer, ms; a busy machine adds to it. */
const SECOND = 3_000

describe('StateStore on a Redis that fails', () => {
  let servers: OwnRedis[]
  let stores: StateStore[]
  let events: EventName[]

  const observer: Observer = { emit: (event) => void events.push(event), child: () => observer }
  const serve = async (settings: readonly string[] = [], options: { sentinel?: boolean } = {}): Promise<OwnRedis> => {
    const server = await OwnRedis.start(settings, options)
    servers.push(server)
    return server
  }
  const openAt = async (url: string, warmUp = false): Promise<RedisStore> => {
    const store = await RedisStore.open({ url, namespace: { clusterId: 'c', prefix: 'p.' }, clock: systemClock, observer, warmUp })
    stores.push(store)
    return store
  }
  /** Milliseconds after which the call failed with that code. */
  const failsAfter = async (call: Promise<unknown>, code: string): Promise<number> => {
    const startedAt = performance.now()
    await expect(call).rejects.toMatchObject({ code })
    return performance.now() - startedAt
  }

  beforeEach(() => {
    servers = []
    stores = []
    events = []
  })
  afterEach(async () => {
    for (const server of servers) server.goOn()
    await Promise.all(stores.map((store) => store.close()))
    await Promise.all(servers.map((server) => server.end()))
  })

  it('says within a second that the server is away, and goes on by itself when it is back', async () => {
    const server = await serve()
    const store = await openAt(server.url)
    await store.acquire(REQUEST)
    await server.stop()
    const calls = [
      store.acquire(REQUEST),
      store.claim([{ crawlId: 'c', canonicalUrl: 'u', round: 0, claimant: 'x' }]),
      store.readValue('n'),
    ]
    for (const ms of await Promise.all(calls.map((call) => failsAfter(call, 'STATE_UNAVAILABLE')))) expectInTime(ms, SECOND)
    expectInTime(await failsAfter(store.reset(KEY, 1), 'STATE_UNAVAILABLE'), SECOND)
    expect(events).toEqual(['StateStoreLost'])
    await server.start()
    await eventually(() => store.writeValue('n', 'v').then(() => true))
    expect(await store.readValue('n')).toBe('v')
    expect(events).toEqual(['StateStoreLost', 'StateStoreFound'])
    // The server came back empty: nobody knows any more when the site was asked.
    expect(await store.acquire(REQUEST)).toMatchObject({ kind: 'wait', reason: 'warm-up' })
  })

  it('says within a second that the server hangs, and goes on by itself when it answers again', async () => {
    const server = await serve()
    const store = await openAt(server.url)
    server.hang()
    const calls = Array.from({ length: 20 }, () => failsAfter(store.acquire(REQUEST), 'STATE_UNAVAILABLE'))
    for (const ms of await Promise.all(calls)) expectInTime(ms, SECOND)
    server.goOn()
    await eventually(() => store.readValue('n').then(() => true))
  })

  it('goes on when a connection with calls under way was given up and made anew at once', async () => {
    const server = await serve()
    const store = await openAt(server.url)
    server.hang()
    const calls = Array.from({ length: 20 }, () => failsAfter(store.acquire(REQUEST), 'STATE_UNAVAILABLE'))
    await Promise.all(calls)
    // The new connection waits in the queue of the listener, and is served at the first try.
    await eventually(() => events.includes('StateStoreLost'))
    server.goOn()
    await eventually(() => store.readValue('n').then(() => true), { timeoutMs: 5_000 })
  })

  it('ends a lease that a hanging server gave to nobody, and repeats nothing else by itself', async () => {
    const server = await serve()
    const store = await openAt(server.url)
    const [released, asked] = ['b.example', 'c.example'].map((key) => ({ ...REQUEST.keys[0]!, key: key as PolitenessKey }))
    server.hang()
    await failsAfter(store.acquire(REQUEST), 'STATE_UNAVAILABLE')
    await eventually(() => events.includes('StateStoreLost'))
    // Whoever ends a request asks until it is told, and what never left has given no lease: late, both would only be in the way.
    const calls = [store.acquire({ ...REQUEST, keys: [asked!] }), store.release('lease', [released!])]
    await Promise.all(calls.map((call) => failsAfter(call, 'STATE_UNAVAILABLE')))
    server.goOn()
    const watcher = new Redis(server.url)
    try {
      const isKnown = async ({ key }: { key: string }): Promise<boolean> => (await watcher.exists(`c:p.:pace:${key}`)) === 1
      await eventually(() => isKnown(REQUEST.keys[0]!), { what: 'the server has given the lease' })
      await eventually(async () => (await store.limiterState(KEY)).leases === 0)
      expect([await isKnown(released!), await isKnown(asked!)]).toEqual([false, false])
    } finally {
      watcher.disconnect()
    }
  })

  it('takes a store that was emptied under it for an empty start', async () => {
    const server = await serve()
    const store = await openAt(server.url)
    const before = await store.acquire(REQUEST)
    expect(before).toMatchObject({ kind: 'lease' })
    expect(await store.acquire(REQUEST)).toMatchObject({ kind: 'wait', birth: before.birth })
    const other = new Redis(server.url)
    await other.flushall()
    await other.quit()
    const after = await store.acquire(REQUEST)
    expect(after).toMatchObject({ kind: 'wait', reason: 'warm-up', waitMs: 500 })
    expect(after.birth).not.toBe(before.birth)
    expect((await store.acquire(REQUEST)).birth).toBe(after.birth)
  })

  it('tells which server answers, from the first answer on', async () => {
    const [first, second] = [await serve(), await serve()]
    const told = async (url: string): Promise<string | undefined> => (await (await openAt(url)).acquire(REQUEST)).server
    const server = await told(first.url)
    expect(server).toMatch(/^[0-9a-f]{40}$/)
    expect(await told(first.url)).toBe(server)
    expect(await told(second.url)).not.toBe(server)
  })

  it('waits no longer for a site when the clock of the server is set back by hours, and no shorter either', async () => {
    const server = await serve()
    const store = await openAt(server.url)
    const held = await store.acquire(REQUEST)
    const report = { kind: 'failure', failure: 'connect', backOffMs: 5_000, rules: PARKING } as const
    await store.release(held.kind === 'lease' ? held.leaseId : '', [{ key: KEY, crawlDelayMs: 3_000 }], report)
    const busy = 'b.example' as PolitenessKey
    expect(await store.acquire({ ...REQUEST, keys: [{ ...REQUEST.keys[0]!, key: busy }] })).toMatchObject({ kind: 'lease' })
    const slot = await store.spillSlot(KEY, 0, 60_000)
    const before = await store.limiterState(KEY)
    expect(before).toMatchObject({ trips: 1 })
    const other = new Redis(server.url)
    for (const key of ['pace:a.example', 'pace:b.example', 'spill:a.example'])
      expect(await setAhead(other, `c:p.:${key}`, 7_200_000)).toBe(1)
    await other.set('c:p.:birth', String(Date.now() + 7_200_000))
    await other.quit()
    const after = await store.limiterState(KEY)
    for (const [name, ms] of [
      ['backOffMs', 5_000],
      ['parkedMs', 8_000],
    ] as const) {
      expect(after[name]).toBeGreaterThan(before[name] - 1_000)
      expect(after[name]).toBeLessThanOrEqual(ms)
    }
    expect(after.nextMs).toBeLessThanOrEqual(3_000)
    expect(after.failingMs).toBeLessThan(2_000)
    expect((await store.limiterState(busy)).leases).toBe(1)
    expect((await store.spillSlot(KEY, 0, 1_000)) - slot).toBeLessThanOrEqual(1_000)
    // What lay ahead is moved for good at the next step.
    expect(await store.acquire(REQUEST)).toMatchObject({ kind: 'wait', reason: 'breaker' })
    const fresh = { ...REQUEST, keys: [{ ...REQUEST.keys[0]!, key: 'c.example' as PolitenessKey, ratePerSecond: 0.2 }] }
    const warmUp = await store.acquire(fresh)
    expect(warmUp).toMatchObject({ kind: 'wait', reason: 'warm-up' })
    expect(warmUp.kind === 'wait' && warmUp.waitMs <= 5_000).toBe(true)
  })

  it('says which address was not reached', async () => {
    const server = await serve()
    await server.stop()
    const failure = openAt(server.url)
    await expect(failure).rejects.toMatchObject({ code: 'REDIS_UNREACHABLE', exitCode: 4 })
    await expect(failure).rejects.toThrow(`127.0.0.1:${server.port}`)
  })

  it('never shows the password, be it right or wrong', async () => {
    const server = await serve(['requirepass right-secret'])
    const host = `127.0.0.1:${server.port}`
    for (const url of [`redis://:wrong-secret@${host}`, `redis://someone:wrong-secret@${host}`, `redis://${host}`]) {
      const failure: unknown = await openAt(url).catch((error: unknown) => error)
      expect(failure).toMatchObject({ code: 'REDIS_UNREACHABLE' })
      expect((failure as Error).message).toContain('Check user and password')
      expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain('secret')
    }
    const store = await openAt(`redis://:right-secret@${host}`)
    await store.writeValue('n', 'v')
    expect((await store.health()).location).toBe(`redis://***@${host}`)
    await server.stop()
    const lost: unknown = await store.readValue('n').catch((error: unknown) => error)
    expect(inspect(lost, { depth: 9, showHidden: true })).not.toContain('secret')
  })

  it('tells what doctor asks for', async () => {
    const bad = await (await openAt((await serve(['maxmemory 100mb', 'maxmemory-policy allkeys-lru', 'save 60 1'])).url)).health()
    expect(bad).toMatchObject({ kind: 'redis', maxmemoryPolicy: 'allkeys-lru', persistence: 'rdb' })
    const good = await (await openAt((await serve(['appendonly yes'])).url)).health()
    expect(good).toMatchObject({ maxmemoryPolicy: 'noeviction', persistence: 'aof' })
    expect(good.version).toMatch(/^\d+\.\d+/)
    expect((await (await openAt((await serve()).url)).health()).persistence).toBe('none')
  })

  it('has a doctor although its user may not ask for INFO', async () => {
    const server = await serve(['user worker on >secret ~* &* +@all -info -config'])
    const health = await (await openAt(`redis://worker:secret@127.0.0.1:${server.port}`)).health()
    expect(health).toMatchObject({ version: 'unknown', maxmemoryPolicy: 'unknown', persistence: 'unknown', sizeBytes: 0 })
  })

  it('is unavailable, and forgets nothing, when the server is out of memory', async () => {
    const server = await serve(['maxmemory 3mb', 'maxmemory-policy noeviction'])
    const store = await openAt(server.url)
    await store.writeValue('kept', 'v')
    const fill = async (): Promise<void> => {
      for (let index = 0; index < 100; index += 1) await store.writeValue(`n${index}`, 'x'.repeat(100_000))
    }
    const failure: unknown = await fill().catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'STATE_UNAVAILABLE' })
    expect((failure as Error).message).toContain('Raise `maxmemory`')
    expect(await store.readValue('kept')).toBe('v')
  })

  const full = [
    { how: 'at the first word', url: (port: number) => `redis://127.0.0.1:${port}`, settings: [] },
    { how: 'at the password', url: (port: number) => `redis://:word@127.0.0.1:${port}`, settings: ['requirepass word'] },
    { how: 'at the number of the database', url: (port: number) => `redis://127.0.0.1:${port}/1`, settings: [] },
  ]

  it.each(full)('is away, and not broken, while the server takes no more clients: it says so $how', async ({ url, settings }) => {
    const server = await serve(settings)
    const store = await openAt(url(server.port))
    const other = new Redis(url(server.port))
    try {
      await other.config('SET', 'maxclients', '1')
      await other.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      await eventually(() => events.includes('StateStoreLost'))
      const failure: unknown = await store.writeValue('n', 'v').catch((error: unknown) => error)
      expect(failure).toMatchObject({ code: 'STATE_UNAVAILABLE' })
      // Where it hangs up while we write a second time, its words are lost on the way.
      if (!url(0).endsWith('/1')) expect((failure as Error).message).toMatch(/max number of clients reached\. Raise `maxclients`/)
      await other.config('SET', 'maxclients', '100')
      await eventually(() => store.writeValue('n', 'v').then(() => true))
    } finally {
      other.disconnect()
    }
  })

  /** What the server refuses for a while; `end` makes it take calls again. */
  const refusals: {
    code: string
    says: string
    begin(other: Redis, server: OwnRedis): unknown
    end(other: Redis, server: OwnRedis): unknown
  }[] = [
    {
      code: 'READONLY',
      says: 'only takes readers',
      begin: (other) => other.replicaof('127.0.0.1', 1),
      end: (other) => other.replicaof('NO', 'ONE'),
    },
    {
      code: 'MASTERDOWN',
      says: 'follows one that is away',
      begin: async (other) => {
        await other.config('SET', 'replica-serve-stale-data', 'no')
        await other.replicaof('127.0.0.1', 1)
      },
      end: (other) => other.replicaof('NO', 'ONE'),
    },
    {
      code: 'MISCONF',
      says: 'free space',
      begin: async (other, { folder }) => {
        rmSync(folder, { recursive: true })
        await other.config('SET', 'save', '3600 1')
        await other.bgsave()
        await eventually(async () => (await other.info('persistence')).includes('rdb_last_bgsave_status:err'))
      },
      end: (other) => other.config('SET', 'save', ''),
    },
    {
      code: 'NOREPLICAS',
      says: 'min-replicas-to-write',
      begin: (other) => other.config('SET', 'min-replicas-to-write', '1'),
      end: (other) => other.config('SET', 'min-replicas-to-write', '0'),
    },
    {
      code: 'NOPERM',
      says: 'Allow',
      begin: (other) => other.call('ACL', 'SETUSER', 'default', '-evalsha'),
      end: (other) => other.call('ACL', 'SETUSER', 'default', '+evalsha'),
    },
    {
      code: 'script',
      says: 'Allow',
      begin: (other) => other.call('ACL', 'SETUSER', 'default', '-zadd'),
      end: (other) => other.call('ACL', 'SETUSER', 'default', '+zadd'),
    },
    {
      code: 'NOAUTH',
      says: 'Check user and password',
      begin: async (other) => {
        await other.config('SET', 'requirepass', 'word')
        await other.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        await eventually(() => events.includes('StateStoreLost'))
      },
      end: (other) => other.config('SET', 'requirepass', ''),
    },
    {
      code: 'BUSY',
      says: 'SCRIPT KILL',
      begin: async (other, { url }) => {
        await other.config('SET', 'busy-reply-threshold', '1')
        const stuck = new Redis(url)
        stuck.eval('while true do end', 0).catch(() => stuck.disconnect())
        await eventually(async () => (await other.ping().catch((error: Error) => error.message)).startsWith('BUSY'))
      },
      end: (other) => other.script('KILL'),
    },
  ]

  it.each(refusals)('is away while the server answers $code, and says what to do', async ({ code, says, begin, end }) => {
    const server = await serve()
    const store = await openAt(server.url)
    await store.finalise('crawl', ['1'])
    const other = new Redis(server.url)
    try {
      await other.ping()
      await begin(other, server)
      const failure: unknown = await store.finalise('crawl', ['2']).catch((error: unknown) => error)
      expect(failure).toMatchObject({ code: 'STATE_UNAVAILABLE' })
      expect((failure as Error).message).toContain(code)
      expect((failure as Error).message).toContain(says)
      await end(other, server)
      await eventually(() => store.finalise('crawl', ['2']).then(() => true))
    } finally {
      other.disconnect()
    }
  })

  it('is not reached where the database of its URL is none, instead of working in another one', async () => {
    const server = await serve(['databases 2'])
    const failure: unknown = await openAt(`${server.url}/7`).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'REDIS_UNREACHABLE' })
    expect((failure as Error).message).toContain('DB index is out of range')
  })

  it('says that a cluster is not for it', async () => {
    const server = await serve(['cluster-enabled yes'])
    const other = new Redis(server.url)
    try {
      await other.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
      await eventually(async () => (await other.cluster('INFO')).includes('cluster_state:ok'))
      const store = await openAt(server.url)
      const failure: unknown = await store.accept('crawl', ['1']).catch((error: unknown) => error)
      expect(failure).toMatchObject({ code: 'REDIS_REFUSED' })
      expect((failure as Error).message).toMatch(/CROSSSLOT.*no Redis Cluster/)
    } finally {
      other.disconnect()
    }
  })

  it('says so when something else lies under its keys', async () => {
    const server = await serve()
    const store = await openAt(server.url)
    const other = new Redis(server.url)
    await other.set('c:p.:open:crawl', 'text')
    await other.quit()
    await expect(store.accept('crawl', ['1'])).rejects.toMatchObject({
      code: 'REDIS_REFUSED',
      message: expect.stringMatching(/WRONGTYPE.*another database in `redis`/),
    })
  })

  it('follows the sentinels to the server that leads', async () => {
    const leader = await serve()
    const follower = await serve([`replicaof 127.0.0.1 ${leader.port}`, 'repl-diskless-sync-delay 0'])
    const watch = ['down-after-milliseconds main 300', 'failover-timeout main 2000'].map((line) => `sentinel ${line}`)
    const sentinel = await serve([`sentinel monitor main 127.0.0.1 ${leader.port} 1`, ...watch], { sentinel: true })
    const replica = new Redis(follower.url)
    const watcher = new Redis(`redis://127.0.0.1:${sentinel.port}`)
    try {
      const store = await openAt(`redis+sentinel://127.0.0.1:${sentinel.port}/main`)
      await store.writeValue('n', 'before')
      await eventually(async () => (await replica.get('c:p.:value:n')) === 'before', { what: 'the follower has it' })
      await eventually(async () => JSON.stringify(await watcher.call('SENTINEL', 'replicas', 'main')).includes(`${follower.port}`), {
        what: 'the sentinel knows the follower',
      })
      await leader.stop()
      expectInTime(await failsAfter(store.writeValue('n', 'lost'), 'STATE_UNAVAILABLE'), SECOND)
      await eventually(() => store.writeValue('n', 'after').then(() => true), { what: 'the follower leads' })
      expect(await replica.get('c:p.:value:n')).toBe('after')
    } finally {
      replica.disconnect()
      watcher.disconnect()
    }
  })
})
