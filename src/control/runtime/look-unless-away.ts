import { isAway, type MillraceError } from '../../kernel/errors.ts'
import type { Runtime } from './runtime.ts'

/**
 * A look at the brokers of a command whose stages can wait longer for them than one call does. Shape: undefined where they are away; it is
 * looked again later, and `onAway` is told why. Errors: all others of the look.
 */
export async function lookUnlessAway<T>(
  { observer }: Pick<Runtime, 'observer'>,
  look: () => Promise<T>,
  onAway: (error: MillraceError) => void = () => undefined,
): Promise<T | undefined> {
  try {
    return await look()
  } catch (error) {
    if (!isAway(error)) throw error
    observer.emit('ReadRetried', { reason: error.code, text: error.message })
    onAway(error)
    return undefined
  }
}
