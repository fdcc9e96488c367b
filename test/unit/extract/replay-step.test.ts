import { describe, expect, it } from 'vitest'
import {
  decodeMetadata,
  encodeMetadata,
  freshMetadata,
  NO_TOTALS,
  type OffsetMetadata,
  type ReplayPhase,
} from '../../../src/extract/offset-metadata.ts'
import { afterJump, overtaken, rewound, turned } from '../../../src/extract/replay-step.ts'

function replaying(phase: ReplayPhase, resumeAt: bigint): OffsetMetadata {
  return { ...freshMetadata(0n), replay: { replayId: 'r', phase, until: 50n, resumeAt, totals: NO_TOTALS } }
}

describe('pages that retention deleted before they were read', () => {
  it('are counted where a worker takes a partition up again behind them', () => {
    const once = overtaken(replaying('replaying', 90n), 10n, 15n)
    expect(once.replay?.gone).toEqual({ pages: 5, until: 15n })
    // Not beyond its range, and not those of live work.
    expect(overtaken(once, 20n, 70n).replay?.gone).toEqual({ pages: 35, until: 50n })
    expect(overtaken(once, 15n, 15n)).toEqual(once)
    expect(overtaken(replaying('live', 10n), 90n, 95n).replay?.gone).toBeUndefined()
    expect(overtaken(freshMetadata(0n), 9n, 9n)).toEqual(freshMetadata(0n))
  })

  it('are counted of live work too, apart from those of a replay', () => {
    expect(overtaken(freshMetadata(0n), 4n, 9n)).toEqual({ ...freshMetadata(0n), gone: { pages: 5, until: 9n } })
    expect(overtaken(replaying('done', 10n), 90n, 95n)).toMatchObject({ gone: { pages: 5, until: 95n } })
    expect(turned(replaying('replaying', 21n), 15n, 30n).metadata.gone).toEqual({ pages: 9, until: 30n })
    expect(overtaken(replaying('replaying', 90n), 10n, 15n).gone).toBeUndefined()
  })

  it('are counted in the range of a shadow', () => {
    const once = overtaken(freshMetadata(9n), 4n, 9n, 20n)
    expect(once.gone).toEqual({ pages: 5, until: 9n })
    expect(overtaken(once, 12n, 90n, 20n).gone).toEqual({ pages: 13, until: 20n })
    expect(overtaken(once, 12n, 12n, 20n)).toEqual(once)
    expect(decodeMetadata(encodeMetadata(once))).toEqual(once)
  })

  it('are counted where its turn comes again, and where it begins', () => {
    expect(turned(replaying('live', 21n), 95n, 30n)).toMatchObject({
      offset: 30n,
      metadata: { replay: { phase: 'replaying', gone: { pages: 9, until: 30n } } },
    })
    expect(turned(replaying('replaying', 21n), 15n, 30n).metadata.replay?.gone).toBeUndefined()
    const order = { replayId: 'r', from: 10n, until: 50n }
    expect(rewound(freshMetadata(0n), order, 90n, 30n).metadata.replay).toMatchObject({
      phase: 'replaying',
      gone: { pages: 20, until: 30n },
    })
    expect(rewound(freshMetadata(0n), order, 90n, 80n).metadata.replay).toMatchObject({ phase: 'done', gone: { pages: 40, until: 50n } })
    expect(rewound(freshMetadata(0n), order, 90n, 10n).metadata.replay?.gone).toBeUndefined()
  })

  it('are counted of live work where a replay has ended or was called off, and the log begins behind where that stood', () => {
    const ended = overtaken(afterJump(replaying('replaying', 90n), 50n), 90n, 95n)
    expect(ended).toMatchObject({ gone: { pages: 5, until: 95n }, replay: { phase: 'done', until: 50n } })
    expect(ended.replay?.gone).toBeUndefined()
    expect(overtaken(afterJump(replaying('live', 21n), 95n), 95n, 97n).gone).toEqual({ pages: 2, until: 97n })
  })

  it('outlive the commit', () => {
    const metadata = overtaken(replaying('replaying', 90n), 10n, 15n)
    expect(decodeMetadata(encodeMetadata(metadata))).toEqual(metadata)
    expect(decodeMetadata(encodeMetadata(replaying('live', 9n)))).toEqual(replaying('live', 9n))
  })
})

describe('the metadata after a jump', () => {
  it('says where a replay that was called off had come to', () => {
    expect(afterJump(replaying('replaying', 90n), 19n).replay).toMatchObject({ phase: 'done', until: 19n, resumeAt: 90n })
  })

  it('has the place of the replay where live work had its turn', () => {
    expect(afterJump(replaying('live', 21n), 95n).replay).toMatchObject({ phase: 'done', until: 21n })
  })

  it('keeps the end of a replay that has come to it, behind which a gap of the log may lie', () => {
    expect(afterJump(replaying('replaying', 90n), 53n).replay).toMatchObject({ phase: 'done', until: 50n })
    const done = replaying('done', 90n)
    expect(afterJump(done, 95n)).toBe(done)
    expect(afterJump(freshMetadata(3n), 95n)).toEqual(freshMetadata(3n))
  })
})
