import type { ReplayPhase } from './offset-metadata.ts'

export interface TurnLimits {
  readonly replayTurnMs: number
  readonly liveTurnMs: number
}

/** Where a partition stands when it is asked whether its turn is over. */
export interface TurnPlace {
  /** Next offset to commit. */
  readonly next: bigint
  readonly nowMono: number
}

/**
 * Whose turn it is while a partition replays in place. A replay gives way after its time; live work when it has read what the log held
 * at the begin of its turn, or after its time, where more comes than it can work. So both go on, each for its share of the time: a
 * replay has a tenth of it at least. Pure: time and places are arguments.
 */
export class ReplayTurns {
  readonly #limits: TurnLimits
  #phase: ReplayPhase | undefined
  #from = 0n
  #endsMono = 0
  /** What live work reads to in its turn. */
  #liveUntil = 0n

  constructor(limits: TurnLimits) {
    this.#limits = limits
  }

  /** A turn of either begins at `from`; phase undefined: nothing is replayed, or no more. `logEnd`: what live work is to read to. */
  begin(phase: ReplayPhase | undefined, from: bigint, logEnd: bigint, nowMono: number): void {
    this.#phase = phase
    this.#from = from
    this.#liveUntil = logEnd
    this.#endsMono = nowMono + (phase === 'live' ? this.#limits.liveTurnMs : this.#limits.replayTurnMs)
  }

  /** No live page waits: the replay has another turn at once. */
  extend(nowMono: number): void {
    this.#endsMono = nowMono + this.#limits.replayTurnMs
  }

  /** Monotonic ms at which the turn of a replay is to be over; undefined where none is under way. */
  get replayEndsMono(): number | undefined {
    return this.#phase === 'replaying' ? this.#endsMono : undefined
  }

  /**
   * Whether the other one may have its turn. Both have got at least a page further then, so that neither starves; a replay that waits
   * for its rate (`isPaced`) gives way without.
   */
  isOver({ next, nowMono }: TurnPlace, isPaced: boolean): boolean {
    if (this.#phase === 'live' && next >= this.#liveUntil) return true
    if (this.#phase !== 'live' && this.#phase !== 'replaying') return false
    return nowMono >= this.#endsMono && (next > this.#from || (this.#phase === 'replaying' && isPaced))
  }
}
