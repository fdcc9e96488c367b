/** What a header field may hold: visible characters, space and tab; nothing beyond Latin-1 can be sent. Source: RFC 9110 section 5.5. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** RFC 9110 section 5.6.2. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

export function isHeaderName(text: string): boolean {
  return NAME.test(text)
}

export function isHeaderValue(text: string): boolean {
  return VALUE.test(text)
}
