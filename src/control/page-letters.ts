import { readLog } from '../kafka/log-reader.ts'
import { readDeadLetter } from '../message/read-dead-letter.ts'
import type { Runtime } from './runtime.ts'

/** How many dead letters by their error code. */
export type LetterCounts = Readonly<Record<string, number>>

/**
 * Dead letters of live extraction and the frontier from these offsets on: what became of pages, which no outcome of a URL tells. Errors:
 * the signal's reason.
 */
export async function pageLettersFrom(
  { client, clock, observer, topics }: Runtime,
  from: ReadonlyMap<number, bigint>,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<LetterCounts> {
  const counts: Record<string, number> = {}
  const log = readLog({ client, clock, observer, from: new Map([[topics.deadLetters, from]]), ...(signal === undefined ? {} : { signal }) })
  for await (const event of log) {
    if (event.kind !== 'batch') continue
    for (const { headers } of event.messages) {
      const { stage, code = 'unknown', replay } = readDeadLetter(headers)
      if (replay === undefined && (stage === 'extract' || stage === 'frontier')) counts[code] = (counts[code] ?? 0) + 1
    }
  }
  signal?.throwIfAborted()
  return counts
}
