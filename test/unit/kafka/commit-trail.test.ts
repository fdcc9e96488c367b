import { describe, expect, it } from 'vitest'
import { type CommitStep, CommitTrail } from '../../../src/kafka/commit-trail.ts'

function step(from: number, to: number): CommitStep {
  const at = (offset: number) => ({ offset: BigInt(offset), metadata: `at ${offset}` })
  return { before: at(from), ...at(to), messages: [{ topic: 'out', partition: 0, offset: BigInt(to) }] }
}
const held = { offset: 5n, metadata: 'at 5' }

describe('the trail of commits', () => {
  it('leads over what has happened, and no further', async () => {
    const trail = new CommitTrail()
    for (const each of [step(3, 5), step(5, 6), step(6, 7)]) trail.add('id', each)
    expect(await trail.follow('id', held, async ({ offset }) => offset === 6n)).toEqual({ offset: 6n, metadata: 'at 6' })
    expect(await trail.follow('other', held, async () => true)).toBe(held)
  })

  it('keeps the step that is needed, however many fail after it', async () => {
    const trail = new CommitTrail()
    const happened = step(5, 6)
    trail.add('id', happened)
    for (let failed = 0; failed < 10; failed += 1) {
      expect(await trail.follow('id', held, async (each) => each === happened)).toMatchObject({ offset: 6n })
      trail.add('id', step(6, 7))
    }
    expect(await trail.follow('id', held, async (each) => each === happened)).toMatchObject({ offset: 6n })
  })

  it('keeps a step of which nobody knows, and those that came while it asked', async () => {
    const trail = new CommitTrail()
    const [unknown, late] = [step(5, 6), step(6, 7)]
    trail.add('id', unknown)
    const asking = trail.follow('id', held, async () => {
      trail.add('id', late)
      return undefined
    })
    expect(await asking).toBe(held)
    expect(trail.of('id')).toEqual([unknown, late])
  })
})
