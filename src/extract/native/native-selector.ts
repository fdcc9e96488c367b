import { AttributeAction, type AttributeSelector, type DataType, parse, type Selector, SelectorType } from 'css-what'

/**
 * A selector for the native parser, written anew from its parts so that both engines read the same, or why it is none.
 *
 * What it may hold was compared, part by part, with the default engine (test/property/extract/native-engine.test.ts). Left out is what the
 * native one does not know (and answers with nothing), what it reads differently, and `~`, which takes it seconds on a long list.
 */
export type NativeSelector = { readonly ok: true; readonly css: string } | { readonly ok: false; readonly reason: string }

const NAME = /^[a-z_][a-z0-9_-]*$/i
/** Attributes that have a namespace in `<svg>` are found by one engine under their whole name, and by the other under a part of it. */
const NAMESPACED: ReadonlySet<string> = new Set(['xmlns', 'xlink', 'space'])
/** Printable ASCII but for quotes and backslashes: nothing that is escaped, or folded in two ways. */
const VALUE = /^[ !#-[\]-~]*$/

const OPERATORS: Readonly<Partial<Record<AttributeAction, string>>> = {
  [AttributeAction.Equals]: '=',
  [AttributeAction.Start]: '^=',
  [AttributeAction.End]: '$=',
  [AttributeAction.Any]: '*=',
  [AttributeAction.Hyphen]: '|=',
}
const PLAIN_PSEUDOS: ReadonlySet<string> = new Set([
  'first-child',
  'last-child',
  'only-child',
  'first-of-type',
  'last-of-type',
  'only-of-type',
])
const NUMBERED_PSEUDOS: ReadonlySet<string> = new Set(['nth-child', 'nth-last-child', 'nth-of-type', 'nth-last-of-type'])
const FORMULA = /^(?:odd|even|\d{1,4}|[+-]?\d{0,4}n(?:[+-]\d{1,4})?)$/

/** Errors: none; a text that does not parse is none for either engine. */
export function nativeSelector(text: string): NativeSelector {
  try {
    return { ok: true, css: listText(parse(text), true) }
  } catch (error) {
    return { ok: false, reason: error instanceof Refusal ? error.message : 'it does not parse' }
  }
}

/** An attribute that both engines read alike. */
export function isNativeAttribute(name: string): boolean {
  return NAME.test(name) && !NAMESPACED.has(name.toLowerCase())
}

/** Text that stands for itself in the value of an attribute selector. */
export function isNativeValue(text: string): boolean {
  return VALUE.test(text)
}

/** What stops the writing of a selector. */
class Refusal extends Error {}

function listText(list: readonly (readonly Selector[])[], withCombinators: boolean): string {
  return list.map((parts) => parts.map((part, index) => partText(part, index === 0, withCombinators)).join('')).join(', ')
}

function partText(part: Selector, isFirst: boolean, withCombinators: boolean): string {
  switch (part.type) {
    case SelectorType.Universal:
      return part.namespace === null ? '*' : refuse('a namespace')
    case SelectorType.Tag:
      return part.namespace === null && NAME.test(part.name) ? part.name.toLowerCase() : refuse(`the tag ${part.name}`)
    case SelectorType.Attribute:
      return attributeText(part)
    case SelectorType.Pseudo:
      return pseudoText(part.name, part.data)
    case SelectorType.Descendant:
    case SelectorType.Child:
    case SelectorType.Adjacent:
      if (isFirst) return refuse('a combinator at its beginning')
      if (!withCombinators) return refuse('a combinator in :not()')
      return part.type === SelectorType.Descendant ? ' ' : part.type === SelectorType.Child ? ' > ' : ' + '
    case SelectorType.Sibling:
      return refuse('the combinator ~')
    default:
      return refuse(part.type)
  }
}

function attributeText({ name, action, value, ignoreCase, namespace }: AttributeSelector): string {
  if (namespace !== null || !isNativeAttribute(name)) return refuse(`the attribute ${name}`)
  const attribute = name.toLowerCase()
  if (action === AttributeAction.Exists) return `[${attribute}]`
  // A class or an id, as `.card` and `#main` are read.
  if (ignoreCase === 'quirks') {
    if (!NAME.test(value)) return refuse(`the name ${value}`)
    return `${action === AttributeAction.Element ? '.' : '#'}${value}`
  }
  const operator = OPERATORS[action]
  if (operator === undefined) return refuse(action === AttributeAction.Element ? 'the operator ~=' : 'the operator !=')
  if (!isNativeValue(value)) return refuse(`the value ${JSON.stringify(value)}`)
  return `[${attribute}${operator}"${value}"${ignoreCase === null ? '' : ignoreCase ? ' i' : ' s'}]`
}

function pseudoText(name: string, data: DataType): string {
  if (PLAIN_PSEUDOS.has(name) && data === null) return `:${name}`
  if (NUMBERED_PSEUDOS.has(name) && typeof data === 'string') {
    const formula = data.toLowerCase().replace(/\s+/g, '')
    if (FORMULA.test(formula)) return `:${name}(${formula})`
  }
  if (name === 'not' && Array.isArray(data) && data.length > 0) return `:not(${listText(data, false)})`
  return refuse(`:${name}`)
}

function refuse(what: string): never {
  throw new Refusal(`it has ${what}`)
}
