import { MillraceError } from '../../kernel/errors.ts'

/** What is wrong, or doubtful, with an extractor file, and where. */
export interface ExtractorProblem {
  readonly severity: 'error' | 'warning'
  readonly message: string
  /** Where it is another one than the extractor's: a file that it imports. */
  readonly file?: string
  /** From 1; undefined where the problem is the file's as a whole. */
  readonly line: number | undefined
  readonly column: number | undefined
}

/** `book.yaml:3:7 message`, as editors understand it; `book.yaml: message` without a place. */
export function problemText(file: string, { severity, message, file: own = file, line, column }: ExtractorProblem): string {
  const place = line === undefined ? `${own}:` : `${own}:${line}:${column ?? 1}`
  return `${place} ${severity === 'warning' ? 'warning: ' : ''}${message}`
}

/** All errors of a file as one. Shape: one line a problem, in the order of the file. */
export function invalidExtractor(file: string, problems: readonly ExtractorProblem[], cause?: unknown): MillraceError {
  const errors = problems.filter(({ severity }) => severity === 'error')
  const [first] = errors
  return new MillraceError('EXTRACTOR_INVALID', errors.map((problem) => problemText(file, problem)).join('\n'), {
    ...(cause === undefined ? {} : { cause }),
    context: { file: first?.file ?? file, line: first?.line, column: first?.column },
  })
}
