import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Goal, print, short } from './figures.ts'
import type { LeaksReport } from './leaks-main.ts'

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
  const left = report.leftSockets + report.leftResources + report.leftListeners + report.warnings.length
  return [
    { name: `sockets, timers, listeners and warnings left of ${requests} requests`, value: left, target: { atMost: 0 } },
    { name: 'growth of the heap from a fifth of the way to the end, MiB', value: report.heapGrowthMiB, target: { atMost: 16 } },
  ]
}
