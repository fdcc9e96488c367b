import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Goal, print, short } from './figures.ts'
import type { LeaksReport, Left } from './leaks-main.ts'

/** What the HTTP client leaves behind, counted in a process of its own. */
export async function fetchLeaks(requests: number): Promise<Goal[]> {
  const main = fileURLToPath(new URL('./leaks-main.ts', import.meta.url))
  const child = fork(main, [String(requests)], { execArgv: [...process.execArgv, '--expose-gc'] })
  const [[report]] = (await Promise.all([once(child, 'message'), once(child, 'exit')])) as [[LeaksReport], unknown]
  const { response, failure, aborted } = report.made
  print(
    `\n${report.requests} requests at a concurrency of ${report.concurrency} in ${short(report.seconds)} s: ` +
      `${response} answers, ${failure} failures, ${aborted} stopped`,
  )
  for (const warning of report.warnings) print(`  ${warning}`)
  const sum = ({ sockets, resources, listeners }: Left): number => sockets + resources + listeners
  const what = `sockets, timers and listeners left of ${requests} requests`
  return [
    { name: `${what}, the client open and idle`, value: sum(report.leftIdle), target: { atMost: 0 } },
    { name: `${what} and warnings, the client closed`, value: sum(report.leftClosed) + report.warnings.length, target: { atMost: 0 } },
    { name: 'growth of the heap from a fifth of the way to the end, MiB', value: report.heapGrowthMiB, target: { atMost: 16 } },
  ]
}
