import type { Validators } from '../state-store.ts'

/** As a list: the names would be half of it. */
export function packValidators({ requestHash, etag, lastModified, bodySha256, fetchedAt, checkedAt }: Validators): string {
  return JSON.stringify([requestHash, etag, lastModified, bodySha256, fetchedAt, checkedAt])
}

/** What `packValidators` wrote. */
export function unpackValidators(text: string): Validators {
  const list = JSON.parse(text) as [string, string | null, string | null, string, number, number]
  const [requestHash, etag, lastModified, bodySha256, fetchedAt, checkedAt] = list
  return { requestHash, etag, lastModified, bodySha256, fetchedAt, checkedAt }
}
