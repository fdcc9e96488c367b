import { describe, expect, it } from 'vitest'
import { freshMetadata, NO_TOTALS, type OffsetMetadata, type ReplayPhase } from '../../../src/extract/offset-metadata.ts'
import { afterJump } from '../../../src/extract/replay-step.ts'

function replaying(phase: ReplayPhase, resumeAt: bigint): OffsetMetadata {
  return { ...freshMetadata(0n), replay: { replayId: 'r', phase, until: 50n, resumeAt, totals: NO_TOTALS } }
}

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
