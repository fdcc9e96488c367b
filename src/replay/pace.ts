/** What was seen of a replay, oldest first; thinned as it grows. */
export type ReplayPace = readonly Seen[]

export interface Seen {
  /** Monotonic ms. */
  readonly mono: number
  /** Pages. */
  readonly done: number
}

const KEPT = 200

/**
 * Time left, by the pace of the later half of what is done: a replay begins cold and slower than it goes on. Pure. Shape: undefined
 * until there is a pace; `pace` is given to the next call.
 */
export function etaOf(pace: ReplayPace, now: Seen, total: number): { readonly pace: ReplayPace; readonly remainingMs: number | undefined } {
  const last = pace.at(-1)
  const grown = last !== undefined && last.done === now.done ? pace : [...pace, now]
  const next = grown.length > KEPT ? grown.filter((_, index) => index % 2 === 0 || index === grown.length - 1) : grown
  if (now.done >= total) return { pace: next, remainingMs: 0 }
  // Work that was done at the first look began at a time that nobody saw.
  const base = next.findLast(({ done }) => done <= now.done / 2) ?? next[0]
  if (base === undefined || now.done <= base.done || now.mono <= base.mono) return { pace: next, remainingMs: undefined }
  const perPage = (now.mono - base.mono) / (now.done - base.done)
  return { pace: next, remainingMs: (total - now.done) * perPage }
}
