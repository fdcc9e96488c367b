import { MOST_BODY_BYTES } from '../kernel/body-bounds.ts'
import type { ErrorCode } from '../kernel/errors.ts'
import { isMillraceError } from '../kernel/errors.ts'
import { isBodyRef } from '../message/body-ref.ts'
import { mostPackedBytes } from '../message/content-encoding.ts'
import type { Page } from '../message/generated/types.ts'
import type { BlobReader } from './blob-store.ts'

/** As it lies there: a body that its coding made longer is stored as it came. */
const MOST_BYTES = mostPackedBytes(MOST_BODY_BYTES)

export type LoadedBody =
  | { readonly ok: true; readonly page: Page }
  /** BLOB_MISSING, BLOB_BROKEN, BLOB_STORE_UNKNOWN: of this one page. */
  | { readonly ok: false; readonly code: ErrorCode; readonly detail: string }

/**
 * A page with its body inside, taken from the blob store where it lies there; `bodyRef` stays, so that what is wrong with the body can be
 * told of the blob. Errors: as of the store; the page is not at fault then.
 */
export async function loadBody(page: Page, blobs: BlobReader | undefined): Promise<LoadedBody> {
  const { bodyRef } = page
  if (bodyRef === null || page.body.length > 0) return { ok: true, page }
  const loaded = await loadBlob(bodyRef, blobs)
  if (!loaded.ok) return loaded
  if (loaded.body.length === 0) return broken(`the blob ${bodyRef} is empty; the page says ${page.bodyLength} decoded bytes`)
  return { ok: true, page: { ...page, body: loaded.body } }
}

export type LoadedBlob =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly code: ErrorCode; readonly detail: string }

/** The bytes under a reference that a page holds. Errors: as of the store. */
export async function loadBlob(bodyRef: string, blobs: BlobReader | undefined): Promise<LoadedBlob> {
  if (blobs === undefined) {
    return {
      ok: false,
      code: 'BLOB_STORE_UNKNOWN',
      detail: `the body lies in a blob store, under ${shown(bodyRef)}, and \`blobs.url\` is not set`,
    }
  }
  if (!isBodyRef(bodyRef)) return broken(`the page names a blob ${shown(bodyRef)}; expected a sha256 and a codec`)
  let body: Buffer | undefined
  try {
    body = await blobs.get(bodyRef, MOST_BYTES)
  } catch (error) {
    if (isMillraceError(error, 'BLOB_BROKEN')) return broken(error.message)
    throw error
  }
  if (body === undefined) return { ok: false, code: 'BLOB_MISSING', detail: `the blob ${bodyRef} is not in the blob store` }
  return { ok: true, body }
}

function broken(detail: string): Extract<LoadedBlob, { readonly ok: false }> {
  return { ok: false, code: 'BLOB_BROKEN', detail }
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100))
}
