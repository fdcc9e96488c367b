export interface ListedObject {
  readonly key: string
  readonly bytes: number
  /** Epoch ms. */
  readonly touchedAt: number
}

/**
 * Answer of ListObjectsV2, as the services write it: flat elements without attributes that matter. Shape: `next` is empty on the last page;
 * an object without a key or a time that can be read is left out, so that nothing is done to it.
 */
export function parseListing(xml: string): { readonly objects: readonly ListedObject[]; readonly next: string } {
  const objects: ListedObject[] = []
  for (const [, inner = ''] of xml.matchAll(/<Contents>([\s\S]*?)<\/Contents>/g)) {
    const key = elementText(inner, 'Key')
    const touchedAt = Date.parse(elementText(inner, 'LastModified'))
    if (key !== '' && !Number.isNaN(touchedAt)) objects.push({ key, bytes: Number(elementText(inner, 'Size')) || 0, touchedAt })
  }
  const next = elementText(xml, 'IsTruncated') === 'true' ? elementText(xml, 'NextContinuationToken') : ''
  return { objects, next }
}

function elementText(xml: string, name: string): string {
  return unescapeXml(new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? '')
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function unescapeXml(text: string): string {
  return text.replaceAll(/&(#x[0-9a-f]+|#\d+|[a-z]+);/gi, (whole, name: string) => {
    if (name.startsWith('#x') || name.startsWith('#X')) return String.fromCodePoint(Number.parseInt(name.slice(2), 16))
    if (name.startsWith('#')) return String.fromCodePoint(Number(name.slice(1)))
    return NAMED[name.toLowerCase()] ?? whole
  })
}
