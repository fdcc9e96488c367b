/** Requests are counted over this long, in pieces. */
const PIECE_MS = 3_000
const PIECES = 10
/** Fewer requests than these say nothing. */
const LEAST_STARTS = 50
/** Share of retries among all requests from which they dominate, and the one at which that is over. */
const DOMINATE = 0.5
const OVER = 0.3

interface Piece {
  /** Number of the piece since the clock began. */
  readonly index: number
  starts: number
  retries: number
}

/**
 * Do retries dominate? Then most requests repeat what failed before, and what is wanted least should not take a place from what is
 * wanted more. Pure: time is an argument. Units: monotonic ms.
 */
export class RetryPressure {
  #pieces: Piece[] = []
  #dominates = false

  get dominates(): boolean {
    return this.#dominates
  }

  /** Share of retries among the requests of the last 30 s; 0 where there were none. */
  share(now: number): number {
    this.#forget(now)
    const starts = this.#pieces.reduce((sum, piece) => sum + piece.starts, 0)
    return starts === 0 ? 0 : this.#pieces.reduce((sum, piece) => sum + piece.retries, 0) / starts
  }

  /** A request starts. Shape: true where `dominates` has changed. */
  started(attempt: number, now: number): boolean {
    this.#forget(now)
    const index = Math.floor(now / PIECE_MS)
    let piece = this.#pieces.at(-1)
    if (piece?.index !== index) {
      piece = { index, starts: 0, retries: 0 }
      this.#pieces.push(piece)
    }
    piece.starts += 1
    if (attempt > 1) piece.retries += 1
    return this.#decide(now)
  }

  #decide(now: number): boolean {
    const before = this.#dominates
    const starts = this.#pieces.reduce((sum, { starts: count }) => sum + count, 0)
    // So few that nothing is known is no domination either: what was held back has to be tried again some time.
    this.#dominates = starts >= LEAST_STARTS && this.share(now) > (before ? OVER : DOMINATE)
    return this.#dominates !== before
  }

  #forget(now: number): void {
    const oldest = Math.floor(now / PIECE_MS) - PIECES
    while ((this.#pieces[0]?.index ?? Number.POSITIVE_INFINITY) <= oldest) this.#pieces.shift()
  }
}
