import { expect, it } from 'vitest'
import { durationText } from '../../../src/kernel/duration-text.ts'

it.each([
  [0, '0ms'],
  [999, '999ms'],
  [1500, '1.5s'],
  [9990, '10.0s'],
  [59_400, '59s'],
  [59_600, '1m 0s'],
  [95_000, '1m 35s'],
  [3_600_000, '1h 0m'],
  [90_000_000, '1d 1h'],
])('%s ms are %s', (ms, text) => expect(durationText(ms)).toBe(text))
