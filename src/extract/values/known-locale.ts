import { OptionError } from './option-error.ts'

/**
 * Refuses a language that Node.js does not know: in its place it would take that of the machine. Errors: OptionError, with the tag that was
 * probably meant.
 */
export function checkLocale(locale: string): void {
  if (isKnown(locale)) return
  const meant = meantBy(locale)
  const advice = meant === undefined ? 'expected one such as de-DE' : `did you mean ${meant}?`
  throw new OptionError('locale', `${JSON.stringify(locale)} is no language that is known; ${advice}`)
}

function isKnown(locale: string): boolean {
  try {
    return Intl.NumberFormat.supportedLocalesOf(locale).length > 0
  } catch {
    return false
  }
}

/** `de_DE` is written with a hyphen; `cz` and `dk` are countries, and of these the language is told. */
function meantBy(locale: string): string | undefined {
  const tag = locale.replaceAll('_', '-')
  if (tag !== locale && isKnown(tag)) return tag
  if (!/^[a-z]{2}$/i.test(locale)) return undefined
  const country = locale.toUpperCase()
  const { language } = new Intl.Locale(`und-${country}`).maximize()
  return new Intl.DisplayNames('en', { type: 'region', fallback: 'none' }).of(country) === undefined ? undefined : `${language}-${country}`
}
