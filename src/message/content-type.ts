/** A Content-Type header, read as leniently as browsers do. */
export interface ContentType {
  /** `type/subtype`, lower case; null where the header is absent or has none. */
  readonly essence: string | null
  /** Labels given for charset, in order, without quotes; none may name an encoding that exists. */
  readonly charsetLabels: readonly string[]
}

/** Characters. Longer headers are said by nobody who means them; a site may send 256 KiB. */
const MAX_HEADER = 4_096

/**
 * Shape: a header, or several joined by commas, of which the last that is a type counts; a charset holds on where the same type comes again
 * without one; too long a text counts as absent. Source: Fetch standard, "extract a MIME type"; single quotes, missing closing quotes and
 * what is no type are taken as they are meant.
 */
export function parseContentType(header: string | null | undefined): ContentType {
  let type: ContentType = { essence: null, charsetLabels: [] }
  if (header === null || header === undefined || header.length > MAX_HEADER) return type
  for (const value of header.match(/(?:[^",]|"[^"]*"?)+/g) ?? []) {
    const essence = (value.split(';', 1)[0] ?? '').trim().toLowerCase()
    const labels = labelsIn(value)
    if (!/^[^\s/]+\/[^\s/]+$/.test(essence) || essence === '*/*') type = { ...type, charsetLabels: [...type.charsetLabels, ...labels] }
    else if (essence === type.essence) type = { essence, charsetLabels: [...labels, ...type.charsetLabels] }
    else type = { essence, charsetLabels: labels }
  }
  return type
}

function labelsIn(value: string): string[] {
  return [...value.matchAll(/[;\s]charset\s*=\s*(?:"([^"]*)"?|'([^']*)'?|([^;,\s]*))/gi)]
    .map(([, double, single, bare]) => (double ?? single ?? bare ?? '').trim())
    .filter((label) => label !== '')
}

export function isHtmlType(essence: string | null): boolean {
  return essence === 'text/html' || essence === 'application/xhtml+xml'
}

export function isXmlType(essence: string | null): boolean {
  return essence !== null && (essence === 'text/xml' || essence === 'application/xml' || essence.endsWith('+xml'))
}
