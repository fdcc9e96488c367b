import { createHash } from 'node:crypto'
import type { Claim } from '../state-store.ts'

/** What is claimed, in 22 characters: URLs may be long, and there may be many. The crawl is part of the key. */
export function urlId(claim: Claim): string {
  return shortHash(`${claim.round} ${claim.canonicalUrl}`)
}

export function shortHash(text: string): string {
  return createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url')
}
