import { BODY_ENCODINGS } from './body-codec.ts'
import type { Page } from './generated/types.ts'

const REF = new RegExp(`^[0-9a-f]{64}\\.(?:${BODY_ENCODINGS.join('|')})$`)

/**
 * Key under which the body of a page lies in the blob store: sha256 of the decoded bytes and the codec, since the same text may have been
 * packed in several.
 */
export function bodyRefOf(page: Pick<Page, 'bodySha256' | 'bodyEncoding'>): string {
  return `${page.bodySha256}.${page.bodyEncoding}`
}

/** A key that may be put into a path or a URL; a page may come from another program. */
export function isBodyRef(text: string): boolean {
  return REF.test(text)
}
