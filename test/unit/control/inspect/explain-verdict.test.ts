import { describe, expect, it } from 'vitest'
import type { WaitingTask } from '../../../../src/control/inspect/explain-places.ts'
import { explainVerdict, type UrlFacts } from '../../../../src/control/inspect/explain-verdict.ts'
import { NOTHING_REMEMBERED } from '../../../../src/control/sites/sites.ts'
import type { PolitenessKey } from '../../../../src/kernel/brand.ts'
import type { Outcome, OutcomeKind } from '../../../../src/message/generated/types.ts'
import { outcomeOf } from '../../../../src/message/outcome.ts'
import { newUrlTask } from '../../../../src/message/url-task.ts'

const NOW = Date.UTC(2026, 0, 2)
const fact = <T extends number | boolean>(value: T, from = 'default') => ({ value, from })

const EARNED = { backOffMs: 365 * 86_400_000, isAsked: true, allowed: 1, rateFactor: 0.5, trips: 2, parkedMs: 60_000 }

function facts(change: Partial<UrlFacts> = {}): UrlFacts {
  return {
    now: NOW,
    waiting: [],
    inWorkers: [],
    stalled: [],
    delayWaitsFor: [],
    outcomes: [],
    page: null,
    deadLetters: [],
    isComplete: true,
    site: site(),
    robots: null,
    stateAway: null,
    proxies: { all: [], out: [] },
    members: { fetch: 1, delay: 1 },
    ...change,
  }
}

function site(
  pace: Partial<UrlFacts['site']['pace']> = {},
  limiter: Partial<UrlFacts['site']['limiter']> = {},
  givenUpInMs: number | null = null,
  reset: UrlFacts['site']['reset'] = null,
  pausedUntil: number | null = null,
): UrlFacts['site'] {
  return {
    key: 'a.example' as PolitenessKey,
    pace: { paused: fact(false), ratePerSecond: fact(2), concurrency: fact(1), crawlDelayMs: fact(0), ...pace },
    limiter: { ...NOTHING_REMEMBERED, ...limiter },
    pausedUntil,
    givenUpInMs,
    reset,
  }
}

const inLane: WaitingTask = {
  taskId: 't',
  crawlId: null,
  attempt: 1,
  topic: 'scrape.urls',
  partition: 3,
  offset: 17n,
  lane: 'normal',
  before: 7,
  dueAt: null,
  reason: null,
  notBefore: null,
  expiresAt: null,
}
const delayed: WaitingTask = { ...inLane, topic: 'scrape.urls.delay.1m', attempt: 3, dueAt: NOW + 42_000, reason: 'http-503' }
const inWorker = {
  pid: 42,
  taskId: 't',
  attempt: 1,
  crawlId: null,
  state: 'waiting',
  site: 'a.example',
  url: 'http://a.example/',
  before: 4,
  siteWaitMs: 1_500,
  siteWaitReason: 'crawl-delay',
  siteInFlight: 0,
  siteConcurrency: 1,
  stalledBy: null,
  unwrittenMs: null,
  handoverMs: null,
  awaitsPlace: false,
} as const

const out = { pid: 42, proxy: 'a:1', reason: 'proxy-failed', forMs: 20_000 } as const

function outcome(kind: OutcomeKind, reason: string | null = null, status: number | null = null): Outcome {
  const task = newUrlTask({ url: 'http://a.example/', taskId: 't' })
  return outcomeOf(task, { kind, reason, at: NOW - 1_000, ...(status === null ? {} : { request: { startedAt: NOW, status } }) })
}

const robots = (allowed: boolean, rule: string | null) => ({ verdict: 'parsed', allowed, rule, problem: null, fetchedAt: NOW })

describe('where a URL is', () => {
  it.each<[string, Partial<UrlFacts>, { state: string; waitsFor: string | null; until: number | null }, RegExp]>([
    ['nobody knows it', {}, { state: 'unknown', waitsFor: null, until: null }, /never seen/],
    [
      'too much waits to be sure',
      { isComplete: false },
      { state: 'unknown', waitsFor: null, until: null },
      /^not found in what was searched/,
    ],
    [
      'its robots.txt could not be read',
      {
        waiting: [inLane],
        robots: { verdict: 'unreachable', allowed: false, rule: null, problem: 'read ECONNRESET', fetchedAt: NOW },
      },
      { state: 'waiting', waitsFor: 'turn', until: null },
      /robots\.txt could not be read at .*asked again at each attempt\n.*why: read ECONNRESET/,
    ],
    [
      'its turn has come',
      { inWorkers: [inWorker, { ...inWorker, state: 'turn' }], waiting: [inLane] },
      { state: 'under-way', waitsFor: 'request', until: null },
      /its turn has come in process 42 \(attempt 1/,
    ],
    [
      'a worker holds it, and its site waits',
      { inWorkers: [inWorker], waiting: [inLane] },
      // Four before it at two a second.
      { state: 'waiting', waitsFor: 'crawl-delay', until: NOW + 1_500 + 2_000 },
      /behind 4 tasks of a\.example\n.*asked again in 1\.5s \(crawl-delay\)/,
    ],
    [
      'its site has a crawl delay, which lets one request run at a time, at a half of its pace',
      {
        inWorkers: [inWorker],
        site: site({ concurrency: fact(4), crawlDelayMs: fact(10_000) }, { rateFactor: 0.5, allowed: 1, atOnce: 1 }),
      },
      { state: 'waiting', waitsFor: 'crawl-delay', until: NOW + 1_500 + 4 * 20_000 },
      /lowered by what it answered/,
    ],
    [
      'a former owner of its partition has it on the wire',
      { inWorkers: [{ ...inWorker, before: 0, siteWaitMs: 0, handoverMs: 90_000 }] },
      { state: 'waiting', waitsFor: 'handover', until: null },
      /^the worker that had its partition before still waits for its answer: process 42 takes it up then, in 1m 30s at the latest$/,
    ],
    [
      'others hold the places of its crawl, while it is kept in memory',
      { inWorkers: [{ ...inWorker, before: 0, siteWaitMs: 0, awaitsPlace: true }] },
      { state: 'waiting', waitsFor: 'page-budget', until: null },
      /^the page limit of its crawl is reached, with pages that are not fetched yet/m,
    ],
    [
      'others hold the places of its crawl',
      { waiting: [{ ...delayed, reason: 'page-budget' }] },
      { state: 'delayed', waitsFor: 'due-time', until: NOW + 42_000 },
      /^the page limit of its crawl is reached, with pages that are not fetched yet/m,
    ],
    [
      'all requests of its site are under way',
      { inWorkers: [{ ...inWorker, siteWaitMs: 0, siteInFlight: 1, before: 0 }] },
      { state: 'waiting', waitsFor: 'concurrency', until: NOW },
      /1 request of a\.example under way/,
    ],
    [
      'the state store is away',
      { inWorkers: [{ ...inWorker, stalledBy: 'state-store' }] },
      { state: 'waiting', waitsFor: 'state-store', until: null },
      /starts no request: it waits for the state-store/,
    ],
    [
      'Kafka does not take its answer',
      { inWorkers: [{ ...inWorker, state: 'turn', unwrittenMs: 42_000 }], waiting: [inLane] },
      { state: 'under-way', waitsFor: 'kafka', until: null },
      /^it was asked by process 42 \(attempt 1, http:\/\/a\.example\/\); Kafka has not taken its answer for 42s$/,
    ],
    [
      'the state store is away before a worker has taken it up',
      { waiting: [inLane], stalled: [{ pid: 42, stalledBy: 'state-store' }] },
      { state: 'waiting', waitsFor: 'state-store', until: null },
      /process 42 takes nothing up: it waits for the state-store/,
    ],
    [
      'its message names a schema that the registry, which is away, is asked for',
      { waiting: [inLane], stalled: [{ pid: 42, stalledBy: 'registry' }] },
      { state: 'waiting', waitsFor: 'registry', until: null },
      /process 42 takes nothing up: it waits for the registry/,
    ],
    [
      'the schema registry is away, and it is in memory: it goes on',
      { inWorkers: [{ ...inWorker, stalledBy: 'registry' }] },
      { state: 'waiting', waitsFor: 'crawl-delay', until: NOW + 1_500 + 2_000 },
      /asked again in 1\.5s \(crawl-delay\)/,
    ],
    [
      'the blob store does not take its page',
      { inWorkers: [{ ...inWorker, state: 'turn', stalledBy: 'blobs' }] },
      { state: 'under-way', waitsFor: 'blobs', until: null },
      /or its page is too large for a message and waits for the blob store, which does not answer or is full/,
    ],
    [
      'its time has come, and the schema registry is away',
      { waiting: [{ ...delayed, dueAt: NOW - 1_000 }], delayWaitsFor: ['registry'] },
      { state: 'delayed', waitsFor: 'registry', until: NOW - 1_000 },
      /no delay worker brings it back before the schema registry answers/,
    ],
    [
      'its time has not come, and the schema registry is away',
      { waiting: [delayed], delayWaitsFor: ['registry'] },
      { state: 'delayed', waitsFor: 'due-time', until: NOW + 42_000 },
      /^(?!.*registry)/s,
    ],
    [
      'no worker runs',
      { waiting: [inLane], members: { fetch: 0, delay: 0 } },
      { state: 'waiting', waitsFor: 'fetch-worker', until: null },
      /scrape\.urls, partition 3, offset 17: 7 messages from the first that is not finished\nno fetch worker runs/,
    ],
    [
      'its site is paused',
      { waiting: [inLane], site: site({ paused: fact(true, 'override a.example') }) },
      { state: 'waiting', waitsFor: 'paused', until: null },
      /a\.example is paused \(override a\.example\) until `millrace sites resume`/,
    ],
    [
      'the hours of its rule pause its site, which no resume ends',
      { waiting: [inLane], site: site({ paused: fact(true, 'schedule 00:00-12:00 UTC') }, {}, null, null, NOW + 12 * 3_600_000) },
      { state: 'waiting', waitsFor: 'paused', until: NOW + 12 * 3_600_000 },
      /a\.example is paused \(schedule 00:00-12:00 UTC\) until 2026-01-02T12:00:00\.000Z, in 12h 0m/,
    ],
    [
      'all hours of its rule pause its site',
      { waiting: [delayed], site: site({ paused: fact(true, 'schedule 00:00-24:00 UTC') }) },
      { state: 'delayed', waitsFor: 'paused', until: NOW + 42_000 },
      /a\.example is paused \(schedule 00:00-24:00 UTC\) in all of its hours/,
    ],
    [
      'a worker holds it, and its site is paused',
      {
        inWorkers: [{ ...inWorker, siteWaitReason: 'paused' }],
        site: site({ paused: fact(true, 'schedule 00:00-12:00 UTC') }, {}, null, null, NOW + 60_000),
      },
      { state: 'waiting', waitsFor: 'paused', until: NOW + 60_000 },
      /behind 4 tasks of a\.example\na\.example is paused \(schedule 00:00-12:00 UTC\) until 2026-01-02T00:01:00\.000Z/,
    ],
    [
      'a worker leaves out a proxy of its site',
      { waiting: [inLane], proxies: { all: ['a:1', 'b:1'], out: [out] } },
      { state: 'waiting', waitsFor: 'turn', until: null },
      /process 42 leaves out of the proxies of a\.example: a:1 for another 20s \(proxy-failed\)/,
    ],
    [
      'a worker has no proxy left for its site',
      { waiting: [delayed], proxies: { all: ['a:1', 'b:1'], out: [out, { ...out, proxy: 'b:1', forMs: 70_000, reason: 'proxy-auth' }] } },
      { state: 'delayed', waitsFor: 'due-time', until: NOW + 42_000 },
      /process 42 has no proxy left for a\.example, the first is tried again in 20s: a:1 for another 20s \(proxy-failed\), b:1 for another 1m 10s \(proxy-auth\)/,
    ],
    [
      'the state store is away',
      { waiting: [inLane], stateAway: 'Redis at a:1 did not answer.' },
      { state: 'waiting', waitsFor: 'state-store', until: null },
      /no worker asks a site until it answers: Redis at a:1 did not answer\./,
    ],
    [
      'the state store is away, and no worker runs either',
      { waiting: [inLane], stateAway: 'gone', members: { fetch: 0, delay: 1 } },
      { state: 'waiting', waitsFor: 'fetch-worker', until: null },
      /no fetch worker runs\n.*until it answers: gone/,
    ],
    [
      'its site is paused, and the state store is away',
      {
        inWorkers: [{ ...inWorker, siteWaitReason: 'paused' }],
        site: site({ paused: fact(true, 'override a.example') }, {}, null, null, NOW + 60_000),
        stateAway: 'gone',
      },
      { state: 'waiting', waitsFor: 'paused', until: NOW + 60_000 },
      /until it answers: gone/,
    ],
    [
      'it waits for its time, and the state store is away',
      { waiting: [delayed], stateAway: 'gone' },
      { state: 'delayed', waitsFor: 'due-time', until: NOW + 42_000 },
      /until it answers: gone/,
    ],
    [
      'its site is left alone',
      { waiting: [inLane], site: site({}, { backOffMs: 90_000, leases: 1 }) },
      { state: 'waiting', waitsFor: 'back-off', until: NOW + 90_000 },
      /left alone for another 1m 30s/,
    ],
    [
      'its site asked for a time',
      { waiting: [inLane], site: site({}, { backOffMs: 90_000, isAsked: true }) },
      { state: 'waiting', waitsFor: 'retry-after', until: NOW + 90_000 },
      /left alone for another 1m 30s \(retry-after\)/,
    ],
    [
      'its site is dead',
      { waiting: [inLane], site: site({}, { parkedMs: 60_000, backOffMs: 1 }, 5_400_000) },
      { state: 'waiting', waitsFor: 'breaker', until: NOW + 60_000 },
      /does not answer and is parked for another 1m 0s.*\n(.*\n)*URLs of a\.example fail in 1h 30m unless it answers/,
    ],
    [
      'its site was reset',
      { waiting: [delayed], site: site({}, {}, null, { at: NOW - 120_000, from: 'override a.example', lifted: EARNED }) },
      { state: 'delayed', waitsFor: 'due-time', until: NOW + 42_000 },
      /a\.example was reset 2m 0s ago \(override a\.example\): it lifted a back-off of 365d 0h that the site had asked for, an open breaker, another 1m 0s, a slower pace/,
    ],
    [
      'its site is allowed less than its rule',
      { waiting: [inLane], site: site({ concurrency: fact(4) }, { leases: 2, allowed: 2, atOnce: 2 }) },
      { state: 'waiting', waitsFor: 'concurrency', until: null },
      /2 requests of a\.example under way.*\n.*lowered by what it answered/,
    ],
    [
      'one request runs at a time behind its crawl delay',
      { waiting: [inLane], site: site({ concurrency: fact(4), crawlDelayMs: fact(10_000) }, { leases: 1 }) },
      { state: 'waiting', waitsFor: 'concurrency', until: null },
      /1 request of a\.example under way, no more are allowed/,
    ],
    [
      'its site is allowed a part of a request more',
      { waiting: [inLane], site: site({ concurrency: fact(4) }, { leases: 1, allowed: 1.5, atOnce: 1 }) },
      { state: 'waiting', waitsFor: 'concurrency', until: null },
      /1 request of a\.example under way, no more are allowed/,
    ],
    [
      'its site is tried by one request, since it asked for patience',
      { waiting: [inLane], site: site({ concurrency: fact(4) }, { leases: 1, atOnce: 1 }) },
      { state: 'waiting', waitsFor: 'concurrency', until: null },
      /1 request of a\.example under way, no more are allowed/,
    ],
    [
      'its site has its pace',
      { waiting: [inLane], site: site({}, { nextMs: 500 }) },
      { state: 'waiting', waitsFor: 'rate', until: NOW + 500 },
      /asked again in 500ms \(rate\)/,
    ],
    [
      'it waits for its time',
      { waiting: [delayed, { ...delayed, dueAt: NOW + 90_000 }] },
      { state: 'delayed', waitsFor: 'due-time', until: NOW + 42_000 },
      /until 2026-01-02T00:00:42\.000Z, in 42s \(http-503\); attempt 3 comes then/,
    ],
    [
      'it waits for its time and nobody brings it back',
      { waiting: [delayed], members: { fetch: 1, delay: 0 } },
      { state: 'delayed', waitsFor: 'delay-worker', until: NOW + 42_000 },
      /no delay worker runs/,
    ],
    [
      'it was fetched',
      {
        outcomes: [outcome('RETRY', 'http-503', 503), outcome('FETCHED', null, 200)],
        page: { topic: 'scrape.html', partition: 1, offset: 5n, fetchedAt: NOW, status: 200 },
      },
      { state: 'fetched', waitsFor: null, until: null },
      /FETCHED, status 200, .*\nits page: scrape\.html:1:5/,
    ],
    [
      'it was refused by a line of robots.txt',
      { outcomes: [outcome('REFUSED', 'robots')], robots: robots(false, 'Disallow: /x') },
      { state: 'ended', waitsFor: null, until: null },
      /REFUSED: robots.*\nrobots\.txt forbids it by `Disallow: \/x`/,
    ],
    [
      'it failed and is kept',
      {
        outcomes: [outcome('FAILED', 'http-500', 500)],
        deadLetters: [
          {
            partition: 2,
            offset: 9n,
            timestamp: NOW,
            key: 'a.example',
            bytes: 1,
            resolved: undefined,
            info: {
              stage: 'fetch',
              code: 'FETCH_FAILED',
              message: undefined,
              reason: undefined,
              attempt: 5,
              firstMs: undefined,
              extractor: undefined,
              replay: undefined,
              original: undefined,
              copy: undefined,
              truncated: undefined,
            },
          },
        ],
      },
      { state: 'failed', waitsFor: null, until: null },
      /FAILED: http-500, status 500.*\ndead letter 2:9: FETCH_FAILED at fetch/,
    ],
    [
      'only a retry has been told yet',
      { outcomes: [outcome('RETRY', 'http-503', 503)] },
      { state: 'ended', waitsFor: null, until: null },
      /RETRY: http-503/,
    ],
  ])('is told when %s', (_, change, { state, waitsFor, until }, text) => {
    const verdict = explainVerdict(facts(change))
    expect({ state: verdict.state, waitsFor: verdict.waitsFor, until: verdict.until }).toEqual({ state, waitsFor, until })
    expect(verdict.lines.join('\n')).toMatch(text)
  })

  it('comes with what robots.txt, notBefore and expiresAt will do to it', () => {
    const waiting = [{ ...inLane, notBefore: NOW + 1, expiresAt: NOW - 1 }]
    const lines = explainVerdict(facts({ waiting, robots: robots(false, 'Disallow: /') })).lines.join('\n')
    expect(lines).toContain('not to be fetched before 2026-01-02T00:00:00.001Z')
    expect(lines).toContain('expired 2026-01-01T23:59:59.999Z: it will end EXPIRED')
    expect(lines).toContain('robots.txt forbids it by `Disallow: /`: it will end REFUSED')
  })
})
