import { type Document, visit } from 'yaml'
import { errorText } from './errors.ts'

/**
 * What a YAML parser says of a text, for its author. Shape: pos: offsets into the text; message: the parser's own, used where ours says no
 * more.
 */
export function yamlFault(text: string, { code, message, pos }: YamlError): string {
  if (code === 'MULTIPLE_DOCS') return 'the file holds several documents (---); expected one'
  if (code === 'DUPLICATE_KEY') {
    const key = /^(?:"[^"\n]*"|'[^'\n]*'|[^\s:,{}]+)/.exec(text.slice(pos[0], pos[0] + 200))?.[0]
    if (key !== undefined) return `the key ${key} is there twice`
  }
  const line = text.slice(text.lastIndexOf('\n', pos[0] - 1) + 1).split('\n', 1)[0] ?? ''
  // Its brace begins a map.
  const variable = /[{,[:]\s*(\$\{\w+\})/.exec(line)?.[1]
  if (variable !== undefined) return `${variable} within braces or brackets must be quoted: "${variable}"`
  if (message.startsWith(STACK_EXCEEDED)) return 'it is nested too deeply to be read'
  return message
}

interface YamlError {
  readonly code: string
  readonly message: string
  readonly pos: readonly [number, number]
}

/** What V8 says, and the parser hands on. */
const STACK_EXCEEDED = 'Maximum call stack'
/** Aliases may stand for this many values each: a file of ten lines could mean gigabytes. */
const MAX_ALIASES = 100

/** Values of a document without errors, or why it has none. */
export type YamlValue =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly fault: string; readonly pos: number }

/** Shape: a fault, with its offset in the text, where an alias stands for nothing, for itself, or for more than it may. */
export function yamlValue(document: Document): YamlValue {
  let endless: { readonly source: string; readonly pos: number } | undefined
  visit(document, {
    Alias(_key, alias, path) {
      const meant = alias.resolve(document)
      if (meant === undefined || !path.includes(meant)) return undefined
      endless = { source: alias.source, pos: alias.range?.[0] ?? 0 }
      return visit.BREAK
    },
  })
  if (endless !== undefined) return { ok: false, fault: `the alias *${endless.source} stands within what it stands for`, pos: endless.pos }
  try {
    return { ok: true, value: document.toJS({ maxAliasCount: MAX_ALIASES }) }
  } catch (error) {
    const text = errorText(error)
    const fault = text.startsWith('Excessive alias') ? 'its aliases (*name) stand for too many values' : text
    return { ok: false, fault, pos: 0 }
  }
}
