import { compileFunction } from 'node:vm'
import { z } from 'zod'
import { errorText, MillraceError } from '../../kernel/errors.ts'
import type { Extracted, ExtractedItem } from '../declarative-extractor.ts'
import type { CodeExtractor, ExtractorInput } from '../define-extractor.ts'
import type { CodeDescription } from '../extractor-source.ts'
import { EXTRACTOR_SHAPE } from '../language/definition-shape.ts'
import { type Confinement, createConfinement, thrownText } from './confinement.ts'

/** A code extractor ready to run. Only ever in a process of its own: what it does can't be undone. */
export interface LoadedCode {
  readonly description: CodeDescription
  extract(input: ExtractorInput, seed: string): Extracted
}

const SHAPE = EXTRACTOR_SHAPE.pick({ name: true, version: true, description: true, topic: true, match: true }).extend({
  schema: z.record(z.string(), z.unknown()),
  extract: z.custom<CodeExtractor['extract']>((value) => typeof value === 'function', 'expected a function'),
})

/** Runs a bundled module and takes its default export. Errors: EXTRACTOR_INVALID. */
export function loadCode(file: string, code: string): LoadedCode {
  const confinement = createConfinement(file)
  const exported = evaluate(file, code, confinement)
  const result = SHAPE.safeParse(exported)
  if (!result.success) {
    const faults = result.error.issues.map(
      ({ path, message }) => `${file}:1:1 ${path.map(String).join('.') || 'its default export'}: ${message}`,
    )
    throw new MillraceError('EXTRACTOR_INVALID', `${faults.join('\n')}\n${file}:1:1 expected \`export default defineExtractor({ … })\``)
  }
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
      let returned: unknown
      try {
        returned = extract(input)
      } catch (error) {
        return { ok: false, code: 'EXTRACT_FAILED', message: `the extractor threw ${thrownText(error, file)}` }
      }
      return itemsOf(returned)
    },
  }
}

function evaluate(file: string, code: string, { globals, require }: Confinement): unknown {
  const module: { exports: unknown } = { exports: {} }
  try {
    const run = compileFunction(code, ['module', 'exports', 'require', '__filename', ...Object.keys(globals)], { filename: file })
    run(module, module.exports, require, file, ...Object.values(globals))
  } catch (cause) {
    throw new MillraceError('EXTRACTOR_INVALID', `${file}:1:1 the module can't be loaded: ${thrownText(cause, file)}`, { cause })
  }
  const { exports } = module
  return typeof exports === 'object' && exports !== null && 'default' in exports ? exports.default : exports
}

function itemsOf(returned: unknown): Extracted {
  if (returned instanceof Promise) {
    // What it comes to is not waited for; that it fails must not end the process.
    returned.catch(() => undefined)
    return invalid('extract gave a promise; it is synchronous: everything it needs is in the page')
  }
  if (!Array.isArray(returned)) return invalid(`extract gave ${kindOf(returned)}; expected a list of { key, data }, empty for no record`)
  const items: ExtractedItem[] = []
  for (const [index, item] of (returned as readonly unknown[]).entries()) {
    if (typeof item !== 'object' || item === null || !('data' in item)) {
      return invalid(`item ${index} is ${kindOf(item)}; expected { key, data }`)
    }
    const key: unknown = 'key' in item ? item.key : undefined
    const isKey = (typeof key === 'string' && key !== '') || (typeof key === 'number' && Number.isFinite(key))
    if (!isKey && (key === undefined || key === null || key === '')) {
      return { ok: false, code: 'EXTRACT_KEY_MISSING', field: 'key', message: `the key of item ${index} is empty` }
    }
    if (!isKey) return invalid(`the key of item ${index} is ${kindOf(key)}; expected a text or a number`)
    items.push({ entityKey: String(key), data: item.data })
  }
  return { ok: true, items, invalid: {} }
}

function invalid(message: string): Extracted {
  return { ok: false, code: 'EXTRACT_RECORD_INVALID', message }
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'a list'
  try {
    return typeof value === 'object' || typeof value === 'function' ? `a ${typeof value}` : JSON.stringify(value).slice(0, 80)
  } catch (error) {
    return `a value that can't be shown (${errorText(error)})`
  }
}
