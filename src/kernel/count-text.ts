/** `1 page`, `2 pages`: for texts of errors and reasons. Pure. */
export function countText(count: number | bigint, noun: string): string {
  return `${count} ${noun}${count === 1 || count === 1n ? '' : 's'}`
}

/** `is` of one, `are` of others. Pure. */
export function isAre(count: number | bigint): string {
  return count === 1 || count === 1n ? 'is' : 'are'
}
