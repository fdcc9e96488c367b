import { describe, expect, it } from 'vitest'
import { CrawlEnd } from '../../../../src/control/crawls/crawl-end.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { encodeMetadata, freshMetadata, NO_TOTALS, type ReplayPhase } from '../../../../src/extract/offset-metadata.ts'
import { type ErrorCode, MillraceError } from '../../../../src/kernel/errors.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

/** A crawl whose counts the store tells, and whose readers have nothing to read. */
function rig(
  counts: () => { accepted: number; final: number },
  lags: (group: string) => readonly unknown[] = () => [],
  htmlEnd = new Map<number, bigint>(),
) {
  const seen = recordingObserver()
  const away: { code?: ErrorCode } = {}
  const answer = async <T>(value: T): Promise<T> => {
    if (away.code !== undefined) throw new MillraceError(away.code, 'away')
    return value
  }
  const runtime = {
    clock: new ManualClock(),
    observer: seen.observer,
    topics: { html: 'html', urls: {}, delays: [] },
    groups: { frontier: 'frontier', extract: () => 'extract' },
    config: { 'extract.groups': {} },
    admin: { endOffsets: () => answer(htmlEnd), lag: (group: string) => answer(lags(group)) },
    state: async () => ({ crawlCounts: () => answer(counts()) }),
  } as unknown as Runtime
  return { end: new CrawlEnd(runtime, { crawlId: 'c', maxWaitMs: 0 }), away, seen }
}

describe('the end of a crawl', () => {
  it('has come when every task that was accepted is final', async () => {
    const counts = { accepted: 2, final: 1 }
    const { end } = rig(() => counts)
    expect(await end.check()).toEqual({ kind: 'running', accepted: 2, final: 1 })
    counts.final = 2
    expect(await end.check()).toEqual({ kind: 'ended' })
  })

  it.each<ErrorCode>(['KAFKA_UNREACHABLE', 'STATE_UNAVAILABLE', 'REGISTRY_UNREACHABLE', 'KAFKA_REQUEST_FAILED'])(
    'has not come while it can not be looked at, says why, and is looked at again: %s',
    async (code) => {
      const counts = { accepted: 2, final: 1 }
      const { end, away, seen } = rig(() => counts)
      await end.check()
      away.code = code
      expect(await end.check()).toEqual({ kind: 'running', accepted: 2, final: 1, away: 'away' })
      expect(seen.count('ReadRetried', { reason: code })).toBe(1)
      counts.final = 2
      delete away.code
      expect(await end.check()).toEqual({ kind: 'ended' })
    },
  )

  it('has not come while a replay in place has work left, though live work has read all', async () => {
    let phase: ReplayPhase = 'live'
    const { end } = rig(
      () => ({ accepted: 2, final: 2 }),
      () => [
        {
          partition: 0,
          committed: 100n,
          low: 0n,
          metadata: encodeMetadata({
            ...freshMetadata(0n),
            replay: { replayId: 'r', phase, until: 90n, resumeAt: 10n, totals: NO_TOTALS },
          }),
        },
      ],
    )
    const unread = { extract: 0, frontier: 0, isReplaying: true }
    expect(await end.check()).toEqual({ kind: 'running', accepted: 2, final: 2, unread })
    phase = 'done'
    expect(await end.check()).toEqual({ kind: 'ended' })
  })

  it('has not come while pages are unread, and says how many each reader has before it', async () => {
    const committed: Record<string, bigint | undefined> = { frontier: 9n, extract: undefined }
    const { end } = rig(
      () => ({ accepted: 5, final: 5 }),
      (group) => [
        { partition: 0, committed: committed[group], low: 3n, end: 12n, lag: 0n, metadata: '' },
        { partition: 1, committed: undefined, low: 4n, end: 4n, lag: 0n, metadata: '' },
      ],
      new Map([
        [0, 10n],
        [1, 4n],
      ]),
    )
    expect(await end.check()).toEqual({
      kind: 'running',
      accepted: 5,
      final: 5,
      unread: { extract: 7, frontier: 1, isReplaying: false },
    })
    committed.frontier = 10n
    committed.extract = 8n
    expect(await end.check()).toMatchObject({ unread: { extract: 2, frontier: 0 } })
    committed.extract = 10n
    expect(await end.check()).toEqual({ kind: 'ended' })
  })

  it('is not waited for where the store is broken', async () => {
    const { end, away } = rig(() => ({ accepted: 1, final: 0 }))
    away.code = 'STATE_BROKEN'
    await expect(end.check()).rejects.toMatchObject({ code: 'STATE_BROKEN' })
  })
})
