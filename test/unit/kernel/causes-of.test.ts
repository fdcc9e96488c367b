import { expect, it } from 'vitest'
import { causesOf } from '../../../src/kernel/errors.ts'

const texts = (error: unknown): unknown[] => [...causesOf(error)].map((each) => (each instanceof Error ? each.message : each))

it('is what was thrown, then what lies below it, down to the first', () => {
  expect(texts(new Error('a', { cause: new Error('b', { cause: 'c' }) }))).toEqual(['a', 'b', 'c'])
  expect(texts('a')).toEqual(['a'])
  expect(texts(undefined)).toEqual([])
  expect(texts(null)).toEqual([])
})

it('goes by the first error of an aggregate, where that has no cause, be it of a library or of the language', () => {
  const tried = new AggregateError([new Error('b', { cause: new Error('c') }), new Error('d')], 'a')
  expect(texts(tried)).toEqual(['a', 'b', 'c'])
  expect(texts(Object.assign(new Error('e'), { errors: [new Error('f')] }))).toEqual(['e', 'f'])
  expect(texts(new AggregateError([new Error('b')], 'a', { cause: new Error('c') }))).toEqual(['a', 'c'])
})

it('ends with a cause that comes around again, and with one that is wrapped without end', () => {
  const round: Error & { cause?: unknown } = new Error('a')
  round.cause = new Error('b', { cause: round })
  expect(texts(round)).toEqual(['a', 'b'])
  const endless = (): object => ({
    get cause(): object {
      return endless()
    },
  })
  expect(texts(endless())).toHaveLength(16)
})
