/**
 * How much longer work takes for four times as much: near 4 where it grows with its input, 16 where it grows with the square. Of the
 * CPU time of this process, the least of three: what runs beside it does not count.
 */
export function growth(run: (size: number) => void, size: number): number {
  run(size)
  // What takes no time grows as the clock likes.
  return (
    leastMs(() => run(4 * size)) /
    Math.max(
      leastMs(() => run(size)),
      2,
    )
  )
}

function leastMs(run: () => void): number {
  return Math.min(
    ...[1, 2, 3].map(() => {
      const before = process.cpuUsage()
      run()
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1_000
    }),
  )
}
