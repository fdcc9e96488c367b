/**
 * The encoding that an HTML page declares in itself.
 * Source: HTML standard, "prescan a byte stream to determine its encoding". Beyond its 1,024 bytes browsers go on in the parser; so
 * do we, up to 16 KiB or the body, there passing over the text of scripts and styles, in which a parser would see no tags.
 */

const STANDARD_BYTES = 1_024
const EXTENDED_BYTES = 16_384

/** Shape: label -> name of an encoding that exists, or null. */
export type LabelLookup = (label: string) => string | null

/** Shape: the name of the encoding, or null where the page declares none that exists. Cost: bounded by 16 KiB. */
export function prescanMeta(bytes: Uint8Array, lookup: LabelLookup): string | null {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, EXTENDED_BYTES)).toString('latin1')
  return scan(head.slice(0, STANDARD_BYTES), lookup, false) ?? xmlDeclaration(head, lookup) ?? scan(head, lookup, true)
}

/** The encoding of an XML declaration at the start of the text. UTF-16 can't be true of bytes that were just read as ASCII. */
export function xmlDeclaration(head: string, lookup: LabelLookup): string | null {
  const match = /^<\?xml\s([^>]{0,512})>/.exec(head.slice(0, STANDARD_BYTES))
  const label = /(?:^|\s)encoding\s*=\s*(?:"([^"]*)"|'([^']*)')/.exec(match?.[1] ?? '')
  const name = label === null ? null : lookup(label[1] ?? label[2] ?? '')
  return name === null ? null : readableAsAscii(name)
}

function scan(text: string, lookup: LabelLookup, asParser: boolean): string | null {
  let at = text.indexOf('<')
  while (at !== -1) {
    const rest = text.slice(at, at + 6).toLowerCase()
    if (rest.startsWith('<!--')) {
      const end = text.indexOf('-->', at + 2)
      if (end === -1) return null
      at = end + 2
    } else if (/^<meta[\s/]/.test(rest)) {
      const { attributes, end } = readAttributes(text, at + 5)
      const found = metaEncoding(attributes, lookup)
      if (found !== null) return found
      at = end
    } else if (/^<\/?[a-z]/.test(rest)) {
      const nameEnd = endOfName(text, at + 1)
      const name = text.slice(at + 1, nameEnd).toLowerCase()
      if (asParser && name === 'body') return null
      at = readAttributes(text, nameEnd).end
      if (asParser && (name === 'script' || name === 'style')) at = endOfRawText(text, at, name)
    } else if (/^<[!/?]/.test(rest)) {
      at = text.indexOf('>', at)
    }
    if (at === -1) return null
    at = text.indexOf('<', at + 1)
  }
  return null
}

function endOfRawText(text: string, from: number, name: string): number {
  const end = text.toLowerCase().indexOf(`</${name}`, from)
  return end === -1 ? text.length : end - 1
}

function endOfName(text: string, from: number): number {
  let at = from
  while (at < text.length && !isSpace(text[at]) && text[at] !== '>') at++
  return at
}

/** A page of nothing but attributes is read once: each call goes on where the last one ended. */
function readAttributes(text: string, from: number): { attributes: Map<string, string>; end: number } {
  const attributes = new Map<string, string>()
  let at = from
  for (;;) {
    while (at < text.length && (isSpace(text[at]) || text[at] === '/')) at++
    if (at >= text.length || text[at] === '>') return { attributes, end: at }
    const nameStart = at
    while (at < text.length && !isSpace(text[at]) && text[at] !== '/' && text[at] !== '>' && (text[at] !== '=' || at === nameStart)) at++
    const name = text.slice(nameStart, at).toLowerCase()
    at = skipSpaces(text, at)
    let value = ''
    if (text[at] === '=') {
      at = skipSpaces(text, at + 1)
      const read = readValue(text, at)
      value = read.value
      at = read.end
    }
    if (!attributes.has(name)) attributes.set(name, value.toLowerCase())
  }
}

function readValue(text: string, from: number): { value: string; end: number } {
  const quote = text[from]
  if (quote === '"' || quote === "'") {
    const end = text.indexOf(quote, from + 1)
    return end === -1 ? { value: '', end: text.length } : { value: text.slice(from + 1, end), end: end + 1 }
  }
  const end = endOfName(text, from)
  return { value: text.slice(from, end), end }
}

function metaEncoding(attributes: ReadonlyMap<string, string>, lookup: LabelLookup): string | null {
  const direct = attributes.get('charset')
  const label = direct ?? (attributes.get('http-equiv') === 'content-type' ? charsetInContent(attributes.get('content') ?? '') : undefined)
  const name = label === undefined ? null : lookup(label)
  return name === null ? null : readableAsAscii(name)
}

/** Source: HTML standard, "extracting a character encoding from a meta element". */
function charsetInContent(content: string): string | undefined {
  let at = 0
  for (;;) {
    const found = content.indexOf('charset', at)
    if (found === -1) return undefined
    at = skipSpaces(content, found + 'charset'.length)
    if (content[at] !== '=') continue
    at = skipSpaces(content, at + 1)
    const quote = content[at]
    if (quote === '"' || quote === "'") {
      const end = content.indexOf(quote, at + 1)
      return end === -1 ? undefined : content.slice(at + 1, end)
    }
    return /^[^\s;]*/.exec(content.slice(at))?.[0]
  }
}

function readableAsAscii(name: string): string {
  if (name.startsWith('UTF-16')) return 'UTF-8'
  return name === 'x-user-defined' ? 'windows-1252' : name
}

function skipSpaces(text: string, from: number): number {
  let at = from
  while (at < text.length && isSpace(text[at])) at++
  return at
}

function isSpace(char: string | undefined): boolean {
  return char === ' ' || char === '\n' || char === '\t' || char === '\r' || char === '\f'
}
