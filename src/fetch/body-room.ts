import type { PolitenessKey } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'

/** A body that is being received, and has had more than was expected. */
export interface ComingBody {
  readonly key: PolitenessKey
  /** What it has had. */
  readonly bytes: number
  /** Ends its request; undefined once it is all there and about to be unpacked. */
  readonly giveUp: (() => void) | undefined
}

export interface BodyRoomOptions {
  /** As many bytes are in memory as may be. */
  readonly isFull: () => boolean
  /** As many as may be. */
  readonly maxBytes: number
  readonly clock: Clock
}

/** So many bodies are read on however full it is, or none would ever end; where several sites want them, a site has one. */
const READ_ON = 4
/** Share of the room that the bodies of one site take while others have some to receive, or its slow ones would leave them none. */
const SITE_SHARE = 0.5
/** While it is full, a body that brings less than this between two looks is given up: nothing else starts before it is gone. */
const LOOK_MS = 5_000
const LEAST_BYTES = 81_920
/** Two looks that are further apart: this process stood still, and nothing could come. */
const STOOD_STILL_MS = 2 * LOOK_MS
/** Share of the room that is made at once. */
const ROOM_MADE = 0.25

/**
 * Room for the bodies that are being received. What a body will bring nobody knows before it is there: when the bound on bytes in memory is
 * reached, those that have had more than was expected stop where they are, and their servers wait, until others are done. So do those of a
 * site that has its share, where another one has bodies to receive as well. What is read on and hardly comes is given up then, the largest
 * first, for as long as it stays full.
 */
export class BodyRoom {
  readonly #options: BodyRoomOptions
  /** With what each had at the last look; undefined where it came after that, or waited since. */
  readonly #coming = new Map<ComingBody, number | undefined>()
  readonly #readOn = new Set<ComingBody>()
  readonly #waiting = new Map<ComingBody, () => void>()
  #lookedMono = 0
  #disarm: (() => void) | undefined

  constructor(options: BodyRoomOptions) {
    this.#options = options
  }

  /** For one that has had more than was expected. Shape: undefined where it goes on at once. */
  wait(body: ComingBody): Promise<void> | undefined {
    if (!this.#coming.has(body)) this.#coming.set(body, undefined)
    this.#watch()
    if (this.#mayReadOn(body)) return undefined
    // It is us who keep it waiting: what it brings counts anew when it goes on.
    this.#coming.set(body, undefined)
    return new Promise((resolve) => this.#waiting.set(body, resolve))
  }

  /** It is there, or will not come: the first that waits goes on, and the others for as long as there is room. */
  leave(body: ComingBody): void {
    this.#waiting.get(body)?.()
    this.#waiting.delete(body)
    this.#readOn.delete(body)
    this.#coming.delete(body)
    for (const [next, goOn] of this.#waiting) {
      if (!this.#mayReadOn(next)) continue
      this.#waiting.delete(next)
      goOn()
    }
    this.#watch()
  }

  close(): void {
    this.#disarm?.()
    this.#disarm = undefined
  }

  #mayReadOn(body: ComingBody): boolean {
    if (this.#readOn.has(body)) return true
    const { isFull, maxBytes } = this.#options
    const { bytes, hasOthers } = this.#site(body.key)
    if (!isFull() && (!hasOthers || bytes < maxBytes * SITE_SHARE)) return true
    if (this.#readOn.size >= READ_ON) return false
    if (hasOthers) for (const { key } of this.#readOn) if (key === body.key) return false
    this.#readOn.add(body)
    return true
  }

  /** What the bodies of a site have had, and whether those of another are coming too. */
  #site(key: PolitenessKey): { readonly bytes: number; readonly hasOthers: boolean } {
    let bytes = 0
    let hasOthers = false
    for (const body of this.#coming.keys()) {
      if (body.key === key) bytes += body.bytes
      else hasOthers = true
    }
    return { bytes, hasOthers }
  }

  /** Looks again and again while it is full. */
  #watch(): void {
    if (this.#disarm !== undefined || this.#coming.size === 0 || !this.#options.isFull()) return
    this.#noteBytes()
    this.#disarm = this.#options.clock.timer(LOOK_MS, () => {
      this.#disarm = undefined
      if (this.#options.isFull()) this.#giveUpSlow()
      this.#watch()
    })
  }

  #noteBytes(): void {
    this.#lookedMono = this.#options.clock.mono()
    for (const body of this.#coming.keys()) this.#coming.set(body, this.#waiting.has(body) ? undefined : body.bytes)
  }

  #giveUpSlow(): void {
    if (this.#options.clock.mono() - this.#lookedMono > STOOD_STILL_MS) return
    const isSlow = ([{ bytes }, before]: [ComingBody, number | undefined]): boolean => before !== undefined && bytes - before < LEAST_BYTES
    const slow = [...this.#coming].filter(isSlow).map(([body]) => body)
    let bytesMade = 0
    for (const { bytes, giveUp } of slow.toSorted((a, b) => b.bytes - a.bytes)) {
      if (bytesMade >= this.#options.maxBytes * ROOM_MADE) return
      if (giveUp === undefined) continue
      giveUp()
      bytesMade += bytes
    }
  }
}
