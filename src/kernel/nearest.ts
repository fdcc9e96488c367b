/**
 * The name that was probably meant. Shape: a word and the known ones -> the nearest within a third of its length (at least 2 edits,
 * transpositions count one), or undefined. Source: optimal string alignment distance.
 */
export function nearestName(word: string, known: Iterable<string>): string | undefined {
  const limit = Math.max(2, Math.floor(word.length / 3))
  let best: string | undefined
  let bestDistance = limit + 1
  for (const name of known) {
    const distance = editDistance(word.toLowerCase(), name.toLowerCase())
    if (distance < bestDistance) {
      best = name
      bestDistance = distance
    }
  }
  return best
}

function editDistance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, row) => {
    const line = new Array<number>(b.length + 1).fill(0)
    line[0] = row
    return line
  })
  const at = (row: number, column: number): number => rows[row]?.[column] ?? 0
  for (let column = 0; column <= b.length; column += 1) (rows[0] ?? [])[column] = column
  for (let row = 1; row <= a.length; row += 1) {
    for (let column = 1; column <= b.length; column += 1) {
      const cost = a[row - 1] === b[column - 1] ? 0 : 1
      let distance = Math.min(at(row - 1, column) + 1, at(row, column - 1) + 1, at(row - 1, column - 1) + cost)
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        distance = Math.min(distance, at(row - 2, column - 2) + 1)
      }
      const line = rows[row]
      if (line !== undefined) line[column] = distance
    }
  }
  return at(a.length, b.length)
}
