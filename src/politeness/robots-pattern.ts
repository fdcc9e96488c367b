/**
 * A path pattern of robots.txt: `*` stands for anything, `$` at the end for the end, everything else for itself.
 *
 * Pattern and path are compared in one spelling. Octets that have no place in a URL, and those that URL parsers write now this way and
 * now that, are percent-encoded; hex digits are upper case; the four marks that need no encoding (`- . _ ~`) are decoded. `*` and `$` of
 * a path, which mean nothing there, meet `%2A` and `%24` of a pattern.
 *
 * Of letters and digits there are two spellings, as written and decoded (`decodeLetters`). RFC 9309 section 2.2.2 decodes them
 * (`%62%61%7A` is `baz`), Google's published tests do not. To us both are one URL, so what forbids counts in either spelling, by the RFC,
 * and what allows in the one that is written, by the tests: where they differ the site is not asked.
 */
export interface RobotsPattern {
  /** Precedence: octets of the pattern. */
  readonly length: number
  readonly isAnchored: boolean
  /** What stands between the `*`. */
  readonly pieces: readonly Piece[]
}

interface Piece {
  readonly text: string
  /** For the search of long pieces; made when first needed. */
  jumps: Uint16Array | undefined
}

/** Input: a pattern as `escapePattern` or `decodeLetters` gives it. */
export function robotsPattern(escaped: string): RobotsPattern {
  const isAnchored = escaped.endsWith('$')
  const pieces = (isAnchored ? escaped.slice(0, -1) : escaped).split('*').map((text) => ({ text, jumps: undefined }))
  return { length: escaped.length, isAnchored, pieces }
}

/**
 * Shape: path as `escapePath` gives it. Cost: linear in path and pattern together, whatever they hold: pieces are looked for from left
 * to right and never twice, since the first place of a piece is always the best one.
 */
export function matchPattern({ pieces, isAnchored }: RobotsPattern, path: string): boolean {
  const last = pieces.length - 1
  const first = pieces[0]?.text ?? ''
  if (!path.startsWith(first)) return false
  let at = first.length
  for (let index = 1; index <= last; index += 1) {
    const piece = pieces[index]
    if (piece === undefined || piece.text === '') continue
    if (isAnchored && index === last) return path.length - piece.text.length >= at && path.endsWith(piece.text)
    const found = indexOf(path, piece, at)
    if (found === -1) return false
    at = found + piece.text.length
  }
  return !isAnchored || at === path.length || (last > 0 && pieces[last]?.text === '')
}

/** The built-in search multiplies the lengths at worst, which is harmless for short pieces only. */
const SHORT_PIECE = 16

/** A path in which patterns are looked for, as `escapePath` or `decodeLetters` gives it. */
export interface SoughtPath {
  readonly text: string
  /** Times that each octet stands in it. */
  readonly counts: Uint32Array
}

export function soughtPath(text: string): SoughtPath {
  const counts = new Uint32Array(128)
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    counts[code] = (counts[code] ?? 0) + 1
  }
  return { text, counts }
}

/** Characters that the built-in search passes over in the time of one step. */
const PASSED_PER_STEP = 32
/** Steps at a place where a piece might begin, besides its characters. */
const STEPS_PER_PLACE = 4
/** Steps for a character in the search of long pieces. */
const STEPS_PER_CHARACTER = 12

/** What `matchPattern` takes at most. Units: steps, about a nanosecond each. */
export function searchCost({ pieces }: RobotsPattern, { text, counts }: SoughtPath): number {
  let steps = 0
  for (let index = 1; index < pieces.length; index += 1) {
    const sought = pieces[index]?.text ?? ''
    if (sought === '') continue
    const places = counts[sought.charCodeAt(0)] ?? 0
    steps += text.length / PASSED_PER_STEP
    if (sought.length > SHORT_PIECE) steps += Math.min(text.length, places * sought.length) * STEPS_PER_CHARACTER
    // One character is found with the first place that it might begin.
    else if (sought.length > 1) steps += places * (STEPS_PER_PLACE + sought.length)
  }
  // No place is looked at for two pieces.
  return Math.min(steps, text.length * (STEPS_PER_PLACE + SHORT_PIECE)) + pieces.length * STEPS_PER_PLACE
}

/** Source: Knuth, Morris, Pratt, "Fast pattern matching in strings", 1977. */
function indexOf(text: string, piece: Piece, from: number): number {
  const sought = piece.text
  if (sought.length <= SHORT_PIECE) return text.indexOf(sought, from)
  if (text.length - from < sought.length) return -1
  piece.jumps ??= jumpsOf(sought)
  const { jumps } = piece
  let matched = 0
  const first = sought.charAt(0)
  for (let at = from; at < text.length; at += 1) {
    if (matched === 0) {
      at = text.indexOf(first, at)
      if (at === -1) return -1
    }
    const code = text.charCodeAt(at)
    while (matched > 0 && sought.charCodeAt(matched) !== code) matched = jumps[matched - 1] ?? 0
    if (sought.charCodeAt(matched) === code) matched += 1
    if (matched === sought.length) return at - matched + 1
  }
  return -1
}

/** Length of the longest beginning that also ends at each place. Lines are shorter than 65,536 characters, encoded ones too. */
function jumpsOf(sought: string): Uint16Array {
  const jumps = new Uint16Array(sought.length)
  let matched = 0
  for (let at = 1; at < sought.length; at += 1) {
    const code = sought.charCodeAt(at)
    while (matched > 0 && sought.charCodeAt(matched) !== code) matched = jumps[matched - 1] ?? 0
    if (sought.charCodeAt(matched) === code) matched += 1
    jumps[at] = matched
  }
  return jumps
}

/** Shape: path and query as in a serialised URL. */
export function escapePath(pathAndQuery: string): string {
  const ascii = pathAndQuery.replaceAll(/[^\0-\x7f]+/g, (text) => encodeOctets(Buffer.from(text, 'utf8')))
  return escapeOctets(ascii).replaceAll(/[*$]/g, encodeCharacter)
}

/** Shape: octets as latin1 characters, as they stand in the file. */
export function escapePattern(pattern: string): string {
  const escaped = escapeOctets(pattern)
  const end = escaped.endsWith('$') ? escaped.length - 1 : escaped.length
  return escaped.slice(0, end).replaceAll('$', '%24') + escaped.slice(end)
}

/** Input: what `escapePath` or `escapePattern` gives. Letters and digits that were encoded are themselves. */
export function decodeLetters(escaped: string): string {
  return escaped.replaceAll(/%(?:3[0-9]|[46][1-9A-F]|[57][0-9A])/g, decodeCharacter)
}

function decodeCharacter(sequence: string): string {
  return String.fromCharCode(Number.parseInt(sequence.slice(1), 16))
}

/** Not in a URL, or differently encoded in path and query (`'` and `|` by the URL standard). */
const ENCODED = /[^!#-&(-;=?-[\]_a-z~]/g

function escapeOctets(text: string): string {
  return text.replaceAll(/%[0-9a-fA-F]{2}/g, unescapeMark).replaceAll(ENCODED, encodeCharacter)
}

function unescapeMark(sequence: string): string {
  const character = decodeCharacter(sequence)
  return '-._~'.includes(character) ? character : sequence.toUpperCase()
}

function encodeCharacter(character: string): string {
  return encodeOctets(Buffer.from(character, 'latin1'))
}

function encodeOctets(octets: Buffer): string {
  let encoded = ''
  for (const octet of octets) encoded += `%${octet.toString(16).toUpperCase().padStart(2, '0')}`
  return encoded
}
