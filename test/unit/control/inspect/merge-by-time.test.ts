import { expect, it } from 'vitest'
import { mergeByTime } from '../../../../src/control/inspect/merge-by-time.ts'

it.each<[string, readonly (readonly number[])[], readonly number[]]>([
  ['nothing', [], []],
  ['one list as it is', [[5, 2, 9]], [5, 2, 9]],
  [
    'two by their times',
    [
      [1, 4],
      [2, 3, 5],
    ],
    [1, 2, 3, 4, 5],
  ],
  ['a list whose clocks differ in its own order', [[1, 7, 6], [5]], [1, 5, 7, 6]],
])('merges %s', (_, lists, merged) => {
  expect(mergeByTime(lists, (time) => time)).toEqual(merged)
})

it('takes the earlier list first where two entries are as old', () => {
  const lists = [[{ at: 1, from: 'a' }], [{ at: 1, from: 'b' }]]
  expect(mergeByTime(lists, ({ at }) => at).map(({ from }) => from)).toEqual(['a', 'b'])
})
