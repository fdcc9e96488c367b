import { StringDecoder } from 'node:string_decoder'
import zlib from 'node:zlib'

/** Of one file, once it is unpacked; the protocol allows no more. */
export const MAX_SITEMAP_BYTES = 52_428_800
/** What is scanned in one turn: some 300 URLs. */
const PIECE_BYTES = 8_192

/**
 * The text of a sitemap, in pieces, so that no more of it is held than of its file. gzip within the file is undone. Shape: what is beyond
 * the bound, or behind a damage, is left out. Sitemaps are UTF-8. Source: sitemaps.org, protocol 0.9.
 */
export async function* sitemapText(file: Buffer): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  let left = MAX_SITEMAP_BYTES
  for await (const piece of isGzip(file) ? gunzipped(file) : pieces(file)) {
    yield decoder.write(piece.subarray(0, left))
    left -= piece.length
    if (left <= 0) return
  }
  yield decoder.end()
}

function isGzip(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += PIECE_BYTES) yield bytes.subarray(start, start + PIECE_BYTES)
}

async function* gunzipped(bytes: Buffer): AsyncGenerator<Buffer> {
  // Of a file that was cut it gives what there is, and no error.
  const gunzip = zlib.createGunzip({ chunkSize: PIECE_BYTES, finishFlush: zlib.constants.Z_SYNC_FLUSH })
  gunzip.end(bytes)
  try {
    for await (const piece of gunzip) yield piece as Buffer
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === undefined || !code.startsWith('Z_')) throw error
  }
}
