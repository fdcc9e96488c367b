/** What was seen of a replay, oldest first; thinned as it grows. */
export type ReplayPace = readonly Seen[]

export interface Seen {
  /** Monotonic ms. */
  readonly mono: number
  /** Pages. */
  readonly done: number
}

const KEPT = 200
/** Of what is done, what is too old to tell the pace. */
const OLDER_SHARE = 0.5
/** Of the usual time between two steps: what came closer together than that, as from two processes, is one step and no pace. */
const CLOSE_SHARE = 0.25

/**
 * Time left, by the pace of the later half of what is done: a replay begins cold and slower than it goes on. Pages are done in steps, since
 * they are committed in batches: the pace is taken from step to step, and what has passed since the last one counts for the next.
 * Pure. Shape: undefined until there is a pace; `pace` is given to the next call.
 */
export function etaOf(pace: ReplayPace, now: Seen, total: number): { readonly pace: ReplayPace; readonly remainingMs: number | undefined } {
  const known = pace.at(-1)
  const grown = known !== undefined && known.done === now.done ? pace : [...pace, now]
  const next = grown.length > KEPT ? grown.filter((_, index) => index % 2 === 0 || index === grown.length - 1) : grown
  if (now.done >= total) return { pace: next, remainingMs: 0 }
  const [first, ...steps] = next
  const last = steps.at(-1)
  if (first === undefined || last === undefined) return { pace: next, remainingMs: undefined }
  // The first look came before the work, by the time that joining and starting took; until there are two steps there is no other.
  const half = steps.findLastIndex(({ done }) => done <= now.done * OLDER_SHARE)
  const closeMs = ((last.mono - first.mono) / steps.length) * CLOSE_SHARE
  const apart = steps.findLastIndex(({ mono }) => last.mono - mono > closeMs)
  const line = lineThrough(apart < 0 ? [first, last] : steps.slice(Math.min(Math.max(0, half), apart)))
  // Of a step that is late nobody knows when it comes: by then no more than one of the usual size counts as done.
  const usualMs = ((last.done - first.done) / steps.length) * line.perPage
  const atMono = Math.min(now.mono, last.mono + usualMs)
  return { pace: next, remainingMs: Math.max(0, line.mono + (total - line.done) * line.perPage - atMono) }
}

/** The line that lies nearest to all steps (least squares): a single one may come just before or just behind some that others have done. */
function lineThrough(steps: readonly Seen[]): { readonly mono: number; readonly done: number; readonly perPage: number } {
  const mono = steps.reduce((sum, step) => sum + step.mono, 0) / steps.length
  const done = steps.reduce((sum, step) => sum + step.done, 0) / steps.length
  const spread = steps.reduce((sum, step) => sum + (step.done - done) ** 2, 0)
  return { mono, done, perPage: steps.reduce((sum, step) => sum + (step.done - done) * (step.mono - mono), 0) / spread }
}
