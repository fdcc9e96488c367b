import { describe, expect, it } from 'vitest'
import { AttemptsUnderWay } from '../../../src/fetch/attempts-under-way.ts'
import type { WindowEntry } from '../../../src/kafka/window-entry.ts'

const ATTEMPT = { taskId: 'a', attempt: 1 }
const entry = (isCurrent = true): WindowEntry => ({ isCurrent: () => isCurrent }) as unknown as WindowEntry

describe('copies of an attempt that is put aside', () => {
  it('are repeats where they came before its own copy was written, and have their turn where they came later', () => {
    const underWay = new AttemptsUnderWay()
    const [first, before, after] = [entry(), entry(), entry()]
    expect(underWay.begin(first, ATTEMPT)).toBe(true)
    expect(underWay.holdsBack(before, ATTEMPT)).toBe(true)
    underWay.leaves(first, ATTEMPT)
    expect(underWay.begin(after, ATTEMPT)).toBe(false)
    expect(underWay.end(first, ATTEMPT)).toEqual({ repeats: [before], open: [after] })
    expect(underWay.begin(after, ATTEMPT)).toBe(true)
  })

  it('are given back once, and the copy that is under way by then is nobody else’s to end', () => {
    const underWay = new AttemptsUnderWay()
    const [first, copy, third] = [entry(), entry(), entry()]
    underWay.begin(first, ATTEMPT)
    underWay.leaves(first, ATTEMPT)
    underWay.end(first, ATTEMPT)
    underWay.begin(copy, ATTEMPT)
    underWay.holdsBack(third, ATTEMPT)
    underWay.leaves(first, ATTEMPT)
    expect(underWay.end(first, ATTEMPT)).toEqual({ repeats: [], open: [] })
    expect(underWay.end(copy, ATTEMPT)).toEqual({ repeats: [], open: [third] })
  })

  it('are forgotten where their partition went away meanwhile', () => {
    const underWay = new AttemptsUnderWay()
    const [first, gone, copy] = [entry(), entry(false), entry()]
    underWay.begin(first, ATTEMPT)
    underWay.holdsBack(gone, ATTEMPT)
    underWay.holdsBack(copy, ATTEMPT)
    expect(underWay.end(first, ATTEMPT).open).toEqual([copy])
  })
})
