import type { Clock } from '../kernel/clock.ts'

/**
 * Progress of a long command on stderr. On a terminal one line is drawn over itself, at most ten times a second; elsewhere a line is
 * written every five seconds, so that a log of a job shows that it lives. `--json` gives NDJSON, `--quiet` nothing.
 */
export interface Progress {
  update(state: ProgressState): void
  /** Removes the drawn line, so that what follows starts on a clean one. */
  finish(): void
}

export interface ProgressState {
  /** What is shown, without the bar: `412 fetched, 3 failed, 96 waiting`. */
  readonly text: string
  /** 0 to 1; undefined where the end is not known. */
  readonly ratio?: number
  /** ms that it will still take; undefined where nobody knows. */
  readonly remainingMs?: number
  /** Where it is another one than before, it is shown at once. */
  readonly phase?: string
  /** What `--json` writes. */
  readonly fields: Readonly<Record<string, unknown>>
}

export interface ProgressOptions {
  readonly write: (text: string) => void
  readonly style: 'line' | 'log' | 'json' | 'none'
  readonly clock: Clock
  readonly columns: () => number
  readonly duration: (ms: number) => string
}

const DRAW_EVERY_MS = 100
const LOG_EVERY_MS = 5000
const BAR_WIDTH = 20

export function createProgress(options: ProgressOptions): Progress {
  // What takes no longer has its result alone.
  let nextMono = options.style === 'log' ? options.clock.mono() + LOG_EVERY_MS : 0
  let drawn = false
  let phase: string | undefined
  return {
    update(state) {
      const now = options.clock.mono()
      if (options.style === 'none' || (now < nextMono && state.phase === phase)) return
      phase = state.phase
      nextMono = now + (options.style === 'line' ? DRAW_EVERY_MS : LOG_EVERY_MS)
      if (options.style === 'json') {
        options.write(`${JSON.stringify({ progress: state.fields })}\n`)
        return
      }
      const line = progressLine(state, options.duration)
      if (options.style === 'log') {
        options.write(`${line}\n`)
        return
      }
      const width = Math.max(20, options.columns() - 1)
      options.write(`\r\x1b[2K${[...line].slice(0, width).join('')}`)
      drawn = true
    },
    finish() {
      if (drawn) options.write('\r\x1b[2K')
      drawn = false
    },
  }
}

/** The line itself. Pure. */
export function progressLine(state: ProgressState, duration: (ms: number) => string): string {
  const parts: string[] = []
  if (state.ratio !== undefined) {
    const ratio = Math.min(1, Math.max(0, state.ratio))
    const filled = Math.round(ratio * BAR_WIDTH)
    parts.push(`[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}] ${Math.floor(ratio * 100)}%`)
  }
  parts.push(state.text)
  if (state.remainingMs !== undefined) parts.push(`about ${duration(state.remainingMs)} left`)
  return parts.join('  ')
}
