import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { BlobReader } from '../../../src/blobs/blob-store.ts'
import { loadBody } from '../../../src/blobs/load-body.ts'
import { pageOf } from '../../../src/extract/test-extractor.ts'
import { MOST_BODY_BYTES } from '../../../src/kernel/body-bounds.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { bodyRefOf, isBodyRef } from '../../../src/message/body-ref.ts'
import { unpackPageBodySync } from '../../../src/message/page-body.ts'

const whole = pageOf(Buffer.from('<h1>large</h1>'), 'https://a.example/', { fetchedAt: 1 })
const ref = bodyRefOf(whole)
const stored = { ...whole, body: Buffer.alloc(0), bodyRef: ref }

function holding(blob: Buffer | undefined): BlobReader & { readonly asked: string[] } {
  const asked: string[] = []
  return {
    asked,
    get: async (key) => {
      asked.push(key)
      return blob
    },
  }
}

describe('a page whose body lies in the blob store', () => {
  it('comes back with its body, and unpacks as any other', async () => {
    const blobs = holding(whole.body)
    const loaded = await loadBody(stored, blobs)
    expect(blobs.asked).toEqual([ref])
    expect(loaded).toEqual({ ok: true, page: { ...stored, body: whole.body } })
    expect(loaded.ok && unpackPageBodySync(loaded.page)).toEqual({ ok: true, bytes: whole.body })
  })

  it('is told apart: missing, cut to nothing, cut, and without a store', async () => {
    expect(await loadBody(stored, holding(undefined))).toEqual({
      ok: false,
      code: 'BLOB_MISSING',
      detail: `the blob ${ref} is not in the blob store`,
    })
    expect(await loadBody(stored, holding(Buffer.alloc(0)))).toMatchObject({
      ok: false,
      code: 'BLOB_BROKEN',
      detail: expect.stringContaining('is empty'),
    })
    const cut = await loadBody(stored, holding(whole.body.subarray(0, 5)))
    expect(cut.ok && unpackPageBodySync(cut.page)).toMatchObject({ ok: false, reason: 'broken', detail: expect.stringContaining(ref) })
    expect(await loadBody(stored, undefined)).toMatchObject({ ok: false, code: 'BLOB_STORE_UNKNOWN' })
    // Without its body it is never taken for an empty page.
    expect(unpackPageBodySync(stored)).toMatchObject({ ok: false, reason: 'unsupported' })
  })

  it('never asks for a name that is no key, whoever wrote the page', async () => {
    const blobs = holding(whole.body)
    for (const bodyRef of ['../../etc/passwd', `${ref}/../x`, '', `${ref}\n`, ref.toUpperCase(), `${'a'.repeat(64)}.exe`])
      expect(await loadBody({ ...stored, bodyRef }, blobs)).toMatchObject({ ok: false, code: 'BLOB_BROKEN' })
    expect(blobs.asked).toEqual([])
    expect(isBodyRef(ref)).toBe(true)
  })

  it('is not at fault when the store is away', async () => {
    const away: BlobReader = { get: async () => Promise.reject(new MillraceError('BLOBS_UNREACHABLE', 'away')) }
    await expect(loadBody(stored, away)).rejects.toMatchObject({ code: 'BLOBS_UNREACHABLE' })
    const tooLarge: BlobReader = { get: async () => Promise.reject(new MillraceError('BLOB_BROKEN', 'too large')) }
    expect(await loadBody(stored, tooLarge)).toEqual({ ok: false, code: 'BLOB_BROKEN', detail: 'too large' })
  })

  it('may be as large as the largest body that its coding made longer', async () => {
    const asked: number[] = []
    const blobs: BlobReader = { get: async (_, maxBytes) => void asked.push(maxBytes) }
    await loadBody(stored, blobs)
    expect(asked[0]).toBeGreaterThanOrEqual(gzipSync(Buffer.alloc(MOST_BODY_BYTES), { level: 0 }).length)
  })

  it('with its body inside asks nobody', async () => {
    expect(await loadBody(whole, undefined)).toEqual({ ok: true, page: whole })
  })
})
