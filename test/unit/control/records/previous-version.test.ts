import { describe, expect, it } from 'vitest'
import { previousVersion } from '../../../../src/control/records/stored-records.ts'

describe('the version that a new one is held against', () => {
  it.each([
    [[1, 2], 3, 2],
    [[1, 3], 2, 1],
    [[3, 4], 2, 4],
    [[1, 2], 2, 1],
    // Records of its own are no new ones.
    [[2], 2, 2],
    [[], 2, undefined],
  ])('of %j for %i is %s', (versions, version, expected) => {
    expect(previousVersion(versions, version)).toBe(expected)
  })
})
