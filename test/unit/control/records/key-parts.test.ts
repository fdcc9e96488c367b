import { expect, it } from 'vitest'
import { keyParts } from '../../../../src/control/records/key-parts.ts'

it('parts of keys hold every key once, none of them much more than its share', () => {
  const keys = Array.from({ length: 10_000 }, (_, index) => `book/${index}`)
  const parts = keyParts(10_000, 1_500)
  expect(parts).toHaveLength(7)
  expect(keys.filter((key) => parts.filter((isOwn) => isOwn(key)).length !== 1)).toEqual([])
  const sizes = parts.map((isOwn) => keys.filter(isOwn).length)
  expect(Math.max(...sizes)).toBeLessThan(1_700)
  // Of a short log there is one, of an empty one too.
  expect([keyParts(0, 10).length, keyParts(10, 10).length, keyParts(11, 10).length]).toEqual([1, 1, 2])
})
