/** `Math.min`, for offsets. */
export function leastOf(first: bigint, ...others: readonly bigint[]): bigint {
  return others.reduce((least, other) => (other < least ? other : least), first)
}

/** `Math.max`, for offsets. */
export function greatestOf(first: bigint, ...others: readonly bigint[]): bigint {
  return others.reduce((greatest, other) => (other > greatest ? other : greatest), first)
}
