/**
 * Regular expression of `match`. Shape: `(?i)` at its start ignores case. Unicode mode where the pattern allows it, so that `\p{L}`
 * works; patterns with needless escapes (`\-`) fall back to the older reading. Errors: SyntaxError.
 */
export function compilePattern(pattern: string): RegExp {
  const ignoreCase = pattern.startsWith('(?i)')
  const source = ignoreCase ? pattern.slice(4) : pattern
  const flags = ignoreCase ? 'i' : ''
  try {
    return new RegExp(source, `${flags}u`)
  } catch (error) {
    if (/\\[pPu]\{/.test(source)) throw error
    return new RegExp(source, flags)
  }
}

/** First group that took part, or the whole match where there is no group; undefined for no match. */
export function firstGroup(pattern: RegExp, text: string): string | undefined {
  const match = pattern.exec(text)
  if (match === null || match.length === 1) return match?.[0]
  // Of alternatives with a group each, those that did not match are undefined, whatever their type says.
  return match.slice(1).find((group: string | undefined) => group !== undefined)
}
