/** Products that bots and browsers alike name first. */
const DISGUISE = 'mozilla'
/** Behind `compatible;`, as most crawlers say who they are. */
const COMPATIBLE = /\bcompatible\s*;\s*([a-z_-]+)/i
/** Right before a contact in parentheses: a URL, or a mail address. No system has one. */
const BEFORE_CONTACT =
  /[(;,]\s*(?!(?:compatible|linux|macintosh|windows|android|iphone|ipad)\b)([a-z_-]+)(?:\/[^\s;,()]*)?[\s;,]+(?:\+|https?:\/\/|mailto:|[^\s;,()@]+@)/i

/**
 * The name by which a robots.txt speaks to us. Shape: a User-Agent header -> its product token, lower case: the first name, and where that
 * is `Mozilla`, the one behind `compatible;`, else the one that stands in parentheses before a contact. `mozilla` where there is neither,
 * empty where there is no name. Source: RFC 9309 section 2.2.1.
 */
export function productToken(userAgent: string): string {
  const first = (/[a-z_-]+/i.exec(userAgent)?.[0] ?? '').toLowerCase()
  if (first !== DISGUISE) return first
  return (COMPATIBLE.exec(userAgent)?.[1] ?? BEFORE_CONTACT.exec(userAgent)?.[1] ?? first).toLowerCase()
}

/** No bot's name was found: what a robots.txt says to the bot by name is passed over. */
export function isDisguised(userAgent: string): boolean {
  return productToken(userAgent) === DISGUISE
}
