import { MillraceError } from '../kernel/errors.ts'

const MAX_CHARACTERS = 200

/**
 * The name of a crawl as a person gives it. None at all is what an unset variable leaves of `--crawl "$NAME"`; a task that carries
 * it belongs to no crawl, so that whoever waited for the end of this one would wait for ever. Errors: USAGE.
 */
export function crawlName(text: string, option: string): string {
  if (text.trim() === '') throw new MillraceError('USAGE', `${option}: a crawl needs a name; none was given`)
  if (text.length > MAX_CHARACTERS)
    throw new MillraceError(
      'USAGE',
      `${option}: a name of ${text.length} characters; expected ${MAX_CHARACTERS} at most, since every message of the crawl carries it`,
    )
  if (/\p{Cc}/u.test(text))
    throw new MillraceError('USAGE', `${option}: ${JSON.stringify(text)} has control characters; a crawl's name has none`)
  return text.toWellFormed()
}
