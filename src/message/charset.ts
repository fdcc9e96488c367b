import { isAscii, isUtf8 } from 'node:buffer'
import { getBOMEncoding, labelToName, TextDecoder } from '@exodus/bytes/encoding.js'
import { percentEncodeAfterEncoding } from '@exodus/bytes/whatwg.js'
import { isHtmlType, isXmlType, parseContentType } from './content-type.ts'
import { prescanMeta, xmlDeclaration } from './meta-prescan.ts'

/** How the encoding of a body was decided; `meta` covers the XML declaration. */
export type CharsetSource = 'bom' | 'header' | 'meta' | 'utf8-valid' | 'default'

export interface DecidedCharset {
  /** WHATWG encoding name, such as `UTF-8` or `windows-1252`. */
  readonly charset: string
  readonly source: CharsetSource
}

/**
 * The encoding of a decoded body: byte order mark, then the header, then what an HTML or XML page declares of itself, then UTF-8
 * where the bytes are valid UTF-8, else windows-1252. A label that names no encoding counts as absent, as do the encodings that the
 * standard replaces by a single U+FFFD.
 * Shape: contentType is the whole header. Only HTML, XML and bodies without a type are searched for declarations: in JSON or plain
 * text `<meta charset>` is content. A character cut at the end of the body does not make it invalid UTF-8.
 * Source: HTML standard, "determining the character encoding"; RFC 7303 for XML.
 */
export function decideCharset(bytes: Uint8Array, contentType: string | null): DecidedCharset {
  const bom = getBOMEncoding(bytes)
  if (bom !== null) return { charset: encodingName(bom) ?? 'UTF-8', source: 'bom' }
  const { essence, charsetLabels } = parseContentType(contentType)
  for (const label of charsetLabels) {
    const charset = encodingName(label)
    if (charset !== null) return { charset, source: 'header' }
  }
  const declared = declaredIn(bytes, essence)
  if (declared !== null) return { charset: declared, source: 'meta' }
  return isCutUtf8(bytes) ? { charset: 'UTF-8', source: 'utf8-valid' } : { charset: 'windows-1252', source: 'default' }
}

/**
 * Text of a body; its byte order mark is no part of it. Shape: invalid bytes become U+FFFD; a charset that names no encoding
 * (written by another program) is decided anew from the bytes.
 */
export function decodeText(bytes: Uint8Array, charset: string | null): string {
  const name = charset === null ? null : encodingName(charset)
  return new TextDecoder(name ?? decideCharset(bytes, null).charset).decode(bytes)
}

/**
 * A reference of a page as browsers ask for it: the letters of its query in the encoding of the page, which is what its server reads. The
 * URL parser, which writes all in UTF-8, then finds ASCII there. Shape: a page in UTF-8 or UTF-16, or a charset that names no encoding,
 * leaves it as it is. Source: WHATWG URL, "percent-encode after encoding" in the query state.
 */
export function withEncodedQuery(reference: string, charset: string | null): string {
  if (!NON_ASCII.test(reference)) return reference
  const name = charset === null ? null : encodingName(charset)
  if (name === null || name.startsWith('UTF-')) return reference
  const fragmentAt = reference.indexOf('#')
  const end = fragmentAt === -1 ? reference.length : fragmentAt
  const start = reference.slice(0, end).indexOf('?')
  if (start === -1) return reference
  // The parser drops these, wherever they stand.
  const query = reference.slice(start, end).replaceAll(/[\t\n\r]/g, '')
  const encoded = query.replace(LETTERS, (letters) => percentEncodeAfterEncoding(name, letters, ENCODED_IN_QUERY))
  return `${reference.slice(0, start)}${encoded}${reference.slice(end)}`
}

const NON_ASCII = /[^\0-\x7f]/
/** From the first that is no ASCII to the last: one piece, since foreign text may have any number. */
const LETTERS = /[^\0-\x7f](?:.*[^\0-\x7f])?/s
/** What the parser would encode, and what letters of some encodings are made of beside bytes that are no ASCII. */
const ENCODED_IN_QUERY = ' "#\'<>'

function declaredIn(bytes: Uint8Array, essence: string | null): string | null {
  if (essence === null || isHtmlType(essence)) return prescanMeta(bytes, encodingName)
  if (!isXmlType(essence)) return null
  return xmlDeclaration(Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 1_024)).toString('latin1'), encodingName)
}

function encodingName(label: string): string | null {
  const name = labelToName(label.trim())
  return name === 'replacement' ? null : name
}

/** One odd byte at the end of ASCII is no cut character: nothing else says that the text is UTF-8. */
function isCutUtf8(bytes: Uint8Array): boolean {
  const whole = wholeCharacters(bytes)
  return isUtf8(whole) && (whole.length === bytes.length || !isAscii(whole))
}

/** Without the first bytes of a character whose rest was cut. */
function wholeCharacters(bytes: Uint8Array): Uint8Array {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return bytes
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return needed > back ? bytes.subarray(0, bytes.length - back) : bytes
    }
  }
  return bytes
}
