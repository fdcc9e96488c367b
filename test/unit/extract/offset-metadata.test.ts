import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeMetadata, encodeMetadata, freshMetadata, NO_TOTALS, type OffsetMetadata } from '../../../src/extract/offset-metadata.ts'

const totals = fc.record({ pages: fc.nat(), records: fc.nat(), none: fc.nat(), deadLetters: fc.nat() })
const offset = fc.bigInt({ min: 0n, max: 2n ** 62n })
const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/)
const metadata: fc.Arbitrary<OffsetMetadata> = fc.record({
  since: offset,
  totals: fc.record({ noMatch: fc.nat(), extractors: fc.dictionary(name, totals, { maxKeys: 20, noNullPrototype: true }) }),
  replay: fc.option(
    fc.record({
      replayId: fc.uuid(),
      phase: fc.constantFrom('replaying' as const, 'live' as const, 'done' as const),
      until: offset,
      resumeAt: offset,
      totals,
    }),
    { nil: undefined },
  ),
})

describe('the metadata of an extract offset', () => {
  it('reads back what was written', () => {
    fc.assert(
      fc.property(metadata, (value) => {
        expect(decodeMetadata(encodeMetadata(value))).toEqual(value)
      }),
    )
  })

  it('takes nothing that is not ours', () => {
    for (const text of [
      '',
      'w1:5:dabc',
      'x1:',
      'x1:{',
      'x1:null',
      'x1:{"s":"1"}',
      'x1:{"s":"1","n":0,"t":{"a":[1]}}',
      'x1:{"s":"1","n":0,"t":{},"r":[]}',
      'x1:{"s":"1","n":0,"t":{},"r":["r",3,"5","9",[0,0,0,0]]}',
    ]) {
      expect(decodeMetadata(text)).toBeUndefined()
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(() => decodeMetadata(`x1:${text}`)).not.toThrow()
      }),
    )
  })

  it('keeps the state of a replay and drops the totals where both do not fit', () => {
    const extractors = Object.fromEntries(
      Array.from({ length: 300 }, (_, index) => [`extractor-${index}`, { ...NO_TOTALS, pages: 123_456 }]),
    )
    const replay = { replayId: 'r', phase: 'replaying' as const, until: 5n, resumeAt: 9n, totals: NO_TOTALS }
    const text = encodeMetadata({ ...freshMetadata(3n), totals: { noMatch: 1, extractors }, replay })
    expect(text.length).toBeLessThan(4096)
    expect(decodeMetadata(text)?.replay).toEqual(replay)
    expect(decodeMetadata(text)?.since).toBe(-1n)
  })
})
