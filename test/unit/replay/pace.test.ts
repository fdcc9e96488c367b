import { describe, expect, it } from 'vitest'
import { etaOf, type ReplayPace } from '../../../src/replay/pace.ts'

/** Time left as it was told at each look, and what it was. `paceAt` gives pages per look. */
function run(total: number, paceAt: (done: number) => number): { done: number; told: number | undefined; left: number }[] {
  const looks: { mono: number; done: number }[] = []
  for (let mono = 0, done = 0; ; mono += 500, done = Math.min(total, done + paceAt(done))) {
    looks.push({ mono, done })
    if (done >= total) break
  }
  const end = looks.at(-1)?.mono ?? 0
  let pace: ReplayPace = []
  return looks.map((look) => {
    const estimate = etaOf(pace, look, total)
    pace = estimate.pace
    return { done: look.done, told: estimate.remainingMs, left: end - look.mono }
  })
}

describe('the time left of a replay', () => {
  it.each([
    ['an even pace', () => 10],
    ['a cold start', (done: number) => (done < 100 ? 4 : 20)],
    ['a pace that wavers', (done: number) => (done % 60 < 30 ? 8 : 12)],
  ])('is right within 20 %% after the first tenth: %s', (_, paceAt) => {
    for (const { done, told, left } of run(4000, paceAt)) {
      if (done < 400 || left < 10_000) continue
      expect(Math.abs((told ?? 0) - left) / left).toBeLessThan(0.2)
    }
  })

  it('is not known before anything was done, and nothing at the end', () => {
    const looks = run(100, () => 10)
    expect(looks[0]?.told).toBeUndefined()
    expect(looks.at(-1)?.told).toBe(0)
  })
})
