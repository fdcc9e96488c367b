import { describe, expect, it } from 'vitest'
import { ReplayTurns } from '../../../src/extract/replay-turns.ts'

const LIMITS = { replayTurnMs: 3_000, liveTurnMs: 27_000 }

describe('turns of a partition that replays', () => {
  it('are over for a replay after its time, once it has got further', () => {
    const turns = new ReplayTurns(LIMITS)
    turns.begin('replaying', 10n, 100n, 1_000)
    expect(turns.replayEndsMono).toBe(4_000)
    expect(turns.isOver({ next: 50n, nowMono: 3_999 }, false)).toBe(false)
    expect(turns.isOver({ next: 10n, nowMono: 60_000 }, false)).toBe(false)
    expect(turns.isOver({ next: 11n, nowMono: 4_000 }, false)).toBe(true)
    turns.extend(4_000)
    expect(turns.isOver({ next: 11n, nowMono: 6_999 }, false)).toBe(false)
  })

  it('are over for a replay that waits for its rate although it has got no further', () => {
    const turns = new ReplayTurns(LIMITS)
    turns.begin('replaying', 10n, 100n, 0)
    expect(turns.isOver({ next: 10n, nowMono: 3_000 }, true)).toBe(true)
  })

  it('are over for live work at what the log held when its turn began, or after its time', () => {
    const turns = new ReplayTurns(LIMITS)
    turns.begin('live', 100n, 200n, 0)
    expect(turns.replayEndsMono).toBeUndefined()
    expect(turns.isOver({ next: 199n, nowMono: 26_999 }, false)).toBe(false)
    expect(turns.isOver({ next: 200n, nowMono: 1 }, false)).toBe(true)
    expect(turns.isOver({ next: 100n, nowMono: 90_000 }, false)).toBe(false)
    expect(turns.isOver({ next: 101n, nowMono: 27_000 }, false)).toBe(true)
  })

  it.each(['done', undefined] as const)('never end where nothing is replayed (%s)', (phase) => {
    const turns = new ReplayTurns(LIMITS)
    turns.begin(phase, 0n, 10n, 0)
    expect([turns.replayEndsMono, turns.isOver({ next: 10n, nowMono: 1_000_000 }, true)]).toEqual([undefined, false])
  })
})
