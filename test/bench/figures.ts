/** Small arithmetic and a plain table: what a bench prints. */

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Nearest rank. Shape: NaN without values. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))] ?? Number.NaN
}

/** Jain's index of shares: 1 where all are equal, 1/n where one has everything. */
export function jainIndex(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0)
  const squares = shares.reduce((total, share) => total + share * share, 0)
  return squares === 0 ? Number.NaN : (sum * sum) / (shares.length * squares)
}

/** Least squares through points `[x, y]`. Shape: NaN where all x are one. */
export function slope(points: readonly (readonly [number, number])[]): number {
  const meanX = points.reduce((total, [x]) => total + x, 0) / points.length
  const meanY = points.reduce((total, [, y]) => total + y, 0) / points.length
  const over = points.reduce((total, [x, y]) => total + (x - meanX) * (y - meanY), 0)
  const under = points.reduce((total, [x]) => total + (x - meanX) ** 2, 0)
  return under === 0 ? Number.NaN : over / under
}

export interface Goal {
  readonly name: string
  readonly value: number
  readonly target: { readonly atLeast: number } | { readonly atMost: number }
}

export function isMet({ value, target }: Goal): boolean {
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
}

export function printGoals(goals: readonly Goal[]): void {
  printTable(
    ['goal', 'measured', 'target', ''],
    goals.map((goal) => [
      goal.name,
      short(goal.value),
      'atLeast' in goal.target ? `>= ${goal.target.atLeast}` : `<= ${goal.target.atMost}`,
      isMet(goal) ? 'met' : 'MISSED',
    ]),
  )
}

export function printTable(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const cells = [heads, ...rows.map((row) => row.map((cell) => (typeof cell === 'number' ? short(cell) : cell)))]
  const widths = heads.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length)))
  for (const row of cells) print(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
}

export function print(text: string): void {
  process.stdout.write(`${text.trimEnd()}\n`)
}

/** Four digits that count. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return 'none'
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)))
}
