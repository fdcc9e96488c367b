import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { MOST_BODY_BYTES } from '../kernel/body-bounds.ts'
import { countText } from '../kernel/count-text.ts'
import { sha256Hex } from '../kernel/digest.ts'
import { BODY_ENCODINGS, type BodyEncoding, unpack, unpackSync, zstd } from './body-codec.ts'
import type { Page } from './generated/types.ts'
import type { Unpacked } from './unpacked.ts'

/** The fields of a Page that hold its body. */
export type PageBody = Pick<Page, 'body' | 'bodyEncoding' | 'bodySha256' | 'bodyLength'>

/** A body as the site gave it. */
export interface ReceivedBody {
  /** In `encoding`, whole and decodable; with `identity` the same as `decoded`. */
  readonly body: Buffer
  readonly encoding: BodyEncoding
  readonly decoded: Buffer
}

/** Below this, packing makes nothing smaller. */
const LEAST_PACKED = 256

/**
 * How a body is stored: packed as it was received, else packed by us (zstd where Node has it, else brotli), since the topic itself is
 * not compressed. Length and sha256 are of the decoded bytes, so they do not depend on who packed them.
 */
export async function packPageBody(received: ReceivedBody): Promise<PageBody> {
  const { decoded } = received
  const facts = { bodySha256: sha256Hex(decoded), bodyLength: decoded.length }
  if (received.encoding !== 'identity') return { body: received.body, bodyEncoding: received.encoding, ...facts }
  if (decoded.length >= LEAST_PACKED) {
    const { body, bodyEncoding } = await pack(decoded)
    if (body.length < decoded.length) return { body, bodyEncoding, ...facts }
  }
  return { body: decoded, bodyEncoding: 'identity', ...facts }
}

const brotli = promisify<Uint8Array, zlib.BrotliOptions, Buffer>(zlib.brotliCompress)

async function pack(decoded: Buffer): Promise<{ body: Buffer; bodyEncoding: BodyEncoding }> {
  if (zstd.zstdCompress !== undefined) return { body: await promisify(zstd.zstdCompress)(decoded), bodyEncoding: 'zstd' }
  // Quality 2 and not 1: 7 % smaller for 0.3 ms of a page of 100 KB. Quality 3 takes as much again for 2 %.
  const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: 2, [zlib.constants.BROTLI_PARAM_SIZE_HINT]: decoded.length }
  return { body: await brotli(decoded, { params }), bodyEncoding: 'br' }
}

/** The decoded body of a page, or why there is none. */
export type UnpackedPage =
  | { readonly ok: true; readonly bytes: Buffer }
  /**
   * unsupported: no such codec, or a body that lies elsewhere. broken: it does not decode to its end, or gives more or other bytes than the
   * page says.
   */
  | { readonly ok: false; readonly reason: 'unsupported' | 'broken'; readonly detail: string }

export type PackedPage = Pick<Page, 'body' | 'bodyEncoding' | 'bodyLength' | 'bodySha256' | 'bodyRef'>

/** In Node's thread pool. Shape: at most `maxBytes` are made: a page may come from another program, and its bodyLength be anything. */
export async function unpackPageBody(page: PackedPage, maxBytes: number = MOST_BODY_BYTES): Promise<UnpackedPage> {
  const encoding = encodingOf(page, maxBytes)
  return typeof encoding === 'string' ? checked(page, await unpack(page.body, encoding, page.bodyLength)) : encoding
}

/** At once, for extraction processes. */
export function unpackPageBodySync(page: PackedPage, maxBytes: number = MOST_BODY_BYTES): UnpackedPage {
  const encoding = encodingOf(page, maxBytes)
  return typeof encoding === 'string' ? checked(page, unpackSync(page.body, encoding, page.bodyLength)) : encoding
}

/** The code of a page whose body does not unpack: of the blob where that holds it. */
export function brokenBodyCode({ bodyRef }: Pick<Page, 'bodyRef'>): 'EXTRACT_PAGE_BROKEN' | 'BLOB_BROKEN' {
  return bodyRef === null ? 'EXTRACT_PAGE_BROKEN' : 'BLOB_BROKEN'
}

function encodingOf(page: PackedPage, maxBytes: number): BodyEncoding | UnpackedPage {
  if (page.bodyRef !== null && page.body.length === 0)
    return { ok: false, reason: 'unsupported', detail: `the body lies in the blob store, under ${page.bodyRef}` }
  if (page.bodyLength > maxBytes) return broken(page, `it has ${countText(page.bodyLength, 'byte')}; at most ${maxBytes} are taken`)
  const known = BODY_ENCODINGS.find((name) => name === page.bodyEncoding)
  if (known !== undefined) return known
  const detail = `the body is in ${JSON.stringify(page.bodyEncoding.slice(0, 40))}; expected one of ${BODY_ENCODINGS.join(', ')}`
  return { ok: false, reason: 'unsupported', detail }
}

function checked(page: PackedPage, { bytes, problem }: Unpacked): UnpackedPage {
  if (problem === 'size') return broken(page, `it decodes to more than the ${countText(page.bodyLength, 'byte')} that the page says`)
  if (problem !== null) return broken(page, problem === 'cut' ? 'it ends too early' : 'it is damaged')
  if (bytes.length !== page.bodyLength)
    return broken(page, `it decodes to ${countText(bytes.length, 'byte')}; the page says ${page.bodyLength}`)
  const sha256 = sha256Hex(bytes)
  return sha256 === page.bodySha256 ? { ok: true, bytes } : broken(page, `its sha256 is ${sha256}; the page says ${page.bodySha256}`)
}

function broken(page: PackedPage, why: string): UnpackedPage {
  return {
    ok: false,
    reason: 'broken',
    detail: `the ${page.bodyEncoding} body${page.bodyRef === null ? '' : ` in the blob ${page.bodyRef}`} can't be read: ${why}`,
  }
}
