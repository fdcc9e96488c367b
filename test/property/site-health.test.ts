import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { learn, mergeHealth, newSiteHealth, paceInForce, type SiteHealth } from '../../src/state/site-health.ts'
import type { AnswerReport, HealthRules } from '../../src/state/state-store.ts'

const RULES: HealthRules = { isAdaptive: true, breakerFailures: 3, firstParkMs: 1_000, maxParkMs: 60_000 }

type Answer = Omit<AnswerReport, 'rules'>
const latencyMs = fc.oneof(fc.integer({ min: 1, max: 200 }), fc.constantFrom(0, 5_000, 120_000))
const answer: fc.Arbitrary<Answer> = fc.oneof(
  { weight: 6, arbitrary: latencyMs.map((ms): Answer => ({ kind: 'success', latencyMs: ms })) },
  { weight: 2, arbitrary: fc.constantFrom<Answer>({ kind: 'overload' }, { kind: 'overload', failure: 'server' }) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('connect', 'timeout', 'server')
      .map((failure): Answer => ({ kind: 'failure', failure: failure as 'server' })),
  },
  { weight: 1, arbitrary: fc.constant<Answer>({ kind: 'none' }) },
)
const policy = fc.record({
  ratePerSecond: fc.constantFrom(0.1, 1, 7, 100),
  burst: fc.integer({ min: 1, max: 5 }),
  concurrency: fc.integer({ min: 1, max: 16 }),
  crawlDelayMs: fc.constantFrom(0, 10, 5_000),
})
const steps = fc.array(fc.record({ answer, tookMs: fc.nat({ max: 3_000 }), thenMs: fc.nat({ max: 20_000 }) }), { maxLength: 80 })

/** Answers one after the other; each request starts when nothing is open any more. */
function drive(health: SiteHealth, taken: readonly { answer: Answer; tookMs: number; thenMs: number }[], concurrency: number): number {
  let now = 1_000
  for (const { answer: given, tookMs, thenMs } of taken) {
    const startedAt = Math.max(now, health.openUntil)
    now = startedAt + tookMs
    learn(health, { ...given, rules: RULES }, { startedAt, now, concurrency }, RULES)
    now += thenMs
  }
  return now
}

describe('what answers teach of a site', () => {
  it('never gives more than the policy, never less than one request and a sixteenth of the rate', () => {
    fc.assert(
      fc.property(policy, steps, (pace, taken) => {
        const health = newSiteHealth()
        for (const step of taken) {
          drive(health, [step], pace.concurrency)
          const force = paceInForce(health, pace)
          expect(force.concurrency).toBeGreaterThanOrEqual(1)
          expect(force.concurrency).toBeLessThanOrEqual(pace.concurrency)
          expect(Number.isInteger(force.concurrency)).toBe(true)
          expect(force.ratePerSecond).toBeLessThanOrEqual(pace.ratePerSecond)
          expect(force.ratePerSecond).toBeGreaterThanOrEqual(pace.ratePerSecond / 16 - 1e-12)
          expect(force.crawlDelayMs).toBeGreaterThanOrEqual(pace.crawlDelayMs)
          expect(force.burst).toBeLessThanOrEqual(pace.burst)
          if (health.trips > 0) expect(force.concurrency).toBe(1)
        }
      }),
    )
  })

  it('comes back to the whole policy once the site answers well, whatever it did before', () => {
    fc.assert(
      fc.property(policy, steps, (pace, taken) => {
        const health = newSiteHealth()
        drive(health, taken, pace.concurrency)
        // So that what is good now is not slow beside what was good then.
        const ms = Math.max(1, Math.floor(health.baselineMs))
        const good = Array.from({ length: 400 }, () => ({ answer: { kind: 'success', latencyMs: ms } as const, tookMs: 5, thenMs: 5 }))
        drive(health, good, pace.concurrency)
        expect(paceInForce(health, pace)).toEqual(pace)
        expect(health).toMatchObject({ trips: 0, openUntil: 0, failingSince: undefined })
      }),
    )
  })

  it('opens the breaker after the failures that the rules name, each time for twice as long, up to the longest', () => {
    const health = newSiteHealth()
    const forMs: number[] = []
    let now = 0
    for (let tries = 0; tries < 14; tries += 1) {
      now = Math.max(now, health.openUntil)
      const change = learn(health, { kind: 'failure', failure: 'connect', rules: RULES }, { startedAt: now, now, concurrency: 4 }, RULES)
      if (change === 'opened') forMs.push(health.openForMs)
    }
    expect(forMs).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000, 60_000, 60_000])
  })

  it('does not open it again for requests that were under way when it opened', () => {
    const health = newSiteHealth()
    const fail = (startedAt: number, now: number) =>
      learn(health, { kind: 'failure', failure: 'timeout', rules: RULES }, { startedAt, now, concurrency: 4 }, RULES)
    expect([fail(0, 10), fail(0, 10), fail(0, 10), fail(0, 20), fail(0, 5_000)]).toEqual(['none', 'none', 'opened', 'none', 'none'])
    expect(health.trips).toBe(1)
  })

  it('becomes stricter and never laxer by what another worker knew', () => {
    const known = fc.record({
      backOffMs: fc.constant(0),
      isAsked: fc.boolean(),
      allowed: fc.option(fc.constantFrom(1, 1.5, 4)),
      rateFactor: fc.constantFrom(1 / 16, 0.5, 1),
      trips: fc.nat({ max: 4 }),
      parkedMs: fc.nat({ max: 9_000 }),
    })
    fc.assert(
      fc.property(policy, steps, known, (pace, taken, other) => {
        const health = newSiteHealth()
        const now = drive(health, taken, pace.concurrency)
        const [before, openBefore] = [paceInForce(health, pace), health.openUntil]
        mergeHealth(health, other, now)
        const after = paceInForce(health, pace)
        expect(after.concurrency).toBeLessThanOrEqual(before.concurrency)
        expect(after.ratePerSecond).toBeLessThanOrEqual(before.ratePerSecond)
        expect(health.openUntil).toBeGreaterThanOrEqual(openBefore)
      }),
    )
  })
})
