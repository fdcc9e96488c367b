import { type CheerioAPI, load } from 'cheerio'
import { _compileUnsafe, selectAll, selectOne } from 'css-select'
import { type AnyNode, type Document, Element } from 'domhandler'
import { errorText } from '../../kernel/errors.ts'
import { checkSelector } from './selector-check.ts'

/** Where a selector looks: in the whole page, or in one element of it. */
export type Scope = Document | Element

/** A CSS selector, compiled once and used for all pages. */
export interface Selector {
  readonly text: string
  /**
   * Matches within the scope, in document order, as `element.querySelectorAll` has it: what is around the scope may count for the
   * front of a selector (`.card .price` within a `.card`). A relative one (`> td`) begins at the scope itself.
   */
  all(scope: Scope): Element[]
  first(scope: Scope): Element | undefined
}

/** Filters by position that jQuery and cheerio have and CSS has not. */
const POSITIONAL = /:(first|last|eq|nth|gt|lt|even|odd)(?![\w-])/

/** Errors: thrown as the parser words them; the reader of the file adds the position. */
export function compileSelector(text: string): Selector {
  if (text.trim() === '') throw new Error('the selector is empty')
  checkSelector(text)
  try {
    return compiled(text)
  } catch (error) {
    if (!POSITIONAL.test(text)) throw error
    return positional(text, error)
  }
}

function compiled(text: string): Selector {
  // Results are not cached: the cache would outlive the page, and knows nothing of a changing scope.
  const inDocument = _compileUnsafe<AnyNode, Element>(text, { cacheResults: false })
  const holder = scopeHolder()
  const inElement = compiledInElement(text, inDocument, holder)
  const queryFor = (scope: Scope): Query => {
    if (!(scope instanceof Element)) return inDocument
    holder.set(scope)
    return inElement
  }
  return {
    text,
    all: (scope) => selectAll<AnyNode, Element>(queryFor(scope), scope),
    first: (scope) => selectOne<AnyNode, Element>(queryFor(scope), scope) ?? undefined,
  }
}

/**
 * `inDocument` where the text names no scope: css-select takes what stands in `:not()` and `:is()` as relative to the scope it is given.
 */
function compiledInElement(text: string, inDocument: Query, holder: ScopeHolder): Query {
  // `equals` is an internal option, therefore not in the type of the public ones.
  const options = { cacheResults: false, equals: holder.equals }
  try {
    const inScope = _compileUnsafe<AnyNode, Element>(text, { ...options, relativeSelector: false }, holder.stand)
    return text.includes(':scope') ? inScope : inDocument
  } catch {
    // The text compiles, as the caller found out: a part of it begins with a combinator, and then all of it is relative.
    return _compileUnsafe<AnyNode, Element>(text, options, holder.stand)
  }
}

type Query = ReturnType<typeof _compileUnsafe<AnyNode, Element>>

interface ScopeHolder {
  readonly stand: Element
  set(scope: Element): void
  equals(a: AnyNode, b: AnyNode): boolean
}

/**
 * css-select binds a compiled selector to one scope. This stands in for it at compile time, and its `equals` says that it is whatever
 * element is the scope now.
 */
function scopeHolder(): ScopeHolder {
  const stand = new Element('scope', {})
  stand.parent = new Element('outer', {})
  let current: Element = stand
  return {
    stand,
    set(scope) {
      current = scope
    },
    equals: (a, b) => a === b || (a === stand ? b === current : b === stand && a === current),
  }
}

function positional(text: string, refused: unknown): Selector {
  const $: CheerioAPI = load('<p><b>1</b></p>')
  const find = (scope: Scope): Element[] =>
    $(scope as unknown as Parameters<CheerioAPI>[0])
      .find(text)
      .toArray() as unknown as Element[]
  try {
    find($('p')[0] as unknown as Element)
  } catch (error) {
    throw new Error(errorText(error), { cause: refused })
  }
  return { text, all: find, first: (scope) => find(scope)[0] }
}
