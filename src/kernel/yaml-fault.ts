/** What a YAML parser says of a text, for its author. Shape: pos: offsets into the text; message: the parser's own, used where ours says no more. */
export function yamlFault(text: string, { code, message, pos }: YamlError): string {
  if (code === 'MULTIPLE_DOCS') return 'the file holds several documents (---); expected one'
  if (code === 'DUPLICATE_KEY') {
    const key = /^(?:"[^"\n]*"|'[^'\n]*'|[^\s:,{}]+)/.exec(text.slice(pos[0], pos[0] + 200))?.[0]
    if (key !== undefined) return `the key ${key} is there twice`
  }
  return message
}

interface YamlError {
  readonly code: string
  readonly message: string
  readonly pos: readonly [number, number]
}
