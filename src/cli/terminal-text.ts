/**
 * What others wrote (pages, headers, tasks, robots.txt) must not steer the terminal, nor what the output is piped into and shown by later.
 * Pure.
 */

/** Shape: each control character, but for line ends and tabs, is U+FFFD. JSON of ours has none, so nothing of it changes. */
export function terminalText(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, '\ufffd')
}

/** The same in one line. */
export function terminalLine(text: string): string {
  return terminalText(text.replaceAll(/\s+/g, ' '))
}

/**
 * A line of ours that holds what others wrote: none of that ends it, or a page could say what only we do. Shape: its white space stays as
 * it is.
 */
export function singleLine(text: string): string {
  return terminalText(text.replaceAll(/\r?\n/g, ' '))
}
