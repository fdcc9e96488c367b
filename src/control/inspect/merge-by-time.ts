/**
 * One list out of several, each of which is in its own order and keeps it: the one whose next entry is older goes on, the earlier list
 * where both are as old. Pure. For what several partitions hold: only within one of them is there an order of the log.
 */
export function mergeByTime<T>(lists: readonly (readonly T[])[], timeOf: (entry: T) => number): T[] {
  const left = lists.filter((list) => list.length > 0).map((list) => ({ list, next: 0 }))
  const merged: T[] = []
  for (;;) {
    let first: { readonly from: { next: number }; readonly entry: T; readonly time: number } | undefined
    for (const from of left) {
      const entry = from.list[from.next]
      if (entry === undefined) continue
      const time = timeOf(entry)
      if (first === undefined || time < first.time) first = { from, entry, time }
    }
    if (first === undefined) return merged
    merged.push(first.entry)
    first.from.next += 1
  }
}
