/** A backslash that is not itself escaped, and half of a surrogate pair: JSON.stringify writes pairs as they are, and halves so. */
const HALF_PAIR = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g

/** Control characters that JSON.stringify writes as they are. */
const LATER_CONTROLS = /[\u007f-\u009f]/g

/**
 * What JSON.stringify gave, with U+FFFD for each half of a surrogate pair. It writes them as `\ud83d`, which jq and others refuse, and
 * with it the whole document. Texts of tasks, pages and extractors can hold one; so can any text that was cut in two. Control characters
 * above 0x7e, which some terminals obey, are escaped as those below 0x20 are.
 */
export function wellFormedJson(json: string): string {
  const whole = json.includes('\\ud') ? json.replace(HALF_PAIR, '$1\ufffd') : json
  return whole.replace(LATER_CONTROLS, (control) => `\\u00${control.charCodeAt(0).toString(16)}`)
}
