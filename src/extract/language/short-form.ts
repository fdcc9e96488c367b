/** What a short form says: a selector and, perhaps, one of its attributes. */
export interface ShortForm {
  /** Empty: the element itself. */
  readonly selector: string
  readonly attribute: string | undefined
}

const ATTRIBUTE = '[A-Za-z_:][\\w:.-]*'
const AT = new RegExp(`^(|[\\s\\S]*[^\\\\])@(${ATTRIBUTE})$`)
const ATTR_FUNCTION = new RegExp(`^([\\s\\S]*)::attr\\(\\s*(${ATTRIBUTE})\\s*\\)$`)
const TEXT = /^([\s\S]*)::text$/

/**
 * Reads `h1`, `img@src`, `img::attr(src)`, `h1::text`, `@href` and `::text` (the element itself). Shape: an `@` within brackets or
 * behind a backslash belongs to the selector; `.` and `:scope` alone are the element itself.
 */
export function parseShortForm(text: string): ShortForm {
  const trimmed = text.trim()
  const attribute = ATTR_FUNCTION.exec(trimmed) ?? AT.exec(trimmed)
  const selector = attribute?.[1] ?? TEXT.exec(trimmed)?.[1] ?? trimmed
  return { selector: isItself(selector.trim()) ? '' : selector.trim(), attribute: attribute?.[2] }
}

function isItself(selector: string): boolean {
  return selector === '' || selector === '.' || selector === ':scope'
}
