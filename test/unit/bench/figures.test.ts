import { describe, expect, it } from 'vitest'
import { slope } from '../../bench/figures.ts'

describe('slope', () => {
  it('is that of a line through its points', () => {
    expect(slope([0, 1, 2, 5].map((x) => [x, 3 * x + 7]))).toBeCloseTo(3)
    expect(slope([0, 1, 2].map((x) => [x, 4]))).toBe(0)
  })

  it('is the line of least squares where points lie on none', () => {
    expect(
      slope([
        [0, 0],
        [1, 3],
        [2, 0],
        [3, 3],
      ]),
    ).toBeCloseTo(0.6)
  })

  it('is no number where all x are one', () => {
    expect(slope([])).toBeNaN()
    expect(
      slope([
        [2, 1],
        [2, 5],
      ]),
    ).toBeNaN()
  })
})
