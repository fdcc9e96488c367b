import { MillraceError } from '../../kernel/errors.ts'

/** What is wrong, or doubtful, with an extractor file, and where. */
export interface ExtractorProblem {
  readonly severity: 'error' | 'warning'
  readonly message: string
  /** From 1. */
  readonly line: number
  readonly column: number
}

/** `book.yaml:3:7 message`, as editors understand it. */
export function problemText(file: string, { severity, message, line, column }: ExtractorProblem): string {
  return `${file}:${line}:${column} ${severity === 'warning' ? 'warning: ' : ''}${message}`
}

/** All errors of a file as one. Shape: one line a problem, in the order of the file. */
export function invalidExtractor(file: string, problems: readonly ExtractorProblem[], cause?: unknown): MillraceError {
  const errors = problems.filter(({ severity }) => severity === 'error')
  const [first] = errors
  return new MillraceError('EXTRACTOR_INVALID', errors.map((problem) => problemText(file, problem)).join('\n'), {
    ...(cause === undefined ? {} : { cause }),
    context: { file, line: first?.line, column: first?.column },
  })
}
