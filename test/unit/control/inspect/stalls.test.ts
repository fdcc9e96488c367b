import { describe, expect, it } from 'vitest'
import { stallsOf } from '../../../../src/control/inspect/stalls.ts'
import { longestOut } from '../../../../src/control/inspect/status.ts'
import type { FetchStatus, GroupStatus } from '../../../../src/control/inspect/status-report.ts'
import type { ProxyOut } from '../../../../src/fetch/proxy-ring.ts'
import type { WorkerHeartbeat } from '../../../../src/state/state-store.ts'

const group = (change: Partial<GroupStatus> = {}): GroupStatus => ({
  group: 'scrape.fetch',
  state: 'Stable',
  members: 1,
  lag: 5,
  oldestSeconds: 60,
  oldestUrl: 'http://a.example/',
  ...change,
})
const idle: FetchStatus = {
  answered: 1,
  runnable: 0,
  waiting: 5,
  inFlight: 0,
  sites: 2,
  siteWaits: {},
  stalledBy: [],
  proxiesOut: [],
  unwrittenMs: 0,
}

const out = (proxy: string, reason: ProxyOut['reason'], forMs = 2_500): ProxyOut => ({ proxy, reason, forMs })

function worker(pid: number, extractors: Readonly<Record<string, number>>): WorkerHeartbeat {
  return { workerId: `w${pid}`, host: 'h', pid, pidStartedAt: '1', stage: 'extract', groupId: 'scrape.extract', startedAt: 0, extractors }
}

const candidate = { ...worker(9, { book: 2 }), groupId: 'scrape.extract.candidate' }

const REPLAY = { replayId: 'r1', groupId: 'scrape.extract', extractor: 'book', extractorVersion: 2 }

function stalls(change: Partial<Parameters<typeof stallsOf>[0]> = {}): readonly string[] {
  return stallsOf({
    summary: [group()],
    fetch: { ...idle, runnable: 1 },
    pausedSites: [],
    stoppedCrawls: [],
    isStateUp: true,
    isControlUp: true,
    fetchGroup: 'scrape.fetch',
    openReplays: [],
    openTransactions: [],
    topics: [{ topic: 'scrape.urls', offline: [] }],
    workers: [],
    ...change,
  })
}

describe('what holds a crawl up', () => {
  it.each<[string, Partial<Parameters<typeof stallsOf>[0]>]>([
    ['work goes on', {}],
    ['nothing waits and nobody works', { summary: [group({ lag: 0, members: 0 })] }],
    [
      'workers run the same extractors, and those of another group others',
      { workers: [worker(1, { book: 1 }), worker(2, { book: 1 }), candidate] },
    ],
    ['requests are under way', { fetch: { ...idle, inFlight: 1 } }],
    ['a worker has only just begun', { fetch: idle, summary: [group({ oldestSeconds: 1 })] }],
    ['the workers are on other machines', { fetch: null }],
    ['a replay in place goes on', { summary: [group({ group: 'scrape.extract' })], openReplays: [REPLAY] }],
  ])('is nothing where %s', (_, change) => {
    expect(stalls(change)).toEqual([])
  })

  it.each<[string, Partial<Parameters<typeof stallsOf>[0]>, RegExp]>([
    [
      'workers of a group that run different extractors',
      { workers: [worker(1, { book: 1, news: 1 }), worker(2, { book: 2, news: 1 }), worker(3, { book: 2, news: 1 })] },
      /^scrape\.extract: its workers differ in book \(version 1 in 1 on h, version 2 in 2 on h and 3 on h\), and each page/,
    ],
    [
      'a worker of a group that lacks an extractor',
      { workers: [worker(1, { book: 1 }), worker(2, {})] },
      /^scrape\.extract: its workers differ in book \(version 1 in 1 on h, none in 2 on h\)/,
    ],
    [
      'a transaction that nobody ends',
      { openTransactions: [{ topic: 'scrape.html', partition: 1, offset: 7n, ageMs: 61_000 }] },
      /^a transaction is open in scrape\.html\/1 from offset 7 on for 61 s.*abort --topic scrape\.html --partition 1 --start-offset 7` ends one/,
    ],
    [
      'proxies that do not work, though the sites wait for their paces',
      { fetch: { ...idle, inFlight: 1, proxiesOut: [out('http://a:1', 'proxy-failed'), out('http://b:1', 'proxy-auth')] } },
      /^2 proxies do not work: http:\/\/a:1 \(proxy-failed, tried again in 3s\), http:\/\/b:1 \(proxy-auth, tried again in 3s\)$/,
    ],
    [
      'many proxies',
      { fetch: { ...idle, inFlight: 1, proxiesOut: ['a', 'b', 'c', 'd'].map((name) => out(name, 'proxy-timeout')) } },
      /^4 proxies do not work: a .*, b .*, c \(proxy-timeout, tried again in 3s\) and 1 more$/,
    ],
    [
      'partitions without a leader',
      { topics: [{ topic: 'scrape.html', offline: [1, 3] }] },
      /^no broker leads 2 partitions of scrape\.html \(1, 3\): nobody reads or writes there$/,
    ],
    ['the state store', { isStateUp: false }, /^the state store does not answer/],
    [
      'what the control topic would tell',
      { isControlUp: false },
      /^which sites are paused, which crawls are stopped and which replays are open can not be seen/,
    ],
    [
      'nobody, where a replay in place is open',
      { summary: [group({ group: 'scrape.extract', lag: 0, members: 0 })], openReplays: [REPLAY] },
      /^scrape\.extract: replay r1 waits for a worker with book version 2$/,
    ],
    [
      'the state store, as a worker sees it',
      { fetch: { ...idle, stalledBy: ['state-store'] } },
      /starts no request: the state store does not answer/,
    ],
    [
      'Kafka, which takes nothing',
      { fetch: { ...idle, inFlight: 1, unwrittenMs: 42_000 } },
      /^Kafka has not taken what fetch wrote for 42s/,
    ],
    ['the disk', { fetch: { ...idle, stalledBy: ['disk'] } }, /too little free space \(fetch\.minFreeDisk\)/],
    [
      'the blob store, as fetch sees it',
      { fetch: { ...idle, inFlight: 1, stalledBy: ['blobs'] } },
      /^the blob store does not answer, or is full: pages that are too large for a message wait until it does$/,
    ],
    [
      'the schema registry, as processes with several stages each tell by their heartbeats',
      { workers: [1, 1, 2].map((pid) => ({ ...worker(pid, {}), waitsFor: ['registry'] })) },
      /^the schema registry does not answer: .* wait until it does \(processes 1 on h and 2 on h\)$/,
    ],
    [
      'the blob store, as fetch and heartbeats see it',
      { fetch: { ...idle, inFlight: 1, stalledBy: ['blobs'] }, workers: [{ ...worker(3, {}), waitsFor: ['blobs'] }] },
      /^the blob store does not answer.* \(process 3 on h\)$/,
    ],
    ['nobody works on the group', { summary: [group({ members: 0 })], fetch: null }, /^scrape\.fetch: nobody works on 5 messages/],
    ['a rebalance', { summary: [group({ state: 'PreparingRebalance' })] }, /is being divided among its members/],
    [
      'the sites',
      { fetch: { ...idle, siteWaits: { rate: 2, breaker: 1 } } },
      /all sites wait \(rate 2, breaker 1\); more workers would not help/,
    ],
    ['a worker that gets nothing', { fetch: idle }, /no worker of this machine has a task/],
    ['an operator', { pausedSites: ['a.example'] }, /^a\.example is paused: `millrace sites resume` lets it go on/],
    [
      'an operator, of a crawl',
      { stoppedCrawls: ['spring'] },
      /^the crawl spring is stopped: `millrace crawls resume` has URLs of it taken again$/,
    ],
    ['an operator, of many crawls', { stoppedCrawls: ['a', 'b', 'c', 'd'] }, /^the crawls a, b, c and 1 more are stopped/],
    ['an operator, many times', { pausedSites: ['a', 'b', 'c', 'd', 'e'] }, /^a, b, c and 2 more are paused/],
  ])('is %s, and said once', (_, change, text) => {
    expect(stalls(change)).toEqual([expect.stringMatching(text)])
  })
})

describe('the proxies that workers leave out', () => {
  it('are named once, by who leaves them out for longest', () => {
    const all = [out('b', 'proxy-failed', 100), out('a', 'proxy-auth', 5), out('b', 'proxy-timeout', 900), out('b', 'proxy-failed', 20)]
    expect(longestOut(all)).toEqual([out('a', 'proxy-auth', 5), out('b', 'proxy-timeout', 900)])
  })
})
