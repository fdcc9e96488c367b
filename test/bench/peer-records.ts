/** Ten values of a page, as a program gives them; a value may be a list. */
export type TenValues = Readonly<Record<string, unknown>>

export interface Comparison {
  readonly pages: number
  /** Pages of which both programs give the same. */
  readonly equal: number
  /** On how many of the others each field differs. */
  readonly differing: ReadonlyMap<string, number>
  /** Of the values of both, items of lists counted, those that the other one gives too; 0 to 1. */
  readonly sharedRatio: number
}

/** Below it a peer does other work. Parsers that take what stands for browsers without scripts as markup share 0.98 with ours. */
const SAME_WORK_RATIO = 0.9

/**
 * Holds a peer's values of the same pages against ours. Errors: where it did not work each page for all of our fields, or gives mostly
 * other values: no figure can be had then.
 */
export function compareValues(ours: readonly TenValues[], theirs: readonly (TenValues | undefined)[]): Comparison {
  const differing = new Map<string, number>()
  let [equal, shared, all] = [0, 0, 0]
  for (const [index, own] of ours.entries()) {
    const other = theirs[index]
    const fields = Object.keys(own)
    if (other === undefined || !fields.every((field) => field in other)) throw new Error(`page ${index} has no ${fields.length} values`)
    let isEqual = true
    for (const field of fields) {
      const [mine, its] = [plain(own[field]), plain(other[field])]
      shared += 2 * sharedCount(mine, its)
      all += mine.length + its.length
      if (mine.join('\n') === its.join('\n')) continue
      isEqual = false
      differing.set(field, (differing.get(field) ?? 0) + 1)
    }
    if (isEqual) equal += 1
  }
  const sharedRatio = shared / all
  if (!(sharedRatio >= SAME_WORK_RATIO)) throw new Error(`the peer shares ${sharedRatio} of the values alone: this is other work`)
  return { pages: ours.length, equal, differing, sharedRatio }
}

/** Values without white space, which each program has its own way with, and without what is empty. */
function plain(value: unknown): string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.flatMap((each) => (typeof each === 'string' ? each.replaceAll(/\s/g, '') : '') || [])
}

/** How many of some values are among others, each as often as it is there. */
function sharedCount(some: readonly string[], others: readonly string[]): number {
  const left = new Map<string, number>()
  for (const other of others) left.set(other, (left.get(other) ?? 0) + 1)
  let count = 0
  for (const one of some) {
    const times = left.get(one) ?? 0
    if (times === 0) continue
    left.set(one, times - 1)
    count += 1
  }
  return count
}
