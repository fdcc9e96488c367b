import { expect, it } from 'vitest'
import { grouped } from '../../../src/kernel/grouped.ts'

it('those of one key are together, and all in their order', () => {
  const words = ['pear', 'fig', 'plum', 'date', 'fig']
  expect([...grouped(words, (word) => word[0])]).toEqual([
    ['p', ['pear', 'plum']],
    ['f', ['fig', 'fig']],
    ['d', ['date']],
  ])
})
