import { compileFunction } from 'node:vm'
import { z } from 'zod'
import { errorText } from '../../kernel/errors.ts'
import { shownValue } from '../../kernel/shown-value.ts'
import type { Extracted, ExtractedItem } from '../declarative-extractor.ts'
import type { CodeExtractor, ExtractorInput } from '../define-extractor.ts'
import type { CodeDescription } from '../extractor-source.ts'
import { issueText, unknownKeyText, valueAt } from '../language/definition-document.ts'
import { EXTRACTOR_SHAPE, MATCH_SHAPE } from '../language/definition-shape.ts'
import { type ExtractorProblem, invalidExtractor } from '../language/extractor-problem.ts'
import { BuiltIns } from './built-ins.ts'
import { BundleMap, type MappedCode, problemAt, thrownText } from './bundle-map.ts'
import { type Confinement, createConfinement } from './confinement.ts'

/** A code extractor ready to run. Only ever in a process of its own: what it does can't be undone. */
export interface LoadedCode {
  readonly description: CodeDescription
  extract(input: ExtractorInput, seed: string): Extracted
}

const SHAPE = EXTRACTOR_SHAPE.pick({ name: true, version: true, description: true, topic: true, match: true }).extend({
  schema: z.record(z.string(), z.unknown()),
  extract: z.custom<CodeExtractor['extract']>((value) => typeof value === 'function', 'expected a function'),
})

/** As they were before any extractor ran. */
const builtIns = new BuiltIns()
let hasCodeRun = false

/**
 * Runs a bundled module and takes its default export. Errors: EXTRACTOR_INVALID with the places in the author's files, or with the built-in
 * functions that the module changes.
 */
export function loadCode(module: MappedCode): LoadedCode {
  const confinement = createConfinement(module.file)
  const map = new BundleMap(module)
  const exported = evaluate(module, confinement, map)
  const result = SHAPE.safeParse(exported)
  if (!result.success) throw invalidExtractor(module.shown, problemsOf(exported, result.error.issues, map))
  const { name, version, description, topic, match, schema, extract } = result.data
  const described: CodeDescription = {
    name,
    version,
    description,
    topic,
    match: { hosts: match?.hosts ?? [], paths: match?.paths ?? [], status: match?.status ?? [], types: match?.types ?? [] },
    schema: JSON.stringify(schema),
  }
  return {
    description: described,
    extract(input, seed) {
      confinement.enter(input.page.fetchedAt, seed)
      const { ended, changed } = runExtractorCode(() => extract(input))
      const faults = ended.ok ? [] : [`threw ${thrownText(map.thrown(ended.error))}`]
      if (changed.length > 0) faults.push(changedText(changed))
      if (ended.ok && faults.length === 0) return readItems(ended.value)
      return { ok: false, code: 'EXTRACT_FAILED', message: `the extractor ${faults.join(', and ')}` }
    },
  }
}

/**
 * Puts the language back before a page: what an extractor left behind, a promise that nobody awaited, may have changed it since the page
 * before. Shape: names of what had changed, which is no fault of this page. Errors: LanguageBroken.
 */
export function putBackBetweenPages(): readonly string[] {
  return hasCodeRun ? builtIns.putBack() : []
}

type Ended = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown }

/** Runs what an extractor's author wrote. The language is put back before anything else runs: whatever follows trusts it. */
function runExtractorCode(call: () => unknown): { readonly ended: Ended; readonly changed: readonly string[] } {
  hasCodeRun = true
  let ended: Ended
  try {
    ended = { ok: true, value: call() }
  } catch (error) {
    ended = { ok: false, error }
  }
  return { ended, changed: builtIns.putBack() }
}

/** What is wrong with a default export, in the order of the file. */
function problemsOf(exported: unknown, issues: readonly z.core.$ZodIssue[], map: BundleMap): readonly ExtractorProblem[] {
  const isExtractor = typeof exported === 'object' && exported !== null && ['name', 'schema', 'extract'].some((key) => key in exported)
  if (!isExtractor) {
    return [problemAt(map.property([]), 'its default export is no extractor; expected `export default defineExtractor({ … })`')]
  }
  const problems = issues.flatMap((issue) => {
    const path = issue.path.map((key) => (typeof key === 'number' ? key : String(key)))
    if (issue.code !== 'unrecognized_keys') return problemAt(map.property(path), issueText(issue, path, valueAt(exported, issue.path)))
    const known = Object.keys((path.length === 0 ? SHAPE : MATCH_SHAPE).shape)
    return issue.keys.map((key) => problemAt(map.property([...path, key]), unknownKeyText(key, known)))
  })
  return problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
}

function evaluate({ file, shown, code }: MappedCode, { language, scopes, require }: Confinement, map: BundleMap): unknown {
  const module: { exports: unknown } = { exports: {} }
  const { ended, changed } = runExtractorCode(() => {
    const run = compileFunction(code, ['module', 'exports', 'require', '__filename', ...Object.keys(language)], {
      filename: file,
      contextExtensions: [...scopes],
    })
    // `this` as in CommonJS: left out, it is the global object.
    run.call(module.exports, module, module.exports, require, file, ...Object.values(language))
  })
  const changes = changed.length === 0 ? [] : [problemAt(undefined, `the module ${changedText(changed)}`)]
  if (!ended.ok) {
    const { text, calls, place } = map.thrown(ended.error)
    // A single place is what the line begins with.
    const why = thrownText({ text, calls: calls.length === 1 ? [] : calls })
    throw invalidExtractor(shown, [problemAt(place, `the module can't be loaded: ${why}`), ...changes], ended.error)
  }
  if (changes.length > 0) throw invalidExtractor(shown, changes)
  const { exports } = module
  return typeof exports === 'object' && exports !== null && 'default' in exports ? exports.default : exports
}

const SHOWN_CHANGES = 3

/** `changed …`, of whoever did it. */
export function changedText(changed: readonly string[]): string {
  const more = changed.length > SHOWN_CHANGES ? ` and ${changed.length - SHOWN_CHANGES} more` : ''
  return `changed ${changed.slice(0, SHOWN_CHANGES).join(', ')}${more}, which all extractors of the process share; it was put back`
}

/** What is there may throw when it is looked at: a getter, a proxy. */
function readItems(returned: unknown): Extracted {
  try {
    return itemsOf(returned)
  } catch (error) {
    return invalid(`what extract gave can't be read: ${errorText(error).slice(0, 1_000)}`)
  }
}

function itemsOf(returned: unknown): Extracted {
  if (returned instanceof Promise) {
    // What it comes to is not waited for; that it fails must not end the process.
    returned.catch(() => undefined)
    return invalid('extract gave a promise; it is synchronous: everything it needs is in the page')
  }
  if (!Array.isArray(returned))
    return invalid(`extract gave ${shownValue(returned)}; expected a list of { key, data }, empty for no record`)
  const items: ExtractedItem[] = []
  for (const [index, item] of (returned as readonly unknown[]).entries()) {
    if (typeof item !== 'object' || item === null || !('data' in item)) {
      return invalid(`item ${index} is ${shownValue(item)}; expected { key, data }`)
    }
    const key: unknown = 'key' in item ? item.key : undefined
    const isKey = (typeof key === 'string' && key !== '') || (typeof key === 'number' && Number.isFinite(key))
    if (!isKey && (key === undefined || key === null || key === '')) {
      return { ok: false, code: 'EXTRACT_KEY_MISSING', field: 'key', message: `the key of item ${index} is empty` }
    }
    if (!isKey) return invalid(`the key of item ${index} is ${shownValue(key)}; expected a text or a number`)
    items.push({ entityKey: String(key), data: item.data })
  }
  return { ok: true, items, invalid: {} }
}

function invalid(message: string): Extracted {
  return { ok: false, code: 'EXTRACT_RECORD_INVALID', message }
}
