import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Scheduler } from '../../../src/fetch/scheduler.ts'
import type { SiteTask } from '../../../src/fetch/site-task.ts'
import type { PartitionId, PolitenessKey } from '../../../src/kernel/brand.ts'
import type { Lane } from '../../../src/message/generated/types.ts'

interface Task extends SiteTask {
  readonly sequence: number
}

const LANES = ['high', 'normal', 'low'] as const
const lane = fc.constantFrom<Lane>(...LANES)
const site = fc.constantFrom('a', 'b', 'c', 'd')
const crawl = fc.constantFrom(null, 'x', 'y')

const command = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('add' as const), site, lane, crawl }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('next' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('admit' as const), pick: fc.nat(50) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('putBack' as const), pick: fc.nat(50), sleepMs: fc.nat(300) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('setAside' as const), pick: fc.nat(50), sleepMs: fc.nat(300) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const), pick: fc.nat(50) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), pick: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(200) }) },
)

const make = (sequence: number, at: { site: string; lane: Lane; crawl: string | null }): Task => ({
  key: at.site as PolitenessKey,
  lane: at.lane,
  crawlId: at.crawl,
  window: 'urls:0' as PartitionId,
  sequence,
})

describe('the scheduler, for any order of what happens', () => {
  it('starts the tasks of a site, lane and crawl in the order they came, loses none and starts none twice, within its bound', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 300 }), (commands) => {
        const maxInFlight = 5
        const scheduler = new Scheduler<Task>({ maxInFlight, maxBytes: 1 })
        const probing: Task[] = []
        const running: Task[] = []
        const begun: Task[] = []
        const wasAside = new Set<Task>()
        let now = 0
        let added = 0
        const takeOf = (list: Task[], pick: number): Task | undefined => list.splice(pick % Math.max(1, list.length), 1)[0]
        const start = (): boolean => {
          const next = scheduler.next(now)
          if (next.kind === 'wait') now += next.ms
          if (next.kind === 'start') probing.push(next.task)
          return next.kind !== 'idle'
        }
        for (const step of commands) {
          if (step.kind === 'add') scheduler.add(make(added++, step), now)
          else if (step.kind === 'next') start()
          else if (step.kind === 'pass') now += step.ms
          else {
            const task = takeOf(step.kind === 'end' ? running : probing, step.pick)
            if (task === undefined) continue
            if (step.kind === 'admit') {
              begun.push(task)
              running.push(task)
              scheduler.admitted(task, now)
            } else if (step.kind === 'putBack') scheduler.putBack(task, now + step.sleepMs, now)
            else if (step.kind === 'setAside') {
              wasAside.add(task)
              scheduler.setAside(task, now + step.sleepMs, now)
            } else if (step.kind === 'drop') {
              begun.push(task)
              scheduler.dropped(task, now)
            } else scheduler.ended(task, now)
          }
          expect(scheduler.inFlight).toBe(probing.length + running.length)
          expect(scheduler.inFlight).toBeLessThanOrEqual(maxInFlight)
          expect(scheduler.waiting).toBe(added - begun.length - probing.length)
          expect(new Set(probing.map(({ key }) => key)).size).toBe(probing.length)
        }
        // Whatever is left comes out by itself.
        for (let rounds = 0; rounds < 2_000 && begun.length < added; rounds++) {
          for (const task of running.splice(0)) scheduler.ended(task, now)
          for (const task of probing.splice(0)) {
            begun.push(task)
            running.push(task)
            scheduler.admitted(task, now)
          }
          start()
        }
        expect(begun.map(({ sequence }) => sequence).sort((a, b) => a - b)).toEqual(Array.from({ length: added }, (_, i) => i))
        const last = new Map<string, number>()
        for (const { key, lane: of, crawlId, sequence } of begun.filter((task) => !wasAside.has(task))) {
          expect(sequence).toBeGreaterThan(last.get(`${key} ${of} ${crawlId}`) ?? -1)
          last.set(`${key} ${of} ${crawlId}`, sequence)
        }
      }),
      { numRuns: 150 },
    )
  })

  it('gives each lane its share while all have tasks, over many sites and on one alone', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 4 }), (sites, maxInFlight) => {
        const scheduler = new Scheduler<Task>({ maxInFlight, maxBytes: 1 })
        let added = 0
        const starts = 260
        for (let i = 0; i < starts; i++) {
          for (const of of LANES) scheduler.add(make(added++, { site: `s${i % sites}`, lane: of, crawl: null }), 0)
        }
        const counts: Record<Lane, number> = { high: 0, normal: 0, low: 0 }
        for (let i = 0; i < starts; i++) {
          const next = scheduler.next(0)
          if (next.kind !== 'start') throw new Error(`nothing to start: ${next.kind}`)
          counts[next.task.lane] += 1
          scheduler.admitted(next.task, 0)
          scheduler.ended(next.task, 0)
        }
        expect(counts.low).toBeGreaterThanOrEqual(Math.floor(starts / 13) - sites - 1)
        expect(counts.high).toBeGreaterThan(counts.normal)
        expect(counts.normal).toBeGreaterThan(counts.low)
      }),
      { numRuns: 30 },
    )
  })

  it('gives crawls with a backlog equal turns, however many sites each has', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 2, maxLength: 5 }), (sitesOfCrawl) => {
        const scheduler = new Scheduler<Task>({ maxInFlight: 8, maxBytes: 1 })
        let added = 0
        for (const [index, sites] of sitesOfCrawl.entries()) {
          for (let i = 0; i < 120; i++)
            scheduler.add(make(added++, { site: `c${index}s${i % sites}`, lane: 'normal', crawl: `c${index}` }), 0)
        }
        const counts = sitesOfCrawl.map(() => 0)
        for (let i = 0; i < 100 * sitesOfCrawl.length; i++) {
          const next = scheduler.next(0)
          if (next.kind !== 'start') throw new Error('nothing to start')
          const index = Number(next.task.crawlId?.slice(1))
          counts[index] = (counts[index] ?? 0) + 1
          scheduler.admitted(next.task, 0)
          scheduler.ended(next.task, 0)
        }
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
      }),
      { numRuns: 30 },
    )
  })
})
