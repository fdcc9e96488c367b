import { CST, type Document, Lexer, visit } from 'yaml'
import { errorText } from './errors.ts'

/** What is wrong with a text. Shape: pos: offset of it. */
export interface YamlFault {
  readonly fault: string
  readonly pos: number
}

/**
 * What a YAML parser says of a text, for its author. What it finds at the end of the text is not closed where it opens: there the fault is.
 * Shape: errors: those of the text, in the order of the parser.
 */
export function yamlFaults(text: string, errors: readonly YamlError[]): readonly YamlFault[] {
  const tooDeep = errors.find(({ message }) => message.startsWith(STACK_EXCEEDED))
  // How often it is met depends on the stack.
  if (tooDeep !== undefined) return [{ fault: 'it is nested too deeply to be read', pos: tooDeep.pos[0] }]
  const end = text.trimEnd().length
  const isAtEnd = ({ pos }: YamlError): boolean => pos[0] >= end
  const { quote, brackets } = errors.some(isAtEnd) ? openAtEnd(text) : NOTHING_OPEN
  const hasOpenQuote = errors.some((error) => isAtEnd(error) && error.message.startsWith(OPEN_QUOTE))
  return errors.flatMap((error): YamlFault[] => {
    const isQuote = error.message.startsWith(OPEN_QUOTE)
    // What would close a bracket stands behind the quote.
    if (isAtEnd(error) && hasOpenQuote && !isQuote) return []
    const openingOf = (): number | undefined => (isQuote ? quote : error.message.startsWith(OPEN_BRACKET) ? brackets.pop() : undefined)
    const pos = isAtEnd(error) ? (openingOf() ?? end) : error.pos[0]
    return [{ fault: yamlFault(text, error, pos), pos }]
  })
}

/** How the messages of the parser begin. */
const OPEN_QUOTE = 'Missing closing'
const OPEN_BRACKET = 'Flow '

interface Openings {
  /** Where the last text in quotes begins. */
  readonly quote: number | undefined
  /** The outermost first. */
  readonly brackets: number[]
}

const NOTHING_OPEN: Openings = { quote: undefined, brackets: [] }

function openAtEnd(text: string): Openings {
  const brackets: number[] = []
  let quote: number | undefined
  let offset = 0
  let isPlain = false
  for (const source of new Lexer().lex(text)) {
    const type: CST.TokenType | null = isPlain ? null : CST.tokenType(source)
    isPlain = type === 'scalar'
    if (type === 'flow-map-start' || type === 'flow-seq-start') brackets.push(offset)
    if (type === 'flow-map-end' || type === 'flow-seq-end') brackets.pop()
    if (type === 'single-quoted-scalar' || type === 'double-quoted-scalar') quote = offset
    // What these say of the next token is no part of the text.
    if (type !== 'scalar' && type !== 'doc-mode' && type !== 'flow-error-end') offset += source.length
  }
  return { quote, brackets }
}

/** Shape: message: the parser's own, used where ours says no more. */
function yamlFault(text: string, { code, message }: YamlError, pos: number): string {
  if (code === 'MULTIPLE_DOCS') return 'the file holds several documents (---); expected one'
  if (code === 'DUPLICATE_KEY') {
    const key = /^(?:"[^"\n]*"|'[^'\n]*'|[^\s:,{}]+)/.exec(text.slice(pos, pos + 200))?.[0]
    if (key !== undefined) return `the key ${key} is there twice`
  }
  const line = text.slice(text.lastIndexOf('\n', pos - 1) + 1).split('\n', 1)[0] ?? ''
  // Its brace begins a map.
  const variable = /[{,[:]\s*(\$\{\w+\})/.exec(line)?.[1]
  if (variable !== undefined) return `${variable} within braces or brackets must be quoted: "${variable}"`
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
export type YamlValue = { readonly ok: true; readonly value: unknown } | ({ readonly ok: false } & YamlFault)

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
