/**
 * URLs of a `srcset` attribute, in order. A URL runs to white space, and only commas at its end close it: those within are its own,
 * as in `/w_300,h_200/a.jpg 300w`. Source: HTML standard, "parsing a srcset attribute".
 */
export function srcsetUrls(text: string): string[] {
  const urls: string[] = []
  let rest = text
  for (;;) {
    rest = rest.replace(/^[\s,]+/, '')
    const word = /^\S+/.exec(rest)?.[0]
    if (word === undefined) return urls
    rest = rest.slice(word.length)
    // Looked for from the first of a row of commas alone: there may be any number of them, and of rows.
    const url = word.replace(/(?<!,),+$/, '')
    if (url !== '') urls.push(url)
    if (url.length === word.length) rest = afterDescriptors(rest)
  }
}

/** Descriptors end at a comma outside parentheses. */
function afterDescriptors(text: string): string {
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (character === '(') depth += 1
    else if (character === ')' && depth > 0) depth -= 1
    else if (character === ',' && depth === 0) return text.slice(at + 1)
  }
  return ''
}
