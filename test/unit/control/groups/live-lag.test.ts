import { describe, expect, it } from 'vitest'
import { isReplaying, liveLag } from '../../../../src/control/groups/live-lag.ts'
import { encodeMetadata, freshMetadata, NO_TOTALS, type ReplayPhase } from '../../../../src/extract/offset-metadata.ts'

const at = (phase: ReplayPhase | undefined, committed: bigint, resumeAt: bigint) => ({
  topic: 'html',
  partition: 0,
  committed,
  metadata: encodeMetadata({
    ...freshMetadata(0n),
    replay: phase === undefined ? undefined : { replayId: 'r', phase, until: 90n, resumeAt, totals: NO_TOTALS },
  }),
  low: 5n,
  end: 100n,
  lag: 100n - committed,
})

describe('the lag of live work', () => {
  it('is counted from where that stands, while a replay is at work and while live pages have their turn', () => {
    const lags = [at('replaying', 10n, 95n), at('live', 95n, 10n), at('done', 97n, 95n), at(undefined, 96n, 0n)]
    expect(liveLag(lags).map(({ committed, lag }) => [committed, lag])).toEqual([
      [95n, 5n],
      [95n, 5n],
      [97n, 3n],
      [96n, 4n],
    ])
    expect(lags.map(isReplaying)).toEqual([true, true, false, false])
  })

  it('is what it was where the metadata is not ours, or nothing is committed', () => {
    const foreign = { ...at(undefined, 10n, 0n), metadata: 'w1:5:dabc' }
    const none = { ...foreign, committed: undefined, metadata: '', lag: 95n }
    expect(liveLag([foreign, none])).toEqual([foreign, none])
    expect([foreign, none].map(isReplaying)).toEqual([false, false])
  })
})
