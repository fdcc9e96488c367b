import type { OptionDefinition, OptionKind } from './options.ts'
import { parsePolitenessRules } from './politeness-rules.ts'
import { formatDuration, formatSize, parseDuration, parseSize } from './units.ts'

export type ParsedValue =
  | { readonly ok: true; readonly value: unknown }
  /** `at`: the path within the value of what is wrong; `expected` says all of it then. */
  | { readonly ok: false; readonly expected: string; readonly at?: readonly PropertyKey[] }

const ok = (value: unknown): ParsedValue => ({ ok: true, value })
const expected = (what: string): ParsedValue => ({ ok: false, expected: what })

/** Where the option itself says nothing: a century, and what is a whole number in JavaScript. A broker can't read `8.6e+22`. */
const LARGEST: Readonly<Record<string, number>> = { duration: 36_500 * 86_400_000, size: 1024 ** 5 }

/** One value of an option, from a line of text (flag, environment, default) or from a file (numbers, lists, maps). Total. */
export function parseValue(definition: OptionDefinition, raw: unknown): ParsedValue {
  const parsed = parseKind(definition.kind, raw)
  if (parsed.ok && definition.min !== undefined && typeof parsed.value === 'number' && parsed.value < definition.min) {
    return expected(`at least ${asWritten(definition, definition.min)}`)
  }
  const max = definition.max ?? LARGEST[String(definition.kind)]
  if (parsed.ok && max !== undefined && typeof parsed.value === 'number' && parsed.value > max) {
    return expected(`at most ${asWritten(definition, max)}`)
  }
  return parsed
}

/** A number as its option is written: with its unit. */
export function asWritten({ kind }: OptionDefinition, value: number): string {
  if (kind === 'duration') return formatDuration(value)
  return kind === 'size' ? formatSize(value) : String(value)
}

function parseKind(kind: OptionKind, raw: unknown): ParsedValue {
  if (typeof kind !== 'string') {
    return typeof raw === 'string' && kind.includes(raw) ? ok(raw) : expected(`one of ${kind.join(', ')}`)
  }
  switch (kind) {
    case 'string':
      // A block of YAML ends with a line break, which is none of the text.
      return typeof raw === 'string' && raw.trim() !== '' ? ok(raw.replace(/\n$/, '')) : expected('a text')
    case 'integer':
      return parseNumber(raw, Number.isSafeInteger, 'a whole number')
    case 'number':
      return parseNumber(raw, Number.isFinite, 'a number')
    case 'boolean':
      if (raw === true || raw === 'true') return ok(true)
      if (raw === false || raw === 'false') return ok(false)
      return expected('true or false')
    case 'duration':
      return parseUnit(raw, parseDuration, 'a duration with its unit, like 30s, 10m, 14d')
    case 'size':
      return parseUnit(raw, parseSize, 'a size with its unit, like 8MiB, 512KiB')
    case 'list':
      return parseList(raw)
    case 'map':
      return parseMap(raw)
    case 'rules':
      return parsePolitenessRules(raw)
    case 'groups':
      return parseGroups(raw)
    default: {
      const unknown: never = kind
      return expected(`a value of kind ${String(unknown)}`)
    }
  }
}

function parseNumber(raw: unknown, fits: (value: number) => boolean, what: string): ParsedValue {
  const value = typeof raw === 'number' ? raw : typeof raw === 'string' && raw.trim() !== '' ? Number(raw) : Number.NaN
  return fits(value) ? ok(value) : expected(what)
}

function parseUnit(raw: unknown, parse: (text: string) => number | undefined, what: string): ParsedValue {
  const value = typeof raw === 'string' ? parse(raw) : undefined
  return value === undefined ? expected(what) : ok(value)
}

function parseList(raw: unknown): ParsedValue {
  if (typeof raw === 'string') {
    return ok(
      raw
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
    )
  }
  return Array.isArray(raw) && raw.every((item) => typeof item === 'string') ? ok(raw) : expected('a list of texts')
}

function parseMap(raw: unknown): ParsedValue {
  if (typeof raw === 'string') {
    const pairs = raw.split(',').filter((item) => item.trim() !== '')
    const entries = pairs.map((pair) => [pair.slice(0, pair.indexOf('=')).trim(), pair.slice(pair.indexOf('=') + 1).trim()] as const)
    if (pairs.some((pair) => !pair.includes('='))) return expected('name=value pairs, comma-separated')
    return ok(Object.fromEntries(entries))
  }
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return expected('a map of texts')
  return Object.values(raw).every((item) => typeof item === 'string') ? ok({ ...raw }) : expected('a map of texts')
}

function parseGroups(raw: unknown): ParsedValue {
  if (raw === '') return ok({})
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return expected('a map of group names to lists of extractor names')
  const groups: Record<string, readonly string[]> = {}
  for (const [name, names] of Object.entries(raw)) {
    if (!/^[a-z][a-z0-9-]{0,47}$/.test(name)) return expected(`group names like [a-z][a-z0-9-]*, not ${name}`)
    if (!Array.isArray(names) || !names.every((item) => typeof item === 'string')) return expected(`a list of extractor names for ${name}`)
    groups[name] = names
  }
  return ok(groups)
}
