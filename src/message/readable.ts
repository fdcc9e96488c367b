import { isMillraceError } from '../kernel/errors.ts'

/** What was read; undefined for what can't be, which is a dead letter and nothing that is looked for on a topic. Errors: all others. */
export function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (isMillraceError(error) && error.disposition === 'dead-letter') return undefined
    throw error
  }
}
