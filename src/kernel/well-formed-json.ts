/** A backslash that is not itself escaped, and half of a surrogate pair: JSON.stringify writes pairs as they are, and halves so. */
const HALF_PAIR = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g

/**
 * What JSON.stringify gave, with U+FFFD for each half of a surrogate pair. It writes them as `\ud83d`, which jq and others refuse, and
 * with it the whole document. Texts of tasks, pages and extractors can hold one; so can any text that was cut in two.
 */
export function wellFormedJson(json: string): string {
  return json.includes('\\ud') ? json.replace(HALF_PAIR, '$1\ufffd') : json
}
