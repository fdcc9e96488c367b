import { describe, expect, it } from 'vitest'
import { etaOf, type ReplayPace, type Seen } from '../../../../src/control/replay/pace.ts'
import { SeededRandom } from '../../../support/random.ts'

interface Told extends Seen {
  readonly told: number | undefined
  readonly left: number
}

const LOOK_EVERY_MS = 200

/** Time left as it was told at each look, and what it was. Shape: `steps` are pages done, with the ms when they were committed. */
function follow(steps: readonly Seen[], total: number): Told[] {
  const end = steps.at(-1)?.mono ?? 0
  let pace: ReplayPace = []
  const looks: Told[] = []
  for (let mono = 0; mono <= end + LOOK_EVERY_MS; mono += LOOK_EVERY_MS) {
    const done = steps.findLast((step) => step.mono <= mono)?.done ?? 0
    const estimate = etaOf(pace, { mono, done }, total)
    pace = estimate.pace
    looks.push({ mono, done, told: estimate.remainingMs, left: end - mono })
  }
  return looks
}

/** Commits of `size` pages, of which each takes `msOf`; the first one begins after `coldMs`. */
function commits(total: number, size: number, coldMs: number, msOf: (done: number) => number): Seen[] {
  const steps: Seen[] = []
  let mono = coldMs
  for (let done = 0; done < total; ) {
    const pages = Math.min(size, total - done)
    mono += pages * msOf(done)
    done += pages
    steps.push({ mono, done })
  }
  return steps
}

/** Largest error after the first tenth, while ten seconds are left at least. */
function worst(looks: readonly Told[], total: number): number {
  const errors = looks
    .filter(({ done, left }) => done >= total / 10 && left >= 10_000)
    .map(({ told, left }) => Math.abs((told ?? 0) - left) / left)
  expect(errors.length).toBeGreaterThan(10)
  return Math.max(...errors)
}

const random = new SeededRandom(7)

describe('the time left of a replay', () => {
  it.each<[string, number, number, (done: number) => number]>([
    ['an even pace', 20, 0, () => 10],
    ['a start that takes as long as a tenth of the work', 20, 5_000, () => 10],
    ['commits of a twentieth of it', 200, 5_000, () => 10],
    ['a cold start', 40, 3_000, (done) => (done < 100 ? 50 : 10)],
    ['a pace that wavers', 40, 3_000, (done) => (done % 120 < 60 ? 8 : 12)],
  ])('is right within 20 %% after the first tenth: %s', (_, size, coldMs, msOf) => {
    expect(worst(follow(commits(4_000, size, coldMs, msOf), 4_000), 4_000)).toBeLessThan(0.2)
  })

  it.each<[string, number, number, (done: number) => number]>([
    ['pages of any size', 64, 3_000, () => 4 + random.next() * 12],
    ['turns of live work between', 40, 3_000, (done) => (done % 400 < 40 ? 40 : 10)],
  ])('is right within a quarter after the first tenth: %s', (_, size, coldMs, msOf) => {
    expect(worst(follow(commits(4_000, size, coldMs, msOf), 4_000), 4_000)).toBeLessThan(0.25)
  })

  it('is right within a quarter at a tenth, a quarter and the half of a replay as it was', () => {
    const looks = follow(RECORDED, 3_200)
    for (const share of [0.1, 0.25, 0.5, 0.75]) {
      const { told = 0, left } = looks.find(({ done }) => done >= share * 3_200) as Told
      expect(Math.abs(told - left) / left).toBeLessThan(0.25)
    }
    expect(worst(looks, 3_200)).toBeLessThan(0.3)
  })

  it('finds a new pace when it has gone on at it for as long again', () => {
    const looks = follow(
      commits(8_000, 40, 1_000, (done) => (done < 2_000 ? 5 : 20)),
      8_000,
    )
    for (const { told = 0, left } of looks.filter(({ done, left }) => done >= 4_000 && left >= 10_000))
      expect(Math.abs(told - left) / left).toBeLessThan(0.2)
  })

  it('of one that was resumed goes by what is done since', () => {
    const rest = commits(1_000, 20, 4_000, () => 30).map(({ mono, done }) => ({ mono, done: done + 3_000 }))
    const looks = follow([{ mono: 0, done: 3_000 }, ...rest], 4_000).filter(({ done, left }) => done >= 3_100 && left >= 5_000)
    for (const { told = 0, left } of looks) expect(Math.abs(told - left) / left).toBeLessThan(0.2)
  })

  it('takes commits that come close together for one, as right after the start', () => {
    // Two processes that commit every 2.4 s, 200 ms apart: 400 pages each time.
    const steps = Array.from({ length: 10 }, (_, round) => [
      { mono: 2_600 + round * 2_400, done: round * 400 + 200 },
      { mono: 2_800 + round * 2_400, done: round * 400 + 400 },
    ]).flat()
    expect(worst(follow(steps, 4_000), 4_000)).toBeLessThan(0.25)
  })

  it('does not grow less for ever while nothing comes', () => {
    let pace: ReplayPace = []
    for (let done = 0; done <= 400; done += 100) pace = etaOf(pace, { mono: done * 10, done }, 1_000).pace
    expect([0, 500, 1_000, 60_000].map((later) => etaOf(pace, { mono: 4_000 + later, done: 400 }, 1_000).remainingMs)).toEqual([
      6_000, 5_500, 5_000, 5_000,
    ])
  })

  it('is not known before anything was done, and nothing at the end', () => {
    const looks = follow(
      commits(100, 10, 1_000, () => 10),
      100,
    )
    expect(looks[0]?.told).toBeUndefined()
    expect(looks.at(-1)?.told).toBe(0)
  })
})

/** A shadow over 3,200 pages of the corpus in one process on two cores, by what its command saw. */
const RECORDED: readonly Seen[] = (
  [
    [7181, 256],
    [9001, 512],
    [10664, 704],
    [10863, 768],
    [12263, 960],
    [12472, 1024],
    [14077, 1088],
    [14278, 1280],
    [15889, 1536],
    [17298, 1600],
    [17499, 1792],
    [18912, 1984],
    [19112, 2048],
    [20722, 2304],
    [22327, 2368],
    [22529, 2560],
    [24130, 2816],
    [25538, 2999],
    [25742, 3063],
    [26144, 3089],
    [26344, 3200],
  ] as const
).map(([mono, done]) => ({ mono, done }))
