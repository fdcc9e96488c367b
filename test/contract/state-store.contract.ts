import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PolitenessKey } from '../../src/kernel/brand.ts'
import { hostIdentity, ownProcess } from '../../src/machine/process-identity.ts'
import { uuidV7 } from '../../src/message/ids.ts'
import type {
  AnswerReport,
  Budget,
  LimiterAnswer,
  LimiterKey,
  LimiterRequest,
  OpenCrawl,
  ReleasedState,
  StateStore,
  WorkerHeartbeat,
} from '../../src/state/state-store.ts'
import { backOff } from '../support/back-off.ts'
import { eventually } from '../support/eventually.ts'

/** One deployment on one kind of store. `elapse` lets the store's own time go by: at once on a clock of ours, really on Redis. */
export interface StateStoreHarness {
  open(options?: { prefix?: string; warmUp?: boolean }): Promise<StateStore>
  elapse(ms: number): Promise<void>
  /** Whether anything is known of the key after so long in which nobody asked; on a clock of ours that long goes by. */
  isKept(store: StateStore, key: PolitenessKey, ms: number): Promise<boolean>
  /** Closes what was opened and removes what was written. */
  end(): Promise<void>
}

const A = 'a.example' as PolitenessKey
const B = 'b.example' as PolitenessKey
const ADDRESS = '192.0.2.1' as PolitenessKey
const OWNER = ownProcess('worker-1')
/** What is told of a key that nothing is known of. */
const UNKNOWN = {
  leases: 0,
  nextMs: 0,
  backOffMs: 0,
  isAsked: false,
  allowed: null,
  rateFactor: 1,
  trips: 0,
  parkedMs: 0,
  latencyMs: 0,
  failingMs: 0,
  atOnce: null,
}
/** Longer than any of these tests takes. */
const HOLD_MS = 600_000
/** What is short is over soon, yet not between two calls of a busy machine; bounds leave as much to the calls before them. */
const SHORT_MS = 500
const RULES = { isAdaptive: true, breakerFailures: 2, firstParkMs: 900, maxParkMs: 1_500 }

function pace(key: PolitenessKey, change: Partial<LimiterKey> = {}): LimiterKey {
  return { key, ratePerSecond: 1_000, burst: 1, concurrency: 1, crawlDelayMs: 0, ...change }
}

function ask(keys: readonly LimiterKey[], change: Partial<LimiterRequest> = {}): LimiterRequest {
  return { keys, leaseMs: 60_000, owner: OWNER, countsForRate: true, ...change }
}

function leaseOf(answer: LimiterAnswer): string {
  if (answer.kind !== 'lease') throw new Error(`expected a lease, was told to wait ${answer.waitMs} ms for ${answer.reason}`)
  return answer.leaseId
}

function waitOf(answer: LimiterAnswer): { waitMs: number; reason: string; key: string } {
  if (answer.kind !== 'wait') throw new Error('expected to be told to wait, got a lease')
  return answer
}

async function openOf(store: StateStore): Promise<readonly OpenCrawl[]> {
  return (await store.openCrawls([], 100)).others
}

/** What every StateStore does, whatever it is made of. */
export function describeStateStore(name: string, makeHarness: () => Promise<StateStoreHarness>): void {
  describe(`StateStore on ${name}`, () => {
    let harness: StateStoreHarness
    let store: StateStore

    beforeEach(async () => {
      harness = await makeHarness()
      store = await harness.open({ warmUp: false })
    })
    afterEach(() => harness.end())

    describe('claims', () => {
      const claim = (claimant: string, change: { url?: string; crawlId?: string; round?: number; ttlMs?: number } = {}) => ({
        crawlId: change.crawlId ?? 'crawl',
        canonicalUrl: change.url ?? 'https://a.example/',
        round: change.round ?? 0,
        claimant,
        ...(change.ttlMs === undefined ? {} : { ttlMs: change.ttlMs }),
      })

      it('gives a URL to its first claimant, knows it again, and tells any other that it is known', async () => {
        expect(await store.claim([claim('html:0:1')])).toEqual(['new'])
        expect(await store.claim([claim('html:0:1')])).toEqual(['own'])
        expect(await store.claim([claim('html:0:2')])).toEqual(['known'])
      })

      it('tells who has a URL without giving it to whoever asks', async () => {
        const asked = [claim('x'), claim('y'), claim('y', { url: 'https://a.example/2' }), claim('y', { url: 'https://a.example/3' })]
        expect(await store.lookUpClaims(asked)).toEqual(['new', 'new', 'new', 'new'])
        await store.claim([claim('x'), claim('x', { url: 'https://a.example/2', ttlMs: SHORT_MS })])
        expect(await store.lookUpClaims(asked)).toEqual(['own', 'known', 'known', 'new'])
        await harness.elapse(SHORT_MS + 20)
        expect(await store.lookUpClaims(asked)).toEqual(['own', 'known', 'new', 'new'])
        expect(await store.claim([claim('z', { url: 'https://a.example/3' })])).toEqual(['new'])
      })

      it('answers each claim of a list in order, repeats within the list included', async () => {
        const claims = [claim('x'), claim('y'), claim('x'), claim('y', { url: 'https://a.example/2' })]
        expect(await store.claim(claims)).toEqual(['new', 'known', 'own', 'new'])
        expect(await store.claim([])).toEqual([])
      })

      it('keeps crawls, rounds and URLs apart, in upper and lower case too', async () => {
        await store.claim([claim('x')])
        const others = [claim('y', { crawlId: 'other' }), claim('y', { round: 1 }), claim('y', { url: 'https://a.example/A' })]
        expect(await store.claim([...others, claim('y', { url: 'https://a.example/a' })])).toEqual(['new', 'new', 'new', 'new'])
      })

      it('answers thousands of claims in one call', async () => {
        const urls = Array.from({ length: 1_500 }, (_, index) => `https://a.example/${index}`)
        await store.claim([claim('x', { url: urls[700]! })])
        const verdicts = await store.claim(urls.map((url) => claim('y', { url })))
        expect(verdicts.filter((verdict) => verdict === 'new')).toHaveLength(1_499)
        expect(verdicts[700]).toBe('known')
      })

      it('forgets a claim when its time is over', async () => {
        expect(await store.claim([claim('x', { ttlMs: SHORT_MS }), claim('x', { url: 'https://a.example/kept' })])).toEqual(['new', 'new'])
        expect(await store.claim([claim('y', { ttlMs: SHORT_MS })])).toEqual(['known'])
        await harness.elapse(SHORT_MS + 20)
        expect(await store.claim([claim('y', { ttlMs: SHORT_MS }), claim('y', { url: 'https://a.example/kept' })])).toEqual([
          'new',
          'known',
        ])
      })

      it('gives a URL to one of many who claim it at the same moment through two handles', async () => {
        const second = await harness.open()
        const verdicts = await Promise.all(
          Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? store : second).claim([claim(`claimant-${index}`)])),
        )
        expect(verdicts.flat().filter((verdict) => verdict === 'new')).toHaveLength(1)
        expect(verdicts.flat().filter((verdict) => verdict === 'known')).toHaveLength(39)
      })
    })

    describe('attempts under way elsewhere', () => {
      it('are known by task and attempt, to every process, until their time is over', async () => {
        const attempts = [1, 2].map((attempt) => ({ taskId: 't', attempt }))
        expect(await store.isUnderWay(attempts)).toEqual([false, false])
        await store.noteUnderWay([{ taskId: 't', attempt: 2 }], 60_000)
        await store.noteUnderWay([{ taskId: 'u', attempt: 1 }], SHORT_MS)
        const second = await harness.open()
        expect(await second.isUnderWay([...attempts, { taskId: 'u', attempt: 1 }])).toEqual([false, true, true])
        await harness.elapse(SHORT_MS + 20)
        expect(await store.isUnderWay([...attempts, { taskId: 'u', attempt: 1 }])).toEqual([false, true, false])
      })

      it('are not finished by that, and nothing is under way for being finished', async () => {
        await store.noteUnderWay([{ taskId: 't', attempt: 1 }], 60_000)
        await store.markFinished([{ taskId: 'u', attempt: 1, final: true }], 60_000)
        const attempts = ['t', 'u'].map((taskId) => ({ taskId, attempt: 1 }))
        expect(await store.isFinished(attempts)).toEqual([false, true])
        expect(await store.isUnderWay(attempts)).toEqual([true, false])
        expect(await store.isUnderWay([])).toEqual([])
        await store.noteUnderWay([], 60_000)
      })
    })

    describe('finished attempts', () => {
      it('knows an attempt that is finished, and no other of that task', async () => {
        await store.markFinished([{ taskId: 't', attempt: 1, final: false }], 60_000)
        const asked = [1, 2].map((attempt) => ({ taskId: 't', attempt }))
        expect(await store.isFinished([...asked, { taskId: 'u', attempt: 1 }])).toEqual([true, false, false])
      })

      it('knows every attempt of a task that is finished as a whole', async () => {
        await store.markFinished([{ taskId: 't', attempt: 3, final: true }], 60_000)
        expect(await store.isFinished([1, 3, 9].map((attempt) => ({ taskId: 't', attempt })))).toEqual([true, true, true])
        expect(await store.isFinished([])).toEqual([])
      })

      it('forgets them when their time is over', async () => {
        await store.markFinished([{ taskId: 't', attempt: 1, final: false }], 50)
        await store.markFinished([{ taskId: 'u', attempt: 1, final: true }], 60_000)
        await harness.elapse(70)
        expect(await store.isFinished(['t', 'u'].map((taskId) => ({ taskId, attempt: 1 })))).toEqual([false, true])
      })
    })

    describe('crawls', () => {
      it('counts each task once, however often it is added', async () => {
        await store.accept('c', ['1', '2', '2'])
        await store.accept('c', ['2', '3'])
        await store.finalise('c', ['1', '1'])
        await store.finalise('c', ['1'])
        await store.accept('c', ['1'])
        expect(await store.crawlCounts('c')).toEqual({ accepted: 3, final: 1 })
        expect(await openOf(store)).toEqual([{ crawlId: 'c', open: 2 }])
      })

      it('tells of tasks that are accepted again which of them are final, in order and however many', async () => {
        const many = Array.from({ length: 2_500 }, (_, index) => `t${index}`)
        expect(await store.accept('c', many)).toEqual(many.map(() => false))
        const final = many.filter((_, index) => index % 3 === 0)
        await store.finalise('c', final)
        await store.finalise('other', many)
        expect(await store.accept('c', [...many, 'new', 't0'])).toEqual([...many.map((_, index) => index % 3 === 0), false, true])
        expect(await store.accept('c', [])).toEqual([])
      })

      it('counts a task as accepted that was final first', async () => {
        await store.finalise('c', ['1'])
        expect(await store.crawlCounts('c')).toEqual({ accepted: 1, final: 1 })
        expect(await openOf(store)).toEqual([])
      })

      it('has no tasks in a crawl that nobody named', async () => {
        expect(await store.crawlCounts('never')).toEqual({ accepted: 0, final: 0 })
      })

      it('lists the crawls that are not at their end, with how many of their tasks are open', async () => {
        expect(await openOf(store)).toEqual([])
        await store.accept('c:1', ['1', '2', '3'])
        await store.accept('c 2', ['1'])
        await store.finalise('c:1', ['2'])
        await store.finalise('c 2', ['1'])
        await store.accept('c 3', ['1'])
        expect([...(await openOf(store))].sort((a, b) => b.open - a.open)).toEqual([
          { crawlId: 'c:1', open: 2 },
          { crawlId: 'c 3', open: 1 },
        ])
      })

      it('tells of the crawls that it is asked for, and of so many others, at a cost of these alone', async () => {
        const named = ['large', 'small', 'ended', 'never']
        await store.accept('large', ['1', '2', '3'])
        await store.accept('small', ['1'])
        await store.finalise('ended', ['1'])
        await store.accept('other', ['1', '2'])
        expect(await store.openCrawls(named, 100)).toEqual({
          count: 3,
          named: [
            { crawlId: 'large', open: 3 },
            { crawlId: 'small', open: 1 },
          ],
          others: [{ crawlId: 'other', open: 2 }],
        })
        const more = Array.from({ length: 1_200 }, (_, index) => `crawl-${index}`)
        while (more.length > 0) await Promise.all(more.splice(0, 200).map((crawlId) => store.accept(crawlId, ['1'])))
        const { count, others, ...rest } = await store.openCrawls(named, 100)
        expect(rest.named).toHaveLength(2)
        expect(others.length).toBeGreaterThan(90)
        expect(others.length).toBeLessThanOrEqual(100)
        expect(new Set(others.map(({ crawlId }) => crawlId)).size).toBe(others.length)
        // By a sample: about as many.
        expect(count).toBeGreaterThan(800)
        expect(count).toBeLessThan(1_800)
      })

      it('drops the open tasks of a crawl where its counts are still those, keeps the final ones, and takes them anew', async () => {
        const many = Array.from({ length: 2_600 }, (_, index) => (index % 2 === 0 ? `task ${index}` : uuidV7({ now: () => index })))
        await store.accept('c', ['final', ...many])
        await store.finalise('c', ['final'])
        await store.accept('other', ['1'])
        const counts = await store.crawlCounts('c')
        expect(counts).toEqual({ accepted: 2_601, final: 1 })
        expect(await store.dropOpen('c', { accepted: 2_600, final: 1 })).toBe(0)
        expect(await store.dropOpen('c', { accepted: 2_601, final: 0 })).toBe(0)
        expect(await store.crawlCounts('c')).toEqual(counts)
        expect(await store.dropOpen('c', counts)).toBe(2_600)
        expect(await store.crawlCounts('c')).toEqual({ accepted: 1, final: 1 })
        expect(await store.dropOpen('c', { accepted: 1, final: 1 })).toBe(0)
        expect(await store.dropOpen('never', { accepted: 1, final: 0 })).toBe(0)
        expect(await openOf(store)).toEqual([{ crawlId: 'other', open: 1 }])
        expect(await store.accept('c', ['final', many[0] ?? '', many[1] ?? ''])).toEqual([true, false, false])
        expect(await store.crawlCounts('c')).toEqual({ accepted: 3, final: 1 })
        await store.finalise('c', many)
        await harness.elapse(1)
        expect(await store.forgetEnded(0, 10)).toEqual(['c'])
      })

      it('forgets a crawl that ended with its claims and budgets, and nothing of one that is open', async () => {
        const claimed = (crawlId: string) =>
          Array.from({ length: 700 }, (_, index) => ({ crawlId, canonicalUrl: `https://a.example/${index}`, round: 0, claimant: 'x' }))
        for (const crawlId of ['gone', 'kept']) {
          await store.claim(claimed(crawlId))
          await store.accept(crawlId, ['1', '2'])
          await store.finalise(crawlId, crawlId === 'gone' ? ['1', '2'] : ['1'])
          for (const domain of ['a', 'b']) await store.reserve('1', [{ id: `${crawlId}/${domain}`, limit: 5, crawlId }], HOLD_MS)
        }
        await harness.elapse(1)
        expect(await store.forgetEnded(0, 10)).toEqual(['gone'])
        expect(await store.forgetEnded(0, 10)).toEqual([])
        expect(await store.crawlCounts('gone')).toEqual({ accepted: 0, final: 0 })
        const places = await Promise.all(['gone/a', 'gone/b', 'kept/a', 'kept/b'].map((id) => store.budgetPlaces(id)))
        expect(places.map(({ taken, held }) => `${taken} ${held}`)).toEqual(['0 0', '0 0', '1 1', '1 1'])
        expect(new Set(await store.claim(claimed('gone')))).toEqual(new Set(['new']))
        expect(new Set(await store.claim(claimed('kept')))).toEqual(new Set(['own']))
        expect(await store.crawlCounts('kept')).toEqual({ accepted: 2, final: 1 })
      })

      it('forgets no crawl before it has been quiet for so long, counted anew whenever something is heard of it', async () => {
        await store.finalise('first', ['1'])
        await harness.elapse(600)
        await store.finalise('second', ['1'])
        await store.finalise('again', ['1'])
        await harness.elapse(600)
        await store.accept('again', ['1'])
        await store.accept('open', ['1'])
        expect(await store.forgetEnded(1_190, 10)).toEqual(['first'])
        expect(await store.forgetEnded(590, 10)).toEqual(['second'])
        expect(await store.crawlCounts('again')).toEqual({ accepted: 1, final: 1 })
        await store.accept('again', ['2'])
        await harness.elapse(100)
        expect(await store.forgetEnded(0, 10)).toEqual([])
        await store.finalise('again', ['2'])
        await harness.elapse(1)
        expect(await store.forgetEnded(0, 10)).toEqual(['again'])
        expect(await openOf(store)).toEqual([{ crawlId: 'open', open: 1 }])
      })

      it('forgets the crawls that ended first where it may not forget all', async () => {
        for (const crawlId of ['c', 'a', 'b']) {
          await store.finalise(crawlId, ['1'])
          await harness.elapse(2)
        }
        expect(await store.forgetEnded(0, 2)).toEqual(['c', 'a'])
        expect(await store.forgetEnded(0, 2)).toEqual(['b'])
      })

      it('begins anew with a crawl that it has forgotten', async () => {
        await store.finalise('c', ['1'])
        await harness.elapse(1)
        await store.forgetEnded(0, 10)
        await store.accept('c', ['1'])
        expect(await store.crawlCounts('c')).toEqual({ accepted: 1, final: 0 })
        expect(await openOf(store)).toEqual([{ crawlId: 'c', open: 1 }])
      })

      it('lists the open crawls as quickly behind thousands that have ended', async () => {
        await store.accept('open', ['1'])
        const timed = async (): Promise<number> => {
          const times: number[] = []
          for (let look = 0; look < 30; look += 1) {
            const begun = performance.now()
            expect(await openOf(store)).toEqual([{ crawlId: 'open', open: 1 }])
            times.push(performance.now() - begun)
          }
          return Math.min(...times)
        }
        const alone = await timed()
        const ended = Array.from({ length: 5_000 }, (_, index) => `ended-${index}`)
        while (ended.length > 0) await Promise.all(ended.splice(0, 250).map((crawlId) => store.finalise(crawlId, ['1'])))
        // Walking all of them takes milliseconds.
        await eventually(async () => (await timed()) < alone * 3 + 1, { what: 'a look as quick as before' })
      })
    })

    describe('page budgets', () => {
      const full = (id: string) => ({ id, isHeld: false })
      const held = (id: string) => ({ id, isHeld: true })
      const taken = async (id: string) => (await store.budgetPlaces(id)).taken
      const reserve = (taskId: string, budgets: readonly Budget[]) => store.reserve(taskId, budgets, HOLD_MS)

      it('gives places until the budget is full, and the same answer to who asks again', async () => {
        const budgets = [{ id: 'b', limit: 2 }]
        expect(await reserve('1', budgets)).toBeUndefined()
        expect(await reserve('1', budgets)).toBeUndefined()
        expect(await reserve('2', budgets)).toBeUndefined()
        expect(await reserve('3', budgets)).toEqual(held('b'))
        expect(await reserve('2', budgets)).toBeUndefined()
        expect(await store.budgetPlaces('b')).toEqual({ taken: 2, held: 2 })
      })

      it('reserves in all budgets or in none', async () => {
        await reserve('1', [{ id: 'small', limit: 1 }])
        const both = [
          { id: 'large', limit: 9 },
          { id: 'small', limit: 1 },
        ]
        expect(await reserve('2', both)).toEqual(held('small'))
        expect([await taken('large'), await taken('small')]).toEqual([0, 1])
        expect(await reserve('1', both)).toBeUndefined()
        expect([await taken('large'), await taken('small')]).toEqual([1, 1])
        expect(await reserve('3', [{ id: 'none', limit: 0 }])).toEqual(full('none'))
        expect(await reserve('3', [])).toBeUndefined()
      })

      it('is full for good where its pages are fetched, and not before', async () => {
        const budgets = [{ id: 'b', limit: 2 }]
        await reserve('1', budgets)
        await reserve('2', budgets)
        await store.keepPlaces('1', ['b', 'other'])
        await store.keepPlaces('1', ['b'])
        await store.keepPlaces('9', ['b'])
        expect(await store.budgetPlaces('b')).toEqual({ taken: 2, held: 1 })
        expect(await reserve('3', budgets)).toEqual(held('b'))
        expect(await reserve('3', [{ id: 'b', limit: 1 }])).toEqual(full('b'))
        await store.keepPlaces('2', ['b'])
        expect(await reserve('3', budgets)).toEqual(full('b'))
        // Their tasks are read again after a kill.
        expect(await reserve('1', budgets)).toBeUndefined()
        expect(await store.budgetPlaces('b')).toEqual({ taken: 2, held: 0 })
        expect(await store.budgetPlaces('other')).toEqual({ taken: 0, held: 0 })
      })

      it('names a budget that is full for good before one that is held', async () => {
        await reserve('1', [{ id: 'held', limit: 1 }])
        await reserve('1', [{ id: 'full', limit: 1 }])
        await store.keepPlaces('1', ['full'])
        const both = [
          { id: 'held', limit: 1 },
          { id: 'full', limit: 1 },
        ]
        expect(await reserve('2', both)).toEqual(full('full'))
        expect(await reserve('2', both.slice(0, 1))).toEqual(held('held'))
      })

      it('takes places for kept that nobody has asked for so long, since their tasks may be lost', async () => {
        const budgets = [{ id: 'b', limit: 2 }]
        await store.reserve('1', budgets, 3_000)
        await store.reserve('2', budgets, 3_000)
        await harness.elapse(1_000)
        // A task that asks again, though not half of the time is over, holds its place for longer, and with it those of the others.
        await store.reserve('1', budgets, 3_000)
        await harness.elapse(2_100)
        expect(await reserve('3', budgets)).toEqual(held('b'))
        await harness.elapse(1_800)
        expect(await reserve('3', budgets)).toEqual(full('b'))
        // One that is there all the same has its place, and may give it back.
        expect(await reserve('1', budgets)).toBeUndefined()
        await store.unreserve('1', ['b'])
        expect(await reserve('3', budgets)).toBeUndefined()
        expect(await store.budgetPlaces('b')).toEqual({ taken: 2, held: 1 })
        await store.keepPlaces('2', ['b'])
        expect(await store.budgetPlaces('b')).toEqual({ taken: 2, held: 1 })
      })

      it('gives a place back once, however often it is given back', async () => {
        const budgets = [{ id: 'b', limit: 1 }]
        await reserve('1', budgets)
        await store.unreserve('1', ['b', 'other'])
        await store.unreserve('1', ['b'])
        await store.unreserve('9', ['b'])
        expect(await store.budgetPlaces('b')).toEqual({ taken: 0, held: 0 })
        expect(await reserve('2', budgets)).toBeUndefined()
      })

      it('never gives more places than there are to many who ask at once', async () => {
        const second = await harness.open()
        const answers = await Promise.all(
          Array.from({ length: 30 }, (_, index) => (index % 2 ? store : second).reserve(`${index}`, [{ id: 'b', limit: 7 }], HOLD_MS)),
        )
        expect(answers.filter((answer) => answer === undefined)).toHaveLength(7)
      })
    })

    describe('limiter', () => {
      it('spaces requests by the rate', async () => {
        const request = ask([pace(A, { ratePerSecond: 1, concurrency: 9 })])
        leaseOf(await store.acquire(request))
        const wait = waitOf(await store.acquire(request))
        expect(wait).toMatchObject({ reason: 'rate', key: A })
        expect(wait.waitMs).toBeGreaterThan(300)
        expect(wait.waitMs).toBeLessThanOrEqual(1_000)
        await harness.elapse(wait.waitMs)
        leaseOf(await store.acquire(request))
      })

      it('lets a burst start at once after idling, and then spaces again', async () => {
        const request = ask([pace(A, { ratePerSecond: 0.2, burst: 3, concurrency: 9 })])
        for (let index = 0; index < 3; index += 1) leaseOf(await store.acquire(request))
        const wait = waitOf(await store.acquire(request))
        expect(wait.reason).toBe('rate')
        expect(wait.waitMs).toBeGreaterThan(3_000)
        expect(wait.waitMs).toBeLessThanOrEqual(5_000)
      })

      it('asks the whole new interval of a key whose rate was lowered, and does not hold on to an old slow one', async () => {
        leaseOf(await store.acquire(ask([pace(A, { ratePerSecond: 100, concurrency: 9 })])))
        expect(waitOf(await store.acquire(ask([pace(A, { ratePerSecond: 0.05, concurrency: 9 })]))).waitMs).toBeGreaterThan(18_000)
        expect(waitOf(await store.acquire(ask([pace(A, { ratePerSecond: 0.05, concurrency: 9 })]))).waitMs).toBeLessThanOrEqual(20_000)
        await harness.elapse(20)
        leaseOf(await store.acquire(ask([pace(A, { ratePerSecond: 100, concurrency: 9 })])))
      })

      it('gives no more leases than the concurrency, and one again after a release', async () => {
        const request = ask([pace(A, { concurrency: 2 })])
        const first = leaseOf(await store.acquire(request))
        await harness.elapse(2)
        leaseOf(await store.acquire(request))
        await harness.elapse(2)
        const wait = waitOf(await store.acquire(request))
        expect(wait).toMatchObject({ reason: 'concurrency', key: A, waitMs: 250 })
        await store.release(first, [{ key: A, crawlDelayMs: 0 }])
        leaseOf(await store.acquire(request))
      })

      it('waits for the expiry of a lease where that is sooner than the next look', async () => {
        leaseOf(await store.acquire(ask([pace(A)], { leaseMs: 240 })))
        await harness.elapse(2)
        const wait = waitOf(await store.acquire(ask([pace(A)])))
        expect(wait.reason).toBe('concurrency')
        // Else it would be 250.
        expect(wait.waitMs).toBeLessThanOrEqual(240)
        await harness.elapse(wait.waitMs)
        leaseOf(await store.acquire(ask([pace(A)])))
      })

      it('counts the crawl delay from the end of a request to the start of the next', async () => {
        const request = ask([pace(A, { crawlDelayMs: 1_000 })])
        const lease = leaseOf(await store.acquire(request))
        await harness.elapse(500)
        await store.release(lease, [{ key: A, crawlDelayMs: 1_000 }])
        const wait = waitOf(await store.acquire(request))
        expect(wait.reason).toBe('crawl-delay')
        expect(wait.waitMs).toBeGreaterThan(500)
        expect(wait.waitMs).toBeLessThanOrEqual(1_000)
        await harness.elapse(wait.waitMs)
        leaseOf(await store.acquire(request))
      })

      it('counts the crawl delay of an expired lease from its expiry', async () => {
        const request = ask([pace(A, { crawlDelayMs: 2_000 })], { leaseMs: 200 })
        leaseOf(await store.acquire(request))
        await harness.elapse(400)
        const wait = waitOf(await store.acquire(request))
        expect(wait.reason).toBe('crawl-delay')
        expect(wait.waitMs).toBeGreaterThan(1_000)
        expect(wait.waitMs).toBeLessThanOrEqual(1_802)
      })

      it('takes the longer of the crawl delays of the request that ended and of the one that starts', async () => {
        const lease = leaseOf(await store.acquire(ask([pace(A)])))
        await store.release(lease, [{ key: A, crawlDelayMs: 2_000 }])
        expect(waitOf(await store.acquire(ask([pace(A, { crawlDelayMs: 0 })]))).waitMs).toBeLessThanOrEqual(2_000)
        const longer = waitOf(await store.acquire(ask([pace(A, { crawlDelayMs: 30_000 })])))
        expect(longer.reason).toBe('crawl-delay')
        expect(longer.waitMs).toBeGreaterThan(28_000)
      })

      it('takes the release of a lease that it does not know for the end of a request', async () => {
        await store.release('expired-long-ago', [{ key: A, crawlDelayMs: 3_000 }])
        expect(waitOf(await store.acquire(ask([pace(A)]))).reason).toBe('crawl-delay')
      })

      it('counts from the end of the request where its release comes late, or once more', async () => {
        const site = pace(A, { crawlDelayMs: 9_000 })
        const lease = leaseOf(await store.acquire(ask([site])))
        await harness.elapse(300)
        const report = { kind: 'overload', backOffMs: 7_000, isAsked: true, rules: { ...RULES, isAdaptive: false } } as const
        await store.release(lease, [site], { ...report, endedAgoMs: 200 })
        await harness.elapse(100)
        await store.release(lease, [site], { ...report, endedAgoMs: 301 })
        const { backOffMs } = await store.limiterState(A)
        expect(backOffMs).toBeLessThanOrEqual(6_700)
        expect(backOffMs).toBeGreaterThan(5_500)
        await store.reset(A, 1)
        const wait = waitOf(await store.acquire(ask([site])))
        expect(wait.reason).toBe('crawl-delay')
        expect(wait.waitMs).toBeLessThanOrEqual(8_700)
        expect(wait.waitMs).toBeGreaterThan(7_500)
      })

      it('starts nothing during a back-off, which a shorter one does not shorten', async () => {
        await backOff(store, A, 1_000)
        await backOff(store, A, 20)
        const wait = waitOf(await store.acquire(ask([pace(A)])))
        expect(wait).toMatchObject({ reason: 'back-off', key: A })
        expect(wait.waitMs).toBeGreaterThan(300)
        leaseOf(await store.acquire(ask([pace(B)])))
        await harness.elapse(wait.waitMs)
        leaseOf(await store.acquire(ask([pace(A)])))
      })

      it('admits all keys together or none, and answers with the longest wait', async () => {
        await backOff(store, ADDRESS, 4_000)
        await backOff(store, B, 1_000)
        const wait = waitOf(await store.acquire(ask([pace(A), pace(B), pace(ADDRESS)])))
        expect(wait).toMatchObject({ reason: 'back-off', key: ADDRESS })
        expect(wait.waitMs).toBeGreaterThan(2_500)
        expect(await store.limiterState(A)).toEqual(UNKNOWN)
        leaseOf(await store.acquire(ask([pace(A)])))
      })

      it('takes a place of every key, and gives all of them back', async () => {
        const lease = leaseOf(await store.acquire(ask([pace(A), pace(ADDRESS, { concurrency: 2 })])))
        await harness.elapse(2)
        expect(waitOf(await store.acquire(ask([pace(A)]))).reason).toBe('concurrency')
        leaseOf(await store.acquire(ask([pace(B), pace(ADDRESS, { concurrency: 2 })])))
        expect((await store.limiterState(ADDRESS)).leases).toBe(2)
        await store.release(
          lease,
          [A, ADDRESS].map((key) => ({ key, crawlDelayMs: 0 })),
        )
        expect([(await store.limiterState(A)).leases, (await store.limiterState(ADDRESS)).leases]).toEqual([0, 1])
      })

      it('lets robots.txt take a place and obey the back-off, but no turn and no crawl delay', async () => {
        const slow = pace(A, { ratePerSecond: 0.1, concurrency: 2, crawlDelayMs: 5_000 })
        const robots = ask([slow], { countsForRate: false })
        const first = leaseOf(await store.acquire(robots))
        const second = leaseOf(await store.acquire(robots))
        expect(waitOf(await store.acquire(robots)).reason).toBe('concurrency')
        await store.release(first, [{ key: A, crawlDelayMs: 5_000 }])
        await store.release(second, [{ key: A, crawlDelayMs: 5_000 }])
        // No crawl delay follows it, and it has used up no turn.
        const page = leaseOf(await store.acquire(ask([slow])))
        await store.release(page, [{ key: A, crawlDelayMs: 5_000 }])
        expect(waitOf(await store.acquire(ask([slow]))).waitMs).toBeGreaterThan(9_000)
        leaseOf(await store.acquire(robots))
        await backOff(store, A, 10_000)
        expect(waitOf(await store.acquire(robots)).reason).toBe('back-off')
      })

      it('ends the leases of processes of this machine that are gone, and no others', async () => {
        const gone = { ...ownProcess('dead'), pid: 4_194_303, pidStartedAt: '1' }
        const elsewhere = { ...gone, host: 'another-machine' }
        const reused = { ...ownProcess('reused'), pidStartedAt: 'long ago' }
        leaseOf(await store.acquire(ask([pace(A, { crawlDelayMs: SHORT_MS })], { owner: gone })))
        await harness.elapse(2)
        const wait = waitOf(await store.acquire(ask([pace(A)])))
        expect(wait.reason).toBe('crawl-delay')
        expect(wait.waitMs).toBeLessThanOrEqual(SHORT_MS)
        await harness.elapse(wait.waitMs)
        const lease = leaseOf(await store.acquire(ask([pace(A)], { owner: reused })))
        await harness.elapse(2)
        const gap = waitOf(await store.acquire(ask([pace(A, { ratePerSecond: 2 })])))
        expect(gap.reason).toBe('rate')
        await harness.elapse(gap.waitMs)
        leaseOf(await store.acquire(ask([pace(A)])))
        await store.release(lease, [{ key: A, crawlDelayMs: 0 }])
        leaseOf(await store.acquire(ask([pace(B)], { owner: elsewhere })))
        await harness.elapse(2)
        expect(waitOf(await store.acquire(ask([pace(B)]))).reason).toBe('concurrency')
        expect(OWNER.host).toBe(hostIdentity())
      })

      it('C138: tries a site that asked for patience with one request at a time, until one is answered well', async () => {
        const wide = ask([pace(A, { concurrency: 4 })])
        const early = leaseOf(await store.acquire(wide))
        await harness.elapse(2)
        const busy = leaseOf(await store.acquire(wide))
        const good = { kind: 'success', rules: RULES } as const
        await store.release(busy, [{ key: A, crawlDelayMs: 0 }], { kind: 'overload', backOffMs: 60, isAsked: true, rules: RULES })
        // It was asked before, and says nothing of how the site is now.
        await store.release(early, [{ key: A, crawlDelayMs: 0 }], good)
        await harness.elapse(70)
        const probe = leaseOf(await store.acquire(wide))
        await harness.elapse(2)
        expect(waitOf(await store.acquire(wide)).reason).toBe('concurrency')
        expect(await store.limiterState(A)).toMatchObject({ allowed: 2.5, atOnce: 1 })
        await store.release(probe, [{ key: A, crawlDelayMs: 0 }], good)
        expect(await store.limiterState(A)).toMatchObject({ atOnce: 2 })
        await harness.elapse(2)
        leaseOf(await store.acquire(wide))
        await harness.elapse(2)
        leaseOf(await store.acquire(wide))
      })

      it('ends the lease of a process that is gone where the site was slowed down to fewer requests than its rule allows', async () => {
        const gone = { ...ownProcess('dead'), pid: 4_194_303, pidStartedAt: '1' }
        const wide = pace(A, { concurrency: 2, ratePerSecond: 5 })
        const slowed = leaseOf(await store.acquire(ask([wide])))
        await store.release(slowed, [{ key: A, crawlDelayMs: 0 }], { kind: 'overload', backOffMs: 20, rules: RULES })
        await harness.elapse(250)
        leaseOf(await store.acquire(ask([wide], { owner: gone })))
        await harness.elapse(2)
        const wait = waitOf(await store.acquire(ask([wide])))
        expect(wait.reason).toBe('rate')
        await harness.elapse(wait.waitMs)
        leaseOf(await store.acquire(ask([wide])))
      })

      it('keeps the whole gap from when the holder of a lease was found gone: its request may have left just before', async () => {
        const gone = { ...ownProcess('dead'), pid: 4_194_303, pidStartedAt: '1' }
        const slow = pace(A, { ratePerSecond: 1 })
        leaseOf(await store.acquire(ask([slow], { owner: gone })))
        await harness.elapse(700)
        const wait = waitOf(await store.acquire(ask([slow])))
        expect(wait.reason).toBe('rate')
        // From the start of the lease it would be 300; on a busy machine some of the gap passes within the call.
        expect(wait.waitMs).toBeGreaterThan(300)
        expect(wait.waitMs).toBeLessThanOrEqual(1_000)
      })

      it('tells what it remembers of a key', async () => {
        expect(await store.limiterState(A)).toEqual(UNKNOWN)
        leaseOf(await store.acquire(ask([pace(A, { ratePerSecond: 0.05 })])))
        await backOff(store, A, 50_000)
        const state = await store.limiterState(A)
        expect(state.leases).toBe(1)
        expect(state.nextMs).toBeGreaterThan(18_000)
        expect(state.nextMs).toBeLessThanOrEqual(20_000)
        expect(state.backOffMs).toBeGreaterThan(48_000)
        expect(state.backOffMs).toBeLessThanOrEqual(50_000)
      })

      it('refuses a pace that nobody could keep', async () => {
        for (const change of [{ ratePerSecond: 0 }, { concurrency: 0 }, { burst: 0 }, { crawlDelayMs: Number.NaN }]) {
          await expect(store.acquire(ask([pace(A, change)]))).rejects.toMatchObject({ code: 'INTERNAL' })
        }
        await expect(store.acquire(ask([pace(A)], { leaseMs: 0 }))).rejects.toMatchObject({ code: 'INTERNAL' })
      })

      it('keeps the concurrency when many ask at once through two handles', async () => {
        const second = await harness.open()
        const request = ask([pace(A, { ratePerSecond: 1, burst: 50, concurrency: 3 })])
        const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => (index % 2 ? store : second).acquire(request)))
        expect(answers.filter((answer) => answer.kind === 'lease')).toHaveLength(3)
      })
    })

    describe('what answers teach the limiter', () => {
      const wide = pace(A, { concurrency: 8 })
      const take = async (key: LimiterKey = wide): Promise<string> => {
        const answer = await store.acquire(ask([key], { aheadMs: 50 }))
        if (answer.kind === 'lease' && answer.startInMs > 0) await harness.elapse(Math.ceil(answer.startInMs))
        return leaseOf(answer)
      }
      const tell = async (report: Omit<AnswerReport, 'rules'>, rules = RULES, key: LimiterKey = wide): Promise<ReleasedState> => {
        const [state] = await store.release(await take(key), [key], { ...report, rules })
        if (state === undefined) throw new Error('no state of the key was told')
        return state
      }
      const ANSWERED = { kind: 'success', latencyMs: 20 } as const

      it('halves the requests at the same time on each overload, then the rate, and gives both back step by step', async () => {
        const seen: [number | null, number, string][] = []
        for (let index = 0; index < 8; index += 1) {
          const { allowed, rateFactor, change } = await tell({ kind: 'overload' })
          seen.push([allowed, rateFactor, change])
        }
        expect(seen).toEqual([
          [4, 1, 'slowed'],
          [2, 1, 'slowed'],
          [1, 1, 'slowed'],
          [1, 1 / 2, 'slowed'],
          [1, 1 / 4, 'slowed'],
          [1, 1 / 8, 'slowed'],
          [1, 1 / 16, 'slowed'],
          [1, 1 / 16, 'none'],
        ])
        expect(await store.limiterState(A)).toMatchObject({ allowed: 1, rateFactor: 1 / 16 })
        const factors: number[] = []
        for (let index = 0; index < 15; index += 1) factors.push((await tell(ANSWERED)).rateFactor)
        expect(factors).toEqual(Array.from({ length: 15 }, (_, index) => (index + 2) / 16))
        const allowed: (number | null)[] = []
        for (let index = 0; index < 40 && allowed.at(-1) !== null; index += 1) allowed.push((await tell(ANSWERED)).allowed)
        expect(allowed.slice(0, 3)).toEqual([2, 2.5, 2.9])
        expect(allowed.at(-1)).toBeNull()
        expect(await store.limiterState(A)).toMatchObject({ allowed: null, rateFactor: 1 })
      })

      it('takes answers to requests of before a cut for what they are', async () => {
        const leases = [await take(), await take(), await take()]
        await harness.elapse(2)
        const changes: string[] = []
        for (const lease of leases) changes.push((await store.release(lease, [wide], { kind: 'overload', rules: RULES }))[0]?.change ?? '')
        expect(changes).toEqual(['slowed', 'none', 'none'])
        expect((await store.limiterState(A)).allowed).toBe(4)
      })

      it('lets no more start than the answers allow, and spaces by the rate that is left', async () => {
        for (let index = 0; index < 3; index += 1) await tell({ kind: 'overload' })
        await take()
        await harness.elapse(2)
        const wait = await store.acquire(ask([wide]))
        expect(wait).toMatchObject({ kind: 'wait', reason: 'concurrency', concurrency: 1 })
        const slow = pace(B, { ratePerSecond: 1 })
        await store.release(leaseOf(await store.acquire(ask([slow]))), [slow], { kind: 'overload', rules: RULES })
        expect((await store.limiterState(B)).rateFactor).toBe(1 / 2)
        leaseOf(await store.acquire(ask([slow], { aheadMs: 2_500 })))
        expect(waitOf(await store.acquire(ask([slow]))).waitMs).toBeGreaterThan(1_200)
      })

      it('halves the requests at the same time when the latency doubles, never the rate', async () => {
        for (let index = 0; index < 40; index += 1) await tell({ kind: 'success', latencyMs: 100 })
        expect(await store.limiterState(A)).toMatchObject({ latencyMs: 100, allowed: null })
        const changes: string[] = []
        for (let index = 0; index < 30; index += 1) changes.push((await tell({ kind: 'success', latencyMs: 220 })).change)
        expect(changes.indexOf('slowed')).toBeGreaterThan(5)
        expect(changes.filter((change) => change === 'slowed').length).toBeLessThanOrEqual(3)
        expect(await store.limiterState(A)).toMatchObject({ rateFactor: 1 })
        expect((await store.limiterState(A)).allowed).toBeLessThan(8)
      })

      it('is left alone where it shall not adapt', async () => {
        expect(await tell({ kind: 'overload' }, { ...RULES, isAdaptive: false })).toMatchObject({
          allowed: null,
          rateFactor: 1,
          change: 'none',
        })
      })

      it('goes back to the whole policy with the next answer once it shall not adapt any more', async () => {
        for (let index = 0; index < 6; index += 1) {
          await tell({ kind: 'overload' })
          await harness.elapse(40)
        }
        const slowed = await store.limiterState(A)
        expect(slowed.rateFactor).toBeLessThan(1)
        expect(slowed.allowed).toBe(1)
        expect(await tell({ kind: 'success', latencyMs: 20 }, { ...RULES, isAdaptive: false })).toMatchObject({
          allowed: null,
          rateFactor: 1,
        })
      })

      it('remembers a site that is parked over a night in which nobody may ask it, not over days, and another one for minutes', async () => {
        await tell(ANSWERED)
        expect(await harness.isKept(store, A, 900_000)).toBe(false)
        await tell({ kind: 'failure', failure: 'connect' })
        await tell({ kind: 'failure', failure: 'connect' })
        expect(await harness.isKept(store, A, 20 * 3_600_000)).toBe(true)
        expect(await harness.isKept(store, A, 2 * 86_400_000)).toBe(false)
      })

      it('parks a site that does not answer, tries it with one request, and parks it longer after a vain one', async () => {
        expect(await tell({ kind: 'failure', failure: 'connect' })).toMatchObject({ change: 'none', trips: 0 })
        const opened = await tell({ kind: 'failure', failure: 'timeout' })
        expect(opened).toMatchObject({ change: 'opened', trips: 1 })
        expect(opened.parkedMs).toBeGreaterThan(500)
        expect(await store.limiterState(A)).toMatchObject({ allowed: null, atOnce: 1 })
        const parked = waitOf(await store.acquire(ask([wide])))
        expect(parked.reason).toBe('breaker')
        expect(parked.waitMs).toBeLessThanOrEqual(900)
        await harness.elapse(parked.waitMs)
        const probe = await take()
        await harness.elapse(2)
        expect(await store.acquire(ask([wide]))).toMatchObject({ kind: 'wait', reason: 'concurrency', concurrency: 1 })
        const [again] = await store.release(probe, [wide], { kind: 'failure', failure: 'connect', rules: RULES })
        expect(again).toMatchObject({ change: 'opened', trips: 2 })
        expect(again?.parkedMs).toBeGreaterThan(950)
        expect(again?.parkedMs).toBeLessThanOrEqual(1_500)
        expect((await store.limiterState(A)).failingMs).toBeGreaterThan(0)
        await harness.elapse(again?.parkedMs ?? 0)
        expect(await tell(ANSWERED)).toMatchObject({ change: 'closed', trips: 0, parkedMs: 0 })
        expect((await store.limiterState(A)).failingMs).toBe(0)
        expect(await tell({ kind: 'failure', failure: 'connect' })).toMatchObject({ change: 'none' })
      })

      it('parks it for four times as many 5xx, and not at all while it answers in between', async () => {
        const changes: string[] = []
        for (let index = 0; index < 8; index += 1) changes.push((await tell({ kind: 'failure', failure: 'server' })).change)
        expect(changes).toEqual([...Array(7).fill('none'), 'opened'])
        const other = pace(B, { concurrency: 8 })
        for (let index = 0; index < 6; index += 1) {
          expect(await tell({ kind: 'failure', failure: 'connect' }, RULES, other)).toMatchObject({ change: 'none' })
          expect(await tell({ kind: 'overload' }, { ...RULES, isAdaptive: false }, other)).toMatchObject({ change: 'none' })
        }
        for (let index = 0; index < 6; index += 1)
          expect(await tell({ kind: 'failure', failure: 'connect' }, { ...RULES, breakerFailures: 0 }, other)).toMatchObject({
            change: 'none',
          })
      })

      it('learns from a report once, and takes its back-off whatever became of the lease', async () => {
        const lease = await take()
        await store.release(lease, [wide], { kind: 'overload', rules: RULES })
        await store.release(lease, [wide], { kind: 'overload', backOffMs: 5_000, isAsked: true, rules: RULES })
        expect(await store.limiterState(A)).toMatchObject({ allowed: 4, isAsked: true })
        expect(waitOf(await store.acquire(ask([wide]))).reason).toBe('retry-after')
        await store.release('unknown', [wide], { kind: 'none', backOffMs: 9_000, rules: RULES })
        expect(waitOf(await store.acquire(ask([wide]))).reason).toBe('back-off')
      })

      it('takes over what a worker knew, where that is stricter', async () => {
        const known = { backOffMs: 40_000, isAsked: true, allowed: 2.5, rateFactor: 0.5, trips: 3, parkedMs: 20_000 }
        await store.reassert(A, known, 0)
        const state = await store.limiterState(A)
        expect(state).toMatchObject({ isAsked: true, allowed: 2.5, rateFactor: 0.5, trips: 3 })
        expect(state.backOffMs).toBeGreaterThan(38_000)
        expect(state.parkedMs).toBeGreaterThan(18_000)
        await store.reassert(A, { backOffMs: 0, isAsked: false, allowed: null, rateFactor: 1, trips: 0, parkedMs: 0 }, 0)
        expect(await store.limiterState(A)).toMatchObject({ isAsked: true, allowed: 2.5, rateFactor: 0.5, trips: 3 })
      })

      describe('a reset', () => {
        const earned = { backOffMs: 31_536_000_000, isAsked: true, allowed: 1, rateFactor: 0.25, trips: 3, parkedMs: 500_000 }

        it('forgets what answers have taught, and nothing that is owed by the pace', async () => {
          const key = pace(A, { ratePerSecond: 0.1, concurrency: 2 })
          leaseOf(await store.acquire(ask([key])))
          await store.reassert(A, earned, 0)
          expect(await store.limiterState(A)).toMatchObject({ isAsked: true, trips: 3 })
          await store.reset(A, 1_000)
          const { leases, nextMs, ...rest } = await store.limiterState(A)
          expect({ ...UNKNOWN, ...rest }).toEqual(UNKNOWN)
          expect(leases).toBe(1)
          expect(nextMs).toBeGreaterThan(8_000)
          expect(waitOf(await store.acquire(ask([key])))).toMatchObject({ reason: 'rate' })
        })

        it('is heard of with the next question, for all keys of it, and once', async () => {
          const keys = [pace(A), pace(ADDRESS)]
          for (const { key } of keys) await store.reassert(key, earned, 0)
          expect(waitOf(await store.acquire(ask(keys))).reason).toBe('retry-after')
          const leaseId = leaseOf(await store.acquire(ask(keys, { resetAt: 5_000 })))
          await store.release(leaseId, keys, { kind: 'overload', backOffMs: 9_000, isAsked: true, resetAt: 5_000, rules: RULES })
          // What the site said after the reset counts, whoever names that reset or one before.
          for (const resetAt of [5_000, 4_000, 0]) {
            await store.reset(A, resetAt)
            expect(waitOf(await store.acquire(ask(keys, { resetAt }))).reason).toBe('retry-after')
          }
        })

        it('is kept when the store is opened again', async () => {
          await store.reset(A, 5_000)
          await store.close()
          store = await harness.open({ warmUp: false })
          await backOff(store, A, 9_000, 5_000)
          await store.reset(A, 5_000)
          expect((await store.limiterState(A)).backOffMs).toBeGreaterThan(8_000)
          await store.reset(A, 5_001)
          expect((await store.limiterState(A)).backOffMs).toBe(0)
        })

        it('is known to a store that was emptied, with the back-offs that workers learnt after it, and of none before', async () => {
          await store.reassert(A, earned, 5_000)
          expect(waitOf(await store.acquire(ask([pace(A)], { resetAt: 5_000 }))).reason).toBe('retry-after')
          await store.reset(B, 5_000)
          await store.reassert(B, earned, 4_000)
          leaseOf(await store.acquire(ask([pace(B)], { resetAt: 5_000 })))
          // The answer to a request whose lease nobody knows any more.
          await store.release('unknown', [pace(ADDRESS)], { kind: 'none', backOffMs: 9_000, resetAt: 5_000, rules: RULES })
          expect(waitOf(await store.acquire(ask([pace(ADDRESS)], { resetAt: 5_000 }))).reason).toBe('back-off')
        })
      })

      it('lets a request that is late leave at once where nothing was started since, and counts the next one from there', async () => {
        const key = pace(A, { ratePerSecond: 0.5, concurrency: 9 })
        const late = leaseOf(await store.acquire(ask([key])))
        await harness.elapse(1_000)
        expect(await store.startAgain(late, [key])).toBe(0)
        const next = waitOf(await store.acquire(ask([key])))
        expect(next.reason).toBe('rate')
        // From its first start it would be a second.
        expect(next.waitMs).toBeGreaterThan(1_000)
      })

      it('gives a request that is late another turn where others were started meanwhile', async () => {
        const key = pace(A, { ratePerSecond: 1, concurrency: 9 })
        const late = leaseOf(await store.acquire(ask([key])))
        await harness.elapse(1_010)
        leaseOf(await store.acquire(ask([key])))
        await harness.elapse(20)
        const inMs = await store.startAgain(late, [key])
        expect(inMs).toBeGreaterThan(300)
        expect(inMs).toBeLessThanOrEqual(980)
        // It has the turn of whoever would have been next.
        const next = waitOf(await store.acquire(ask([key])))
        expect(next.waitMs).toBeGreaterThan(inMs + 300)
        expect(next.waitMs).toBeLessThanOrEqual(Math.ceil(inMs) + 1_000)
        // Asked once more before its start, nothing changes.
        expect(await store.startAgain(late, [key])).toBeLessThanOrEqual(inMs)
        expect(waitOf(await store.acquire(ask([key]))).waitMs).toBeLessThanOrEqual(Math.ceil(inMs) + 1_000)
      })

      it('counts the start anew from a request that left late itself, and over all keys of a request', async () => {
        const [site, address] = [pace(A, { ratePerSecond: 1, concurrency: 9 }), pace(ADDRESS, { ratePerSecond: 1, concurrency: 9 })]
        const late = leaseOf(await store.acquire(ask([site, address])))
        await harness.elapse(1_010)
        const other = leaseOf(await store.acquire(ask([pace(B, { concurrency: 9 }), address])))
        await store.reportLate(other, [ADDRESS], 700)
        const inMs = await store.startAgain(late, [site, address])
        expect(inMs).toBeGreaterThan(1_000)
        expect(inMs).toBeLessThan(1_701)
        expect(waitOf(await store.acquire(ask([site]))).waitMs).toBeGreaterThan(inMs + 300)
      })

      it('has no other start for what does not count for the rate, or is not known', async () => {
        const key = pace(A, { ratePerSecond: 1, concurrency: 9 })
        const robots = leaseOf(await store.acquire(ask([key], { countsForRate: false })))
        leaseOf(await store.acquire(ask([key])))
        await harness.elapse(10)
        expect([await store.startAgain(robots, [key]), await store.startAgain('unknown', [key])]).toEqual([0, 0])
        expect(waitOf(await store.acquire(ask([key]))).waitMs).toBeLessThanOrEqual(1_000)
      })

      it('gives a start out ahead of its time, counts from there, and from when the request really left', async () => {
        const key = pace(A, { ratePerSecond: 1, concurrency: 9 })
        leaseOf(await store.acquire(ask([key])))
        const ahead = await store.acquire(ask([key], { aheadMs: 1_000 }))
        if (ahead.kind !== 'lease') throw new Error('expected a lease')
        expect(ahead.startInMs).toBeGreaterThan(500)
        expect(ahead.startInMs).toBeLessThanOrEqual(1_000)
        const third = waitOf(await store.acquire(ask([key])))
        expect(third.waitMs).toBeGreaterThan(1_500)
        expect(third.waitMs).toBeLessThanOrEqual(2_000)
        expect((await store.acquire(ask([key], { aheadMs: 500 }))).kind).toBe('wait')
        await harness.elapse(Math.ceil(ahead.startInMs))
        await store.release(ahead.leaseId, [key], { kind: 'success', sentLateMs: 600, rules: RULES })
        expect(waitOf(await store.acquire(ask([key]))).waitMs).toBeGreaterThan(1_000)
      })
    })

    describe('spill clocks', () => {
      it('gives out one slot after the other, whoever asks', async () => {
        const second = await harness.open()
        const first = await store.spillSlot(A, 10_000, 5_000)
        expect(first).toBeGreaterThan(14_000)
        expect(first).toBeLessThanOrEqual(15_000)
        const next = await second.spillSlot(A, 0, 5_000)
        expect(next).toBeGreaterThan(18_000)
        expect(next).toBeLessThanOrEqual(20_000)
        expect(await store.spillSlot(B, 0, 5_000)).toBeLessThanOrEqual(5_000)
      })

      it('starts from now when its clock lies behind', async () => {
        await store.spillSlot(A, 0, 20)
        await harness.elapse(60)
        const slot = await store.spillSlot(A, 0, 100)
        expect(slot).toBeGreaterThan(0)
        expect(slot).toBeLessThanOrEqual(100)
      })
    })

    describe('shared things', () => {
      const entry = { verdict: 'parsed', body: 'User-agent: *\nDisallow: /ü', status: 200, fetchedAt: 1_700_000_000_000 } as const

      it('keeps a robots.txt for its time, the largest whole', async () => {
        const large = { ...entry, body: 'x'.repeat(512 * 1024) }
        await store.writeRobots('https://a.example', entry, 1_000)
        await store.writeRobots('https://b.example', large, 60_000)
        expect(await store.readRobots('https://a.example')).toEqual(entry)
        expect(await store.readRobots('http://a.example')).toBeUndefined()
        await harness.elapse(1_020)
        expect(await store.readRobots('https://a.example')).toBeUndefined()
        expect(await store.readRobots('https://b.example')).toEqual(large)
        await store.writeRobots('https://b.example', { ...entry, verdict: 'unreachable', status: null }, 60_000)
        expect(await store.readRobots('https://b.example')).toMatchObject({ verdict: 'unreachable', status: null })
      })

      it('keeps a timed value for its time, apart from values of the same name', async () => {
        await store.writeTimed('preview:a', 'first', 60_000)
        expect(await (await harness.open()).readTimed('preview:a')).toBe('first')
        expect(await store.readValue('preview:a')).toBeUndefined()
        expect(await store.readTimed('preview:b')).toBeUndefined()
        await store.writeValue('preview:a', 'stays')
        await store.writeTimed('preview:a', 'second', SHORT_MS)
        expect(await store.readTimed('preview:a')).toBe('second')
        await harness.elapse(SHORT_MS + 20)
        expect([await store.readTimed('preview:a'), await store.readValue('preview:a')]).toEqual([undefined, 'stays'])
      })

      it('keeps the validators of a page for their time, replaces and forgets them', async () => {
        const url = `https://a.example/${'p'.repeat(4_000)}`
        const first = { requestHash: 'r', etag: 'W/"\u00e9"', lastModified: null, bodySha256: 'f'.repeat(64), fetchedAt: 1, checkedAt: 2 }
        await store.writeValidators(url, first, 60_000)
        expect(await (await harness.open()).readValidators(url)).toEqual(first)
        expect(await store.readValidators(`${url}q`)).toBeUndefined()
        const second = { ...first, etag: null, lastModified: 'Wed, 21 Oct 2026 07:28:00 GMT', checkedAt: 3 }
        await store.writeValidators(url, second, SHORT_MS)
        expect(await store.readValidators(url)).toEqual(second)
        await harness.elapse(SHORT_MS + 20)
        expect(await store.readValidators(url)).toBeUndefined()
        await store.writeValidators(url, first, 60_000)
        await store.writeValidators(url, undefined, 60_000)
        expect(await store.readValidators(url)).toBeUndefined()
        await store.writeValidators(url, undefined, 60_000)
      })

      it('keeps values by name, and lets one of many write once', async () => {
        expect(await store.readValue('n')).toBeUndefined()
        await store.writeValue('n', '{"a":1}')
        await store.writeValue('n', '')
        expect(await store.readValue('n')).toBe('')
        expect(await store.writeValueOnce('n', 'x')).toBe(false)
        const second = await harness.open()
        const wrote = await Promise.all([store, second, store, second].map((each, index) => each.writeValueOnce('once', `${index}`)))
        expect(wrote.filter(Boolean)).toHaveLength(1)
        expect(await second.readValue('once')).toBe(`${wrote.indexOf(true)}`)
      })

      it('lists the workers that were heard of within their time', async () => {
        const worker = (workerId: string): WorkerHeartbeat => ({
          ...ownProcess(workerId),
          stage: 'extract',
          groupId: 'scrape.extract',
          startedAt: 1,
          extractors: { book: 2 },
        })
        await store.heartbeat(worker('short'), SHORT_MS)
        await store.heartbeat(worker('long'), 60_000)
        await store.heartbeat(worker('left'), 60_000)
        await store.removeWorker('left')
        await store.removeWorker('never')
        expect((await store.workers()).map(({ workerId }) => workerId).sort()).toEqual(['long', 'short'])
        await harness.elapse(SHORT_MS + 20)
        expect(await store.workers()).toEqual([worker('long')])
      })
    })

    describe('the store as a whole', () => {
      it('keeps deployments apart', async () => {
        const other = await harness.open({ prefix: 'other.', warmUp: false })
        await store.writeValue('n', 'mine')
        await store.accept('c', ['1'])
        await backOff(store, A, 60_000)
        expect(await other.readValue('n')).toBeUndefined()
        expect(await openOf(other)).toEqual([])
        leaseOf(await other.acquire(ask([pace(A)])))
      })

      it('takes names of any length and any characters', async () => {
        const odd = `${'ü:/\u0000'.repeat(3_000)}{}`
        expect(await store.claim([{ crawlId: odd, canonicalUrl: odd, round: 0, claimant: odd }])).toEqual(['new'])
        expect(await store.claim([{ crawlId: odd, canonicalUrl: odd, round: 0, claimant: odd }])).toEqual(['own'])
        await store.markFinished([{ taskId: odd, attempt: 1, final: false }], 60_000)
        expect(await store.isFinished([{ taskId: odd, attempt: 1 }])).toEqual([true])
        await store.accept(odd, [odd])
        expect(await openOf(store)).toEqual([{ crawlId: odd, open: 1 }])
        expect(await store.reserve(odd, [{ id: odd, limit: 1 }], HOLD_MS)).toBeUndefined()
        await store.writeValue(odd, odd)
        expect(await store.readValue(odd)).toBe(odd)
        await store.writeTimed(odd, odd, 60_000)
        expect(await store.readTimed(odd)).toBe(odd)
        leaseOf(await store.acquire(ask([pace(odd as PolitenessKey)])))
      })

      it('tells one birth to all who open it', async () => {
        const second = await harness.open({ warmUp: true })
        const births = [await store.acquire(ask([pace(A)])), await second.acquire(ask([pace(A)]))].map(({ birth }) => birth)
        expect(births[1]).toBe(births[0])
        const other = await harness.open({ prefix: 'warming.', warmUp: true })
        expect((await other.acquire(ask([pace(A)]))).birth).not.toBe(births[0])
      })

      it('asks no key before one crawl delay has passed since it was found empty', async () => {
        const warming = await harness.open({ prefix: 'warming.', warmUp: true })
        const request = ask([pace(A, { ratePerSecond: 100, crawlDelayMs: 2_000 })])
        const wait = waitOf(await warming.acquire(request))
        expect(wait).toMatchObject({ reason: 'warm-up', key: A })
        expect(wait.waitMs).toBeGreaterThan(1_000)
        expect(wait.waitMs).toBeLessThanOrEqual(2_000)
        expect(waitOf(await warming.acquire({ ...request, countsForRate: false })).reason).toBe('warm-up')
        expect(waitOf(await warming.acquire(ask([pace(B, { ratePerSecond: 0.1 })]))).waitMs).toBeGreaterThan(7_000)
        // A handle that finds the store begun warms up no longer than the rest of that time.
        const second = await harness.open({ prefix: 'warming.', warmUp: true })
        expect(waitOf(await second.acquire(request)).waitMs).toBeLessThanOrEqual(wait.waitMs)
        await harness.elapse(wait.waitMs)
        leaseOf(await second.acquire(request))
      })

      it('keeps everything when it is opened again', async () => {
        await store.claim([{ crawlId: 'c', canonicalUrl: 'u', round: 0, claimant: 'x' }])
        leaseOf(await store.acquire(ask([pace(A)])))
        await store.close()
        const again = await harness.open()
        expect(await again.claim([{ crawlId: 'c', canonicalUrl: 'u', round: 0, claimant: 'y' }])).toEqual(['known'])
        expect((await again.limiterState(A)).leases).toBe(1)
      })

      it('tells its health, and refuses what is asked after it was closed', async () => {
        const health = await store.health()
        expect(health.sizeBytes).toBeGreaterThan(0)
        expect(health.version).not.toBe('')
        await store.close()
        await store.close()
        await expect(store.acquire(ask([pace(A)]))).rejects.toMatchObject({ code: 'STATE_UNAVAILABLE' })
        await expect(store.readValue('n')).rejects.toMatchObject({ code: 'STATE_UNAVAILABLE' })
      })
    })
  })
}
