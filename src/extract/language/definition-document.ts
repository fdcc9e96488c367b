import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import type { z } from 'zod'
import { nearestName } from '../../kernel/nearest.ts'
import { yamlFaults, yamlValue } from '../../kernel/yaml-fault.ts'
import type { ExtractorProblem } from './extractor-problem.ts'

/** Keys and indexes from the top of a file. */
export type Path = readonly (string | number)[]

/** Larger ones are no extractors. */
const MAX_TEXT = 1_048_576

/** A YAML or JSON file that remembers where each of its values stands, and gathers what is wrong with them. */
export class DefinitionDocument {
  readonly problems: ExtractorProblem[] = []
  /** Types of nested records, by name, with the path of the field that has each. */
  readonly typeNames = new Map<string, string>()
  /** The whole file as plain values; undefined where it can't be read. */
  readonly value: unknown
  readonly #lines = new LineCounter()
  readonly #document: ReturnType<typeof parseDocument>

  constructor(text: string) {
    const readable = text.length <= MAX_TEXT
    this.#document = parseDocument(readable ? text : '', { lineCounter: this.#lines, prettyErrors: false, uniqueKeys: true })
    if (!readable) this.#add('error', `the file has ${text.length} characters; at most ${MAX_TEXT} are read`, 0)
    for (const { fault, pos } of yamlFaults(text, this.#document.errors)) this.#add('error', fault, pos)
    this.value = this.problems.length > 0 ? undefined : this.#plain()
  }

  get hasErrors(): boolean {
    return this.problems.some(({ severity }) => severity === 'error')
  }

  error(path: Path, message: string): void {
    this.problems.push(this.problemAt(path, message))
  }

  /** An error that is given back and not gathered. */
  problemAt(path: Path, message: string): ExtractorProblem {
    return this.#problem('error', message, this.#offsetOf(path))
  }

  warning(path: Path, message: string): void {
    this.#add('warning', message, this.#offsetOf(path))
  }

  /** The value in the given shape; undefined where it has another, with one problem per fault. */
  read<T extends z.ZodObject>(value: unknown, shape: T, path: Path): z.infer<T> | undefined {
    const result = shape.safeParse(value)
    if (result.success) return result.data
    for (const issue of result.error.issues) {
      const at = [...path, ...issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step))]
      if (issue.code === 'unrecognized_keys') {
        for (const key of issue.keys) this.#unknownKey([...at, key], key, Object.keys(shapeAt(shape, issue.path).shape))
      } else this.#add('error', issueText(issue, at, valueAt(value, issue.path)), this.#offsetOf(at))
    }
    return undefined
  }

  /** Keys of a map, in the order of the file. Shape: undefined, with a problem, where the value is no map. */
  entries(value: unknown, path: Path, what: string): readonly (readonly [string, unknown])[] | undefined {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return Object.entries(value)
    this.error(path, value === undefined ? `${what} is missing` : `${what} is ${shown(value)}; expected a map of names`)
    return undefined
  }

  #unknownKey(path: Path, key: string, known: readonly string[]): void {
    this.#add('error', unknownKeyText(key, known), this.#keyOffset(path))
  }

  #plain(): unknown {
    const plain = yamlValue(this.#document)
    if (plain.ok) return plain.value
    this.#add('error', plain.fault, plain.pos)
    return undefined
  }

  #add(severity: ExtractorProblem['severity'], message: string, offset: number): void {
    this.problems.push(this.#problem(severity, message, offset))
  }

  #problem(severity: ExtractorProblem['severity'], message: string, offset: number): ExtractorProblem {
    const { line, col } = this.#lines.linePos(offset)
    // At the end of an empty file the library counts from 0.
    return { severity, message, line: Math.max(1, line), column: Math.max(1, col) }
  }

  /** Of the value; of the nearest one around it where there is none. */
  #offsetOf(path: Path): number {
    let node: unknown = this.#document.contents
    let offset = startOf(node) ?? 0
    for (const [index, step] of path.entries()) {
      const next = this.#child(node, step)
      if (next === undefined) return index === path.length - 1 ? (this.#keyStart(node, step) ?? offset) : offset
      node = next
      offset = startOf(node) ?? offset
    }
    return offset
  }

  #keyOffset(path: Path): number {
    let node: unknown = this.#document.contents
    for (const step of path.slice(0, -1)) node = this.#child(node, step)
    return this.#keyStart(node, path.at(-1) ?? '') ?? this.#offsetOf(path.slice(0, -1))
  }

  #child(node: unknown, step: string | number): Node | undefined {
    const target = this.#target(node)
    if (!isMap(target) && !isSeq(target)) return undefined
    const child: unknown = target.get(step, true)
    return isNode(child) ? child : undefined
  }

  #keyStart(node: unknown, key: string | number): number | undefined {
    const target = this.#target(node)
    if (!isMap(target)) return undefined
    const pair = target.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key))
    return pair === undefined ? undefined : startOf(pair.key)
  }

  #target(node: unknown): unknown {
    return isAlias(node) ? node.resolve(this.#document) : node
  }
}

export function unknownKeyText(key: string, known: readonly string[]): string {
  const nearest = nearestName(key, known)
  const advice = nearest === undefined ? `expected one of ${known.join(', ')}` : `did you mean ${JSON.stringify(nearest)}?`
  return `unknown key ${JSON.stringify(key)}: ${advice}`
}

export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined
}

/** What is wrong with a value, for its author. Shape: path: of the value, from the top. */
export function issueText(issue: z.core.$ZodIssue, path: Path, value: unknown): string {
  const last = path.at(-1)
  // An entry of a list is named by the list.
  const name = last === undefined ? 'the file' : JSON.stringify(typeof last === 'number' ? `${path.at(-2)}[${last}]` : String(last))
  if (value === undefined) return `${name} is missing`
  if (issue.code === 'invalid_value') {
    const known = issue.values.map(String)
    const nearest = typeof value === 'string' ? nearestName(value, known) : undefined
    return `${name} is ${shown(value)}; expected one of ${known.join(', ')}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`
  }
  return `${name} is ${shown(value)}; ${issue.message.replace(/^Invalid input: |, received .*$/g, '').replace(/^Too (small|big): /, '')}`
}

export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value
  for (const step of path) {
    // One value may be written for a list of it.
    if (typeof at !== 'object' || at === null) return step === 0 ? at : undefined
    at = Object.hasOwn(at, step) ? (at as Record<PropertyKey, unknown>)[step] : undefined
  }
  return at
}

/** The object shape that an issue of unknown keys is about: the outer one, or the one of its only step. */
function shapeAt(shape: z.ZodObject, path: readonly PropertyKey[]): z.ZodObject {
  const [step] = path
  const inner: unknown = step === undefined ? undefined : shape.shape[String(step)]
  const unwrapped = hasUnwrap(inner) ? inner.unwrap() : inner
  return isObjectShape(unwrapped) ? unwrapped : shape
}

function hasUnwrap(shape: unknown): shape is { unwrap(): unknown } {
  return typeof shape === 'object' && shape !== null && 'unwrap' in shape && typeof shape.unwrap === 'function'
}

function isObjectShape(shape: unknown): shape is z.ZodObject {
  return typeof shape === 'object' && shape !== null && 'shape' in shape && typeof shape.shape === 'object'
}
