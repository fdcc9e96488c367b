import { readMessages } from '../../kafka/log-reader.ts'
import { readDeadLetter } from '../../message/read-dead-letter.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { writtenBeside } from './written-beside.ts'

/** How many dead letters by their error code. */
export type LetterCounts = Readonly<Record<string, number>>

/**
 * Dead letters of live extraction and the frontier from these offsets on: what became of pages, which no outcome of a URL tells. What runs
 * beside live work, or again, is left out. Errors: the signal's reason.
 */
export async function pageLettersFrom(
  runtime: Runtime,
  from: ReadonlyMap<number, bigint>,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<LetterCounts> {
  const control = await runtime.control()
  await control.readToEnd()
  const counts: Record<string, number> = {}
  for await (const messages of readMessages(runtime, { from: new Map([[runtime.topics.deadLetters, from]]), signal })) {
    for (const { headers } of messages) {
      const letter = readDeadLetter(headers)
      const { stage, code = 'unknown', replay } = letter
      if ((stage !== 'extract' && stage !== 'frontier') || replay !== undefined || writtenBeside(control, letter) !== undefined) continue
      counts[code] = (counts[code] ?? 0) + 1
    }
  }
  return counts
}
