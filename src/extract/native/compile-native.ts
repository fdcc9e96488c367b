import { type Extracted, extractScopes } from '../declarative-extractor.ts'
import { compileCondition, conditional, type SourceCompiler } from '../language/compile-condition.ts'
import { compileFieldsWith } from '../language/compile-field.ts'
import type { ExtractorDefinition, FieldDefinition, SourceDefinition } from '../language/definition.ts'
import { sourceText } from '../language/definition.ts'
import { attributeValues, RAW_TEXT, textFormOf } from '../language/element-value.ts'
import { type FieldScope, NO_LIMIT, type PageTree, type SourceReader } from '../language/field-scope.ts'
import { metaSource, structuredSource } from '../language/page-source.ts'
import { refined } from '../language/refine-source.ts'
import type { RawValue } from '../values/raw-value.ts'
import { PLAIN_TEXT, type ScalarKind } from '../values/value-type.ts'
import type { NativePage } from './native-page.ts'
import type { NativeNode } from './native-parser.ts'
import { isNativeAttribute, isNativeValue, nativeSelector } from './native-selector.ts'
import { nativeText } from './native-text.ts'

/** The tree of the native parser. */
export interface NativeTree extends PageTree {
  readonly scope: NativeNode
  readonly page: NativePage
}

/** A declarative extractor that reads pages of the native parser, all of it. */
export interface NativeExtractor {
  /** Shape: undefined where only the default parser can tell, which one learns on the way. */
  extract(page: NativePage, canonicalUrl: string): Extracted | undefined
}

/** Or why it is for the default parser alone, as the end of a sentence that begins with the extractor. */
export type NativeCompilation = { readonly ok: true; readonly extractor: NativeExtractor } | { readonly ok: false; readonly reason: string }

/** Shape: a definition that was read without errors. Errors: none. */
export function compileNative(definition: ExtractorDefinition): NativeCompilation {
  try {
    return { ok: true, extractor: compiled(definition) }
  } catch (error) {
    if (!(error instanceof NotNative)) throw error
    return { ok: false, reason: error.message }
  }
}

/** The extractor, or the page, needs the default parser. */
class NotNative extends Error {}

function compiled(definition: ExtractorDefinition): NativeExtractor {
  if (definition.parse !== 'document') throw new NotNative('it reads fragments')
  const each = definition.each === undefined ? undefined : selectorOf(definition.each, 'each')
  const condition = definition.when === undefined ? undefined : compileCondition<NativeTree>(definition.when, plainIn('when'))
  const fields = definition.fields.flatMap((field) => fieldOf(field))
  return {
    extract(page, canonicalUrl) {
      const whole: FieldScope<NativeTree> = {
        page,
        element: page.root,
        owners: undefined,
        node: undefined,
        meta: undefined,
        row: undefined,
      }
      try {
        const scopes = condition?.holds(whole) === false ? [] : each === undefined ? [whole] : elementScopes(whole, each, NO_LIMIT)
        return extractScopes(definition, fields, scopes, canonicalUrl)
      } catch {
        // Whatever it is, the default parser says what comes of the page: records, or the reason why there are none.
        return undefined
      }
    },
  }
}

function fieldOf(field: FieldDefinition): ReturnType<typeof compileFieldsWith<NativeTree, SourceReader<NativeTree>>> {
  const plain = plainIn(`the field ${field.name}`)
  return compileFieldsWith<NativeTree, SourceReader<NativeTree>>([field], {
    plain,
    conditional(source, kind, isList) {
      const base = plain(source, kind, isList)
      return source.when === undefined ? base : conditional(base, compileCondition(source.when, plain))
    },
  })
}

/** `compileSource` for this tree. `where`: the part of the extractor, for the reason. */
function plainIn(where: string): SourceCompiler<NativeTree> {
  return (source, kind, isList) => refined(source, baseSource(source, kind, isList, where), kind)
}

function baseSource(source: SourceDefinition, kind: ScalarKind | 'record', isList: boolean, where: string): SourceReader<NativeTree> {
  switch (source.kind) {
    case 'css':
      return cssSource(source, kind, where)
    case 'link':
      return linkSource(source, kind, where)
    case 'meta':
      return metaSource(source.name)
    case 'jsonld':
      return structuredSource(source, kind, isList, { graph: ({ page, element }) => page.jsonLdIn(element), text: undefined })
    default:
      throw new NotNative(`${where} reads ${source.kind}`)
  }
}

function cssSource(
  source: Extract<SourceDefinition, { kind: 'css' }>,
  kind: ScalarKind | 'record',
  where: string,
): SourceReader<NativeTree> {
  const selector = source.selector === '' ? undefined : selectorOf(source.selector, where)
  const take = elementReader(source.attribute, kind, where, textFormOf(source, kind))
  return {
    text: sourceText(source),
    isMachine: source.attribute !== undefined,
    isMade: false,
    raws: (scope, limit) => elementsOf(selector, scope, limit).flatMap(take),
    scopes: (scope, limit) => elementScopes(scope, selector, limit),
  }
}

/** `rel` is a list of words, which the native engine splits elsewhere: it finds what may be meant, and the words are looked at here. */
function linkSource(
  source: Extract<SourceDefinition, { kind: 'link' }>,
  kind: ScalarKind | 'record',
  where: string,
): SourceReader<NativeTree> {
  const { rel, hreflang } = source
  if (!/^[a-z0-9-]+$/i.test(rel) || (hreflang !== undefined && !isNativeValue(hreflang))) {
    throw new NotNative(`${where} has a link with odd letters`)
  }
  const css = `link[href][rel*="${rel}" i]${hreflang === undefined ? '' : `[hreflang="${hreflang}" i]`}`
  const word = new RegExp(`(?:^|\\s)${rel}(?:$|\\s)`, 'i')
  const take = elementReader('href', kind, where)
  const find = ({ page }: FieldScope<NativeTree>, limit: number): readonly NativeNode[] =>
    page.root
      .querySelectorAll(css)
      .filter((element) => word.test(element.getAttribute('rel') ?? ''))
      .slice(0, limit)
  return {
    text: sourceText(source),
    isMachine: true,
    isMade: false,
    raws: (scope, limit) => find(scope, limit).flatMap(take),
    // No element stands within a link.
    scopes: (scope, limit) => find(scope, limit).map((element) => innerScope(scope, element)),
  }
}

function selectorOf(text: string, where: string): string {
  const selector = nativeSelector(text)
  if (!selector.ok) throw new NotNative(`${where} has the selector ${JSON.stringify(text)}: ${selector.reason}`)
  return selector.css
}

/** The element of a scope itself; for a whole page its root element. */
function elementsOf(selector: string | undefined, { element }: FieldScope<NativeTree>, limit: number): readonly NativeNode[] {
  if (selector !== undefined && limit !== 1) return element.querySelectorAll(selector)
  const found = selector !== undefined ? element.querySelector(selector) : element.nodeType === 9 ? element.documentElement : element
  return found === null ? [] : [found]
}

/** A scope per element. Where one stands within another, whose is whose is for the default parser to tell. */
function elementScopes(scope: FieldScope<NativeTree>, selector: string | undefined, limit: number): FieldScope<NativeTree>[] {
  const elements = elementsOf(selector, scope, limit)
  if (selector !== undefined && elements.length > 1 && elements.some((element) => element.querySelector(selector) !== null)) {
    throw new NotNative('records stand within each other')
  }
  return elements.map((element) => innerScope(scope, element))
}

function innerScope({ page }: FieldScope<NativeTree>, element: NativeNode): FieldScope<NativeTree> {
  return { page, element, owners: undefined, node: undefined, meta: undefined, row: undefined }
}

function elementReader(
  attribute: string | undefined,
  kind: ScalarKind | 'record',
  where: string,
  form = PLAIN_TEXT,
): (element: NativeNode) => RawValue[] {
  if (attribute === undefined) {
    if (kind === 'html' || kind === 'markdown') throw new NotNative(`${where} is ${kind}`)
    return (element) => [RAW_TEXT.has(element.localName ?? '') ? element.textContent : nativeText(element, form)]
  }
  if (!isNativeAttribute(attribute)) throw new NotNative(`${where} reads the attribute ${attribute}`)
  const lower = attribute.toLowerCase()
  return (element) => {
    // Names in HTML are lower case; those of SVG are not.
    const value = element.getAttribute(attribute) ?? (lower === attribute ? null : element.getAttribute(lower))
    return value === null ? [] : attributeValues(value, attribute, kind)
  }
}
