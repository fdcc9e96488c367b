import { parseFragment } from 'parse5'
import { adapter } from 'parse5-htmlparser2-tree-adapter'
import { compilePattern } from '../language/pattern.ts'
import { nodeText } from '../sources/node-text.ts'
import { madeOf, type RawValue } from './raw-value.ts'

/** One step between what a source gives and the type of its field. */
export type TransformDefinition =
  | { readonly kind: WordTransform }
  | { readonly kind: 'replace'; readonly pattern: string; readonly with: string }
  | { readonly kind: 'remove'; readonly pattern: string }
  | { readonly kind: 'prefix' | 'suffix' | 'split' | 'join'; readonly text: string }
  | { readonly kind: 'split-match'; readonly pattern: string }
  /** As those of JavaScript: from included, to left out, negative ones counted from the end. */
  | { readonly kind: 'slice' | 'items'; readonly from: number; readonly to: number | undefined }
  | { readonly kind: 'item'; readonly index: number }

export const WORD_TRANSFORMS = ['trim', 'collapse', 'lower', 'upper', 'capitalize', 'strip-tags', 'unique', 'reverse', 'sort'] as const
export type WordTransform = (typeof WORD_TRANSFORMS)[number]

/**
 * Values of a source in, values out. Shape: `needsAll` where a step looks at more than one of them. A number that is only picked stays one.
 */
export interface Transformation {
  readonly needsAll: boolean
  apply(values: readonly RawValue[]): readonly RawValue[]
}

/** What a page can make of one text by splitting it. */
const MAX_TEXTS = 50_000
const OF_ALL: ReadonlySet<TransformDefinition['kind']> = new Set(['join', 'item', 'items', 'unique', 'reverse', 'sort'])

type Step = (values: readonly RawValue[]) => readonly RawValue[]

/** Errors: SyntaxError of a pattern; checked when the file is read. */
export function compileTransforms(definitions: readonly TransformDefinition[]): Transformation {
  const steps = definitions.map(compileStep)
  return {
    needsAll: definitions.some(({ kind }) => OF_ALL.has(kind)),
    apply: (values) => steps.reduce((given, step) => step(given), values),
  }
}

function compileStep(definition: TransformDefinition): Step {
  switch (definition.kind) {
    case 'replace':
    case 'remove': {
      const pattern = everywhere(definition.pattern)
      const replacement = definition.kind === 'replace' ? definition.with : ''
      return ofEach((text) => text.replace(pattern, replacement))
    }
    case 'prefix':
      return ofEach((text) => (isBlank(text) ? text : `${definition.text}${text}`))
    case 'suffix':
      return ofEach((text) => (isBlank(text) ? text : `${text}${definition.text}`))
    case 'split':
      return split(definition.text)
    case 'split-match':
      return split(everywhere(definition.pattern))
    case 'join':
      return join(definition.text)
    case 'slice':
      return ofEach((text) => slicedText(text, definition.from, definition.to))
    case 'items':
      return (values) => values.slice(definition.from, definition.to)
    case 'item':
      return (values) => {
        const found = values.at(definition.index)
        return found === undefined ? [] : [found]
      }
    default:
      return wordStep(definition.kind)
  }
}

function wordStep(kind: WordTransform): Step {
  switch (kind) {
    case 'trim':
      return ofEach((text) => text.trim())
    case 'collapse':
      return ofEach((text) => text.replace(/\s+/g, ' ').trim())
    case 'lower':
      return ofEach((text) => text.toLowerCase())
    case 'upper':
      return ofEach((text) => text.toUpperCase())
    case 'capitalize':
      return ofEach((text) => text.replace(/^\s*\S/u, (first) => first.toUpperCase()))
    case 'strip-tags':
      return ofEach(textOfHtml)
    case 'unique':
      return unique
    case 'reverse':
      return (values) => values.toReversed()
    case 'sort':
      return (values) => values.toSorted((a, b) => compareTexts(String(a), String(b)))
  }
}

function ofEach(change: (text: string) => string): Step {
  return (values) => values.map((value) => madeOf(change(String(value)), value))
}

/** What is put around nothing, or between nothings, would make a value of them: the page said none. */
function isBlank(text: string): boolean {
  return text.trim() === ''
}

function join(separator: string): Step {
  return (values) => {
    const parts = values.filter((value) => !isBlank(String(value)))
    return parts.length === 0 ? [] : [madeOf(parts.join(separator), ...parts)]
  }
}

/** Parts that are empty are none: a comma at the end begins no part. */
function split(separator: string | RegExp): Step {
  return (values) =>
    values
      .flatMap((value) =>
        String(value)
          .split(separator, MAX_TEXTS)
          .filter((part) => part !== undefined && !isBlank(part))
          .map((part) => madeOf(part, value)),
      )
      .slice(0, MAX_TEXTS)
}

/** The first of those that are written alike. */
function unique(values: readonly RawValue[]): readonly RawValue[] {
  const byText = new Map<string, RawValue>()
  for (const value of values) if (!byText.has(String(value))) byText.set(String(value), value)
  return [...byText.values()]
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** By characters as people count them: never through the middle of one that is two in JavaScript. */
function slicedText(text: string, from: number, to: number | undefined): string {
  return /[\ud800-\udfff]/.test(text) ? [...text].slice(from, to).join('') : text.slice(from, to)
}

function textOfHtml(text: string): string {
  return /[<&]/.test(text) ? nodeText(parseFragment(text, { treeAdapter: adapter, scriptingEnabled: true })) : text
}

function everywhere(pattern: string): RegExp {
  const { source, flags } = compilePattern(pattern)
  return new RegExp(source, `${flags}g`)
}
