import type { ErrorContext } from '../kernel/errors.ts'
import { isMillraceError } from '../kernel/errors.ts'
import type { ExtractorProblem } from './language/extractor-problem.ts'
import { problemText } from './language/extractor-problem.ts'
import { type LoadedExtractor, loadExtractor } from './load-extractors.ts'
import { nativeParser } from './native/native-parser.ts'

/** What `extractors check` says of a file. */
export type CheckResult =
  | {
      readonly ok: true
      readonly extractor: LoadedExtractor /** One line each, `file:line:column warning: …`. */
      readonly warnings: readonly string[]
      readonly parser: UsedParser
    }
  | {
      readonly ok: false /** One line each, `file:line:column …`, errors and warnings. */
      readonly problems: readonly string[]
      readonly context: ErrorContext
    }

/** The parser of an extractor on this machine, `extract.parser` apart. Shape: reason: why it is not the native one. */
export interface UsedParser {
  readonly name: 'native' | 'parse5'
  readonly reason: string | undefined
}

function parserOf({ notNative }: LoadedExtractor): UsedParser {
  const native = nativeParser()
  const reason = notNative ?? (native.ok ? undefined : native.reason)
  return { name: reason === undefined ? 'native' : 'parse5', reason }
}

/**
 * Reads a file, checks all of it and, for code, loads it in a process of its own. Errors: none for what is in the file; the reason of the
 * signal.
 */
export async function checkExtractorFile(file: string, signal?: AbortSignal): Promise<CheckResult> {
  try {
    const extractor = await loadExtractor(file, signal)
    const warnings = extractor.warnings.map((problem: ExtractorProblem) => problemText(file, problem))
    return { ok: true, extractor, warnings, parser: parserOf(extractor) }
  } catch (error) {
    if (!isMillraceError(error, 'EXTRACTOR_INVALID')) throw error
    return { ok: false, problems: error.message.split('\n'), context: error.context }
  }
}
