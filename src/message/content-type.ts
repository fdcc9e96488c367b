/** A Content-Type header, read as leniently as browsers do. */
export interface ContentType {
  /** `type/subtype`, lower case; null where the header is absent or has none. */
  readonly essence: string | null
  /** Labels given for charset, in order, without quotes; none may name an encoding that exists. */
  readonly charsetLabels: readonly string[]
}

/** Source: RFC 9110 section 8.3.1; single quotes and missing closing quotes are taken as they are meant. */
export function parseContentType(header: string | null | undefined): ContentType {
  const text = header ?? ''
  const essence = (text.split(/[;,]/, 1)[0] ?? '').trim().toLowerCase()
  const labels = [...text.matchAll(/[;\s]charset\s*=\s*(?:"([^"]*)"?|'([^']*)'?|([^;,\s]*))/gi)]
    .map(([, double, single, bare]) => (double ?? single ?? bare ?? '').trim())
    .filter((label) => label !== '')
  return { essence: /^[^\s/]+\/[^\s/]+$/.test(essence) ? essence : null, charsetLabels: labels }
}

export function isHtmlType(essence: string | null): boolean {
  return essence === 'text/html' || essence === 'application/xhtml+xml'
}

export function isXmlType(essence: string | null): boolean {
  return essence !== null && (essence === 'text/xml' || essence === 'application/xml' || essence.endsWith('+xml'))
}
