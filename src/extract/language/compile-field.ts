import { withEncodedQuery } from '../../message/charset.ts'
import { type RawValue, SeenText } from '../values/raw-value.ts'
import { type Converted, type Converter, compileConverter, type ValueType } from '../values/value-type.ts'
import { type CompiledCondition, compileCondition, compileConditionalSource, type SourceCompiler } from './compile-condition.ts'
import { type CompiledSource, compileSource } from './compile-source.ts'
import type { FieldDefinition } from './definition.ts'
import type { FieldScope, PageTree, ParsedTree, SourceReader } from './field-scope.ts'

/** Why an extractor gives no record for a page. */
export interface FieldFailure {
  readonly code: 'EXTRACT_FIELD_MISSING' | 'EXTRACT_FIELD_INVALID'
  /** Path of the field, such as `specs[2].name`. */
  readonly field: string
  readonly message: string
}

/** What reading the fields of one record has come to so far. */
export interface FieldReading {
  failure: FieldFailure | undefined
  /** How many values sources have given, defaults not among them. */
  found: number
  /** Values that do not have the type of their field; the field is null, or its default. */
  readonly invalid: { readonly field: string; readonly problem: string }[]
}

export interface CompiledField<T extends PageTree = ParsedTree, S extends SourceReader<T> = SourceReader<T>> {
  readonly name: string
  readonly definition: FieldDefinition
  readonly sources: readonly S[]
  /** Fields of a nested record. */
  readonly nested: readonly CompiledField<T, S>[] | undefined
  readonly condition: CompiledCondition<T> | undefined
  /** The value, or null; a required one that is not there is noted as the failure of the reading. */
  read(scope: FieldScope<T>, reading: FieldReading, path: string): unknown
}

/** How the sources of fields are made ready; the other parts of a field are the same for every tree. */
export interface SourceCompilers<T extends PageTree, S extends SourceReader<T>> {
  /** Without its `when`. */
  readonly plain: SourceCompiler<T>
  readonly conditional: (...args: Parameters<SourceCompiler<T>>) => S
}

/** A field in the tree of the default parser. */
export type ParsedField = CompiledField<ParsedTree, CompiledSource>

const PARSED: SourceCompilers<ParsedTree, CompiledSource> = { plain: compileSource, conditional: compileConditionalSource }

export function compileFields(definitions: readonly FieldDefinition[]): readonly ParsedField[] {
  return compileFieldsWith(definitions, PARSED)
}

export function compileFieldsWith<T extends PageTree, S extends SourceReader<T>>(
  definitions: readonly FieldDefinition[],
  compilers: SourceCompilers<T, S>,
): readonly CompiledField<T, S>[] {
  return definitions.map((definition) => compileField(definition, compilers))
}

/** Data of one record. Shape: every field, null where there is nothing; incomplete once the reading has failed. */
export function readFields<T extends PageTree>(
  fields: readonly CompiledField<T>[],
  scope: FieldScope<T>,
  reading: FieldReading,
  prefix: string,
): Record<string, unknown> {
  const data: Record<string, unknown> = {}
  for (const field of fields) {
    data[field.name] = field.read(scope, reading, `${prefix}${field.name}`)
    if (reading.failure !== undefined) break
  }
  return data
}

function compileField<T extends PageTree, S extends SourceReader<T>>(
  definition: FieldDefinition,
  compilers: SourceCompilers<T, S>,
): CompiledField<T, S> {
  const { name, type } = definition
  const inner = type.kind === 'list' ? type.items : type
  const sources = definition.sources.map((source) => compilers.conditional(source, inner.kind, type.kind === 'list'))
  const condition = definition.when === undefined ? undefined : compileCondition(definition.when, compilers.plain)
  const nested = inner.kind === 'record' ? compileFieldsWith(inner.fields, compilers) : undefined
  const finder: Finder<T> =
    inner.kind === 'record'
      ? recordFinder(sources, nested ?? [], type.kind === 'list')
      : valueFinder(sources, inner, definition, compilers.plain)
  return {
    name,
    definition,
    sources,
    nested,
    condition,
    read(scope, reading, path) {
      if (condition?.holds(scope) === false) return definition.default ?? null
      const found = finder(scope, reading, path)
      if (found.value !== undefined) {
        reading.found += 1
        return found.value
      }
      if (found.problem !== undefined && found.noted !== true) reading.invalid.push({ field: path, problem: found.problem })
      if (definition.default !== undefined) return definition.default
      if (definition.required) reading.failure ??= failureOf(path, definition, sources, found.problem)
      return null
    },
  }
}

type Finder<T extends PageTree> = (scope: FieldScope<T>, reading: FieldReading, path: string) => Found

/** Shape: value undefined where there is none; problem: the first value that does not have the type; noted: the reading has it. */
interface Found {
  readonly value?: unknown
  readonly problem?: string
  readonly noted?: boolean
}

function valueFinder<T extends PageTree>(
  sources: readonly SourceReader<T>[],
  type: ValueType,
  { type: own, currency }: FieldDefinition,
  compile: SourceCompiler<T>,
): Finder<T> {
  const conversion: Conversion<T> = {
    convert: compileConverter(type),
    // What transforms made of a text stays as they made it, but for white space at its ends.
    convertMade: compileConverter(type.kind === 'string' ? { kind: 'html' } : type),
    isReference: type.kind === 'url',
    currency: currency === undefined ? undefined : compile(currency, 'string', false),
  }
  return own.kind === 'list' ? listFinder(sources, conversion) : scalarFinder(sources, conversion)
}

interface Conversion<T extends PageTree> {
  readonly convert: Converter
  readonly convertMade: Converter
  readonly isReference: boolean
  readonly currency: SourceReader<T> | undefined
}

function converterFor<T extends PageTree>(
  source: SourceReader<T>,
  conversion: Conversion<T>,
  scope: FieldScope<T>,
): (raw: RawValue) => Converted {
  const convertPlain = source.isMade ? conversion.convertMade : conversion.convert
  const convert = (raw: RawValue, base: string, currency?: string): Converted =>
    raw instanceof SeenText ? convertPlain(raw.value, false, base, currency) : convertPlain(raw, source.isMachine, base, currency)
  if (conversion.isReference) {
    const { base, charset } = scope.page
    return (raw) => convert(withEncodedQuery(String(raw), charset), base)
  }
  const [currency] = conversion.currency?.raws(scope, 1) ?? []
  return (raw) => convert(raw, '', currency === undefined ? undefined : String(currency))
}

function scalarFinder<T extends PageTree>(sources: readonly SourceReader<T>[], conversion: Conversion<T>): Finder<T> {
  return (scope) => {
    let problem: string | undefined
    for (const source of sources) {
      const [raw] = source.raws(scope, 1)
      if (raw === undefined) continue
      const converted = converterFor(source, conversion, scope)(raw)
      if (converted.kind === 'value') return { value: converted.value }
      if (converted.kind === 'problem') problem ??= converted.problem
    }
    return problem === undefined ? {} : { problem }
  }
}

/** Items that are empty or do not have the type are left out, the latter counted. */
function listFinder<T extends PageTree>(sources: readonly SourceReader<T>[], conversion: Conversion<T>): Finder<T> {
  return (scope, reading, path) => {
    let problem: string | undefined
    for (const source of sources) {
      const values: unknown[] = []
      const raws = source.raws(scope, Number.POSITIVE_INFINITY)
      if (raws.length === 0) continue
      const convert = converterFor(source, conversion, scope)
      for (const raw of raws) {
        const converted = convert(raw)
        if (converted.kind === 'value') values.push(converted.value)
        else if (converted.kind === 'problem') {
          problem ??= converted.problem
          reading.invalid.push({ field: path, problem: converted.problem })
        }
      }
      if (values.length > 0) return { value: values }
    }
    return problem === undefined ? {} : { problem, noted: true }
  }
}

/** A nested record of nothing but nulls and defaults is none: the head of a table has no cells. */
function recordFinder<T extends PageTree>(
  sources: readonly SourceReader<T>[],
  fields: readonly CompiledField<T>[],
  isList: boolean,
): Finder<T> {
  return (scope, reading, path) => {
    for (const source of sources) {
      const records: Record<string, unknown>[] = []
      for (const [index, inner] of source.scopes(scope, isList ? Number.POSITIVE_INFINITY : 1).entries()) {
        const foundBefore = reading.found
        const data = readFields(fields, inner, reading, `${path}${isList ? `[${index}]` : ''}.`)
        if (reading.failure !== undefined) return {}
        if (reading.found > foundBefore) records.push(data)
      }
      if (records.length > 0) return { value: isList ? records : records[0] }
    }
    return {}
  }
}

function failureOf(
  path: string,
  definition: FieldDefinition,
  sources: readonly { readonly text: string }[],
  problem: string | undefined,
): FieldFailure {
  const where = sources.map(({ text }) => text).join(', then ')
  if (problem === undefined) {
    return { code: 'EXTRACT_FIELD_MISSING', field: path, message: `the required field ${path} is empty; it comes from ${where}` }
  }
  return {
    code: 'EXTRACT_FIELD_INVALID',
    field: path,
    message: `the required field ${path} (${definition.type.kind}, from ${where}) has no value of its type: ${problem}`,
  }
}
