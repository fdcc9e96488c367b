const ROUNDS = 7
/** What takes no time grows as the clock likes. */
const LEAST_MS = 2

/**
 * How much longer work takes for four times as much: near 4 where it grows with its input, 16 where it grows with the square. Of the
 * CPU time of this process, the least of several rounds by turns: what runs beside it, or is collected meanwhile, does not count.
 */
export function growth(run: (size: number) => void, size: number): number {
  let once = Number.POSITIVE_INFINITY
  let fourTimes = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round += 1) {
    once = Math.min(
      once,
      cpuMs(() => run(size)),
    )
    fourTimes = Math.min(
      fourTimes,
      cpuMs(() => run(4 * size)),
    )
  }
  return fourTimes / Math.max(once, LEAST_MS)
}

function cpuMs(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}
