import type { AnswerReport, KnownHealth, LimiterKey } from '../state-store.ts'

// What the limiter scripts take and give, in their order (scripts/limiter.ts).

/** Four per key. */
export function policyArguments(keys: readonly LimiterKey[]): number[] {
  return keys.flatMap(({ ratePerSecond, burst, concurrency, crawlDelayMs }) => [ratePerSecond, burst, concurrency, crawlDelayMs])
}

/** Twelve; what is not said is empty. */
export function reportArguments(report: AnswerReport | undefined): (string | number)[] {
  if (report === undefined) return ['', '', '', '', '', '', '', '', '', '', 0, 0]
  const { kind, failure, latencyMs, backOffMs, isAsked, sentLateMs, endedAgoMs, resetAt, rules } = report
  const { isAdaptive, breakerFailures, firstParkMs, maxParkMs } = rules
  const said = [kind, failure ?? '', latencyMs ?? '', backOffMs ?? '', isAsked === true ? 1 : 0, sentLateMs ?? '']
  return [...said, isAdaptive ? 1 : 0, breakerFailures, firstParkMs, maxParkMs, resetAt ?? 0, endedAgoMs ?? 0]
}

/** As `known` of the scripts tells it. */
export function knownHealth([backOffMs, isAsked, allowed, rateFactor, trips, parkedMs]: readonly (string | number)[]): KnownHealth {
  return {
    backOffMs: Number(backOffMs),
    isAsked: Number(isAsked) === 1,
    allowed: Number(allowed) < 0 ? null : Number(allowed),
    rateFactor: Number(rateFactor),
    trips: Number(trips),
    parkedMs: Number(parkedMs),
  }
}
