import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chooseDelay } from '../../../src/kafka/delay-choice.ts'
import { topicNames } from '../../../src/message/topics.ts'

const { delays } = topicNames('p.')

describe('the choice of a delay topic', () => {
  it.each([
    [-5, '10s'],
    [0, '10s'],
    [9_999, '10s'],
    [10_000, '10s'],
    [59_999, '10s'],
    [60_000, '1m'],
    [599_999, '1m'],
    [600_000, '10m'],
    [3_600_000, '1h'],
    [864_000_000, '1h'],
  ])('for %d ms is %s', (leftMs, name) => {
    expect(chooseDelay(delays, leftMs).topic).toBe(`p.urls.delay.${name}`)
  })

  it('never holds a task past its time, and brings any wait down to the shortest topic', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 30 * 86_400_000 }), (waitMs) => {
        let left = waitMs
        let hops = 0
        for (let delayMs = chooseDelay(delays, left).delayMs; delayMs > 10_000; { delayMs } = chooseDelay(delays, left)) {
          if (delayMs > left) throw new Error(`${left} ms are left, and the topic holds for ${delayMs} ms`)
          left -= delayMs
          hops += 1
        }
        expect(left).toBeLessThan(60_000)
        expect(hops).toBeLessThan(waitMs / 3_600_000 + 15)
      }),
    )
  })
})
