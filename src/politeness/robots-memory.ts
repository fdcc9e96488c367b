import type { RobotsRules } from './robots.ts'

/** What one origin says, ready to be asked. */
export interface RememberedRobots {
  readonly rules: RobotsRules
  /** False: there is no file, and all is allowed. */
  readonly isPresent: boolean
  /** Epoch ms. */
  readonly fetchedAt: number
}

export interface RobotsMemoryLimits {
  readonly maxOrigins: number
  /** Of the files as they came; what is made of them takes a few times as much. */
  readonly maxBodyBytes: number
}

/** Counted for an origin beside its file. */
const ENTRY_BYTES = 512

/**
 * Rules of origins in this process, bounded by number and by size: ten thousand files of half a MiB would not fit. What was used
 * longest ago makes room; the file is then read from the store again.
 */
export class RobotsMemory {
  readonly #limits: RobotsMemoryLimits
  readonly #entries = new Map<string, { readonly robots: RememberedRobots; readonly bytes: number }>()
  #bytes = 0

  constructor(limits: RobotsMemoryLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#entries.size
  }

  get(origin: string): RememberedRobots | undefined {
    const entry = this.#entries.get(origin)
    if (entry === undefined) return undefined
    this.#entries.delete(origin)
    this.#entries.set(origin, entry)
    return entry.robots
  }

  /** The newest entry stays, however large it is. */
  set(origin: string, robots: RememberedRobots, bodyBytes: number): void {
    this.#drop(origin)
    const bytes = bodyBytes + ENTRY_BYTES
    this.#entries.set(origin, { robots, bytes })
    this.#bytes += bytes
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#limits.maxOrigins && this.#bytes <= this.#limits.maxBodyBytes) return
      if (oldest === origin) return
      this.#drop(oldest)
    }
  }

  #drop(origin: string): void {
    this.#bytes -= this.#entries.get(origin)?.bytes ?? 0
    this.#entries.delete(origin)
  }
}
