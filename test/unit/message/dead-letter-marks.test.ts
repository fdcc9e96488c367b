import { describe, expect, it } from 'vitest'
import { newCommand, subject } from '../../../src/message/command.ts'
import { offsetRanges, ResolvedLetters } from '../../../src/message/dead-letter-marks.ts'
import type { Command } from '../../../src/message/generated/types.ts'

const clock = { now: () => 1_000 }

function mark(payload: unknown): Command {
  return newCommand({ clock, kind: 'set', subject: subject.deadLetters('m'), payload, by: 'a test' })
}

function resolved(...payloads: unknown[]): ResolvedLetters {
  const letters = new ResolvedLetters()
  for (const payload of payloads) letters.add(mark(payload))
  return letters
}

const at = (partition: number, offset: bigint, timestamp = 500) => ({ partition, offset, timestamp })

describe('ranges of offsets', () => {
  it.each([
    [[], ''],
    [[5n], '5'],
    [[3n, 1n, 2n, 2n], '1-3'],
    [[9n, 1n, 2n, 7n, 8n, 4n], '1-2,4,7-9'],
    [[9_007_199_254_740_993n, 9_007_199_254_740_992n], '9007199254740992-9007199254740993'],
  ])('of %s are %s', (offsets, text) => {
    expect(offsetRanges(offsets)).toBe(text)
  })
})

describe('dead letters that are dealt with', () => {
  it('are those that a mark names, of its partition, with what was done and when', () => {
    const letters = resolved(
      { action: 'requeued', partition: 1, offsets: '3-5,9', newestMs: 500 },
      { action: 'dropped', partition: 1, offsets: '7', newestMs: 500 },
    )
    const actions = [2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n, 10n].map((offset) => letters.get(at(1, offset))?.action)
    expect(actions).toEqual([undefined, 'requeued', 'requeued', 'requeued', undefined, 'dropped', undefined, 'requeued', undefined])
    expect(letters.get(at(0, 3n))).toBeUndefined()
    expect(letters.get(at(1, 9n))).toEqual({ action: 'requeued', at: 1_000 })
  })

  it('are not those of a topic that was made anew, whose letters are later', () => {
    const letters = resolved({ action: 'dropped', partition: 0, offsets: '0-100', newestMs: 500 })
    expect(letters.get(at(0, 50n, 501))).toBeUndefined()
    letters.add(mark({ action: 'requeued', partition: 0, offsets: '50', newestMs: 600 }))
    expect(letters.get(at(0, 50n, 501))?.action).toBe('requeued')
    expect(letters.get(at(0, 49n, 400))?.action).toBe('dropped')
  })

  it('are found behind many marks that do not hold them', () => {
    const letters = resolved({ action: 'dropped', partition: 0, offsets: '0-5000', newestMs: 100 })
    for (let offset = 1; offset < 2_000; offset += 2)
      letters.add(mark({ action: 'requeued', partition: 0, offsets: String(offset), newestMs: 500 }))
    expect(letters.get(at(0, 1_998n, 50))?.action).toBe('dropped')
    expect(letters.get(at(0, 1_999n))?.action).toBe('requeued')
    expect(letters.get(at(0, 1_998n))).toBeUndefined()
  })

  it.each([
    null,
    'text',
    {},
    { action: 'forgotten', partition: 0, offsets: '1', newestMs: 500 },
    { action: 'dropped', partition: '0', offsets: '1', newestMs: 500 },
    { action: 'dropped', partition: 0, offsets: 1, newestMs: 500 },
    { action: 'dropped', partition: 0, offsets: '-1,x,1-', newestMs: 500 },
  ])('are none where the mark is %j', (payload) => {
    expect(resolved(payload).get(at(0, 1n))).toBeUndefined()
  })

  it('are none where the payload is no JSON', () => {
    const letters = new ResolvedLetters()
    letters.add({ ...mark(null), payload: '{' })
    expect(letters.get(at(0, 1n))).toBeUndefined()
  })
})
