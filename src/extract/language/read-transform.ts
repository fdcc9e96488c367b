import { errorText } from '../../kernel/errors.ts'
import { nearestName } from '../../kernel/nearest.ts'
import { type TransformDefinition, WORD_TRANSFORMS, type WordTransform } from '../values/transform.ts'
import { type DefinitionDocument, type Path, shown } from './definition-document.ts'
import { compilePattern } from './pattern.ts'

/** Transforms that are a map of their name to what they need. */
const WITH_OPTION = ['replace', 'remove', 'prefix', 'suffix', 'split', 'join', 'slice', 'items', 'item'] as const
type NameWithOption = (typeof WITH_OPTION)[number]

/** `transform` of a field or source: one step or a list of them. Shape: undefined, with a problem, where one of them is none. */
export function readTransforms(document: DefinitionDocument, value: unknown, path: Path): readonly TransformDefinition[] | undefined {
  const isList = Array.isArray(value)
  const entries: readonly unknown[] = isList ? value : [value]
  if (entries.length === 0) {
    document.error(path, '"transform" is empty; expected a step or a list of steps')
    return undefined
  }
  const steps = entries.map((entry, index) => readStep(document, entry, isList ? [...path, index] : path))
  const found = steps.filter((step) => step !== undefined)
  return found.length === steps.length ? found : undefined
}

function readStep(document: DefinitionDocument, entry: unknown, path: Path): TransformDefinition | undefined {
  if (typeof entry === 'string') {
    if (isWord(entry)) return { kind: entry }
    const needs = WITH_OPTION.some((name) => name === entry)
    document.error(path, needs ? `the transform ${entry} needs a value: { ${EXAMPLES[entry as NameWithOption]} }` : unknown(entry))
    return undefined
  }
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    document.error(path, `a transform is ${shown(entry)}; expected a name such as lower, or a map such as { ${EXAMPLES.replace} }`)
    return undefined
  }
  const keys = Object.keys(entry)
  const [name] = keys
  if (name === undefined || keys.length > 1) {
    document.error(path, `a transform is a map of ${keys.length} names; expected one, and a list of steps for several`)
    return undefined
  }
  const given: unknown = (entry as Record<string, unknown>)[name]
  if (!isNameWithOption(name)) {
    document.error([...path, name], isWord(name) ? `the transform ${name} takes no value; write ${name}` : unknown(name))
    return undefined
  }
  const step = stepOf(document, name, given, [...path, name])
  if (step === 'unfit') document.error([...path, name], `${name} is ${shown(given)}; expected { ${EXAMPLES[name]} }`)
  return step === 'unfit' ? undefined : step
}

const EXAMPLES: Readonly<Record<NameWithOption, string>> = {
  replace: "replace: ['pattern', 'text']",
  remove: "remove: 'pattern'",
  prefix: "prefix: 'text'",
  suffix: "suffix: 'text'",
  split: "split: ',' } or { split: { match: 'pattern' }",
  join: "join: ', '",
  slice: 'slice: [0, 10]',
  items: 'items: [1, 3]',
  item: 'item: -1',
}

/** Shape: undefined where the problem has been told already. */
function stepOf(document: DefinitionDocument, name: NameWithOption, given: unknown, path: Path): TransformDefinition | undefined | 'unfit' {
  switch (name) {
    case 'replace': {
      if (!Array.isArray(given) || given.length !== 2) return 'unfit'
      const [pattern, text]: unknown[] = given
      if (typeof pattern !== 'string' || pattern === '' || typeof text !== 'string') return 'unfit'
      return checkPattern(document, pattern, [...path, 0]) ? { kind: name, pattern, with: text } : undefined
    }
    case 'remove':
      if (typeof given !== 'string' || given === '') return 'unfit'
      return checkPattern(document, given, path) ? { kind: name, pattern: given } : undefined
    case 'prefix':
    case 'suffix':
    case 'join':
      return typeof given === 'string' ? { kind: name, text: given } : 'unfit'
    case 'split': {
      if (typeof given === 'string') return given === '' ? 'unfit' : { kind: name, text: given }
      if (typeof given !== 'object' || given === null || !('match' in given) || Object.keys(given).length !== 1) return 'unfit'
      if (typeof given.match !== 'string' || given.match === '') return 'unfit'
      return checkPattern(document, given.match, [...path, 'match']) ? { kind: 'split-match', pattern: given.match } : undefined
    }
    case 'slice':
    case 'items': {
      const bounds: readonly unknown[] = Array.isArray(given) ? given : [given]
      const [from, to] = bounds
      if (bounds.length > 2 || !Number.isSafeInteger(from) || (to !== undefined && !Number.isSafeInteger(to))) return 'unfit'
      return { kind: name, from: from as number, to: to as number | undefined }
    }
    case 'item':
      return typeof given === 'number' && Number.isSafeInteger(given) ? { kind: name, index: given } : 'unfit'
  }
}

/** A pattern that does not compile is an error at its place. */
export function checkPattern(document: DefinitionDocument, pattern: string, path: Path): boolean {
  try {
    compilePattern(pattern)
    return true
  } catch (error) {
    document.error(path, `the pattern ${JSON.stringify(pattern)} can't be used: ${errorText(error)}`)
    return false
  }
}

function unknown(name: string): string {
  const known = [...WORD_TRANSFORMS, ...WITH_OPTION]
  const nearest = nearestName(name, known)
  return `unknown transform ${JSON.stringify(name)}: ${nearest === undefined ? `expected one of ${known.join(', ')}` : `did you mean ${nearest}?`}`
}

function isWord(name: string): name is WordTransform {
  return WORD_TRANSFORMS.some((word) => word === name)
}

function isNameWithOption(name: string): name is NameWithOption {
  return WITH_OPTION.some((known) => known === name)
}
