import { OptionError } from '../values/option-error.ts'
import { compileConverter, type ScalarKind, type ValueType } from '../values/value-type.ts'
import type { FieldDefinition, FieldType } from './definition.ts'
import { type DefinitionDocument, type Path, shown } from './definition-document.ts'
import type { FieldShape } from './definition-shape.ts'

/** Type of a field and the options that belong to it. Shape: undefined, with a problem, where they do not fit. */
export function readType(
  document: DefinitionDocument,
  shape: FieldShape,
  nested: readonly FieldDefinition[] | undefined,
  path: Path,
): FieldType | undefined {
  if (nested !== undefined) {
    if (shape.items !== undefined) document.error([...path, 'items'], 'a field has either "items" or "fields"')
    if (shape.type === 'list') return { kind: 'list', items: { kind: 'record', fields: nested } }
    if (shape.type === undefined || shape.type === 'record') return { kind: 'record', fields: nested }
    document.error([...path, 'type'], `a field with "fields" is a record or a list, not ${shape.type}`)
    return undefined
  }
  if (shape.type === 'record') {
    document.error([...path, 'type'], 'a record needs "fields"')
    return undefined
  }
  const isList = shape.type === 'list'
  if (shape.items !== undefined && !isList) {
    document.error([...path, 'items'], '"items" is the type of the items of a list; add "type: list"')
    return undefined
  }
  const kind: ScalarKind = (isList ? shape.items : scalarOf(shape.type)) ?? (shape.link === undefined ? 'string' : 'url')
  const type = scalarType(document, kind, shape, path)
  if (type === undefined) return undefined
  try {
    compileConverter(type)
  } catch (error) {
    if (!(error instanceof OptionError)) throw error
    document.error([...path, error.option], error.message)
    return undefined
  }
  return isList ? { kind: 'list', items: type } : type
}

function scalarOf(type: FieldShape['type']): ScalarKind | undefined {
  return type === 'list' || type === 'record' ? undefined : type
}

const OPTIONS: Readonly<Record<'scale' | 'locale' | 'format' | 'zone', readonly ScalarKind[]>> = {
  scale: ['decimal', 'money'],
  locale: ['int', 'long', 'double', 'decimal', 'money', 'date', 'timestamp'],
  format: ['date', 'timestamp'],
  zone: ['timestamp', 'date'],
}

function scalarType(document: DefinitionDocument, kind: ScalarKind, shape: FieldShape, path: Path): ValueType | undefined {
  const misplaced = (Object.keys(OPTIONS) as (keyof typeof OPTIONS)[]).filter(
    (option) => shape[option] !== undefined && !OPTIONS[option].includes(kind),
  )
  for (const option of misplaced) {
    document.error([...path, option], `"${option}" belongs to ${OPTIONS[option].join(', ')}; the field is a ${kind}`)
  }
  const { scale, locale, format, zone } = shape
  switch (kind) {
    case 'decimal':
      if (scale === undefined) {
        document.error(path, 'a decimal needs its "scale": the number of digits behind the point')
        return undefined
      }
      return { kind, scale, ...(locale === undefined ? {} : { locale }) }
    case 'money': {
      const currency = typeof shape.currency === 'string' ? shape.currency : undefined
      return { kind, scale: scale ?? 2, ...(locale === undefined ? {} : { locale }), ...(currency === undefined ? {} : { currency }) }
    }
    case 'int':
    case 'long':
    case 'double':
      return { kind, ...(locale === undefined ? {} : { locale }) }
    case 'date':
    case 'timestamp':
      return {
        kind,
        ...(format === undefined ? {} : { format }),
        ...(zone === undefined ? {} : { zone }),
        ...(locale === undefined ? {} : { locale }),
      }
    default:
      return { kind }
  }
}

/** Nothing is relative to it. */
const NO_BASE = 'none:'

/** The default, checked to have the type of the field. */
export function readDefault(
  document: DefinitionDocument,
  shape: FieldShape,
  type: FieldType,
  path: Path,
): string | number | boolean | undefined {
  const value = shape.default
  if (value === undefined) return undefined
  const at = [...path, 'default']
  if (type.kind === 'list' || type.kind === 'record' || type.kind === 'money') {
    document.error(at, `a ${type.kind} has no default: it is null where nothing is found`)
    return undefined
  }
  if (type.kind === 'string' || type.kind === 'html' || type.kind === 'markdown') {
    if (typeof value === 'string') return value
    document.error(at, `the default is ${shown(value)}; expected text`)
    return undefined
  }
  // No page to resolve it against, so of a URL all of it: a relative one would be of whatever site the page is.
  const converted = compileConverter(type)(value, true, NO_BASE)
  // `http:path` would be the host `path`.
  const isWhole = type.kind !== 'url' || /^\s*[^\s/:]+:\/\//.test(String(value))
  if (isWhole && converted.kind === 'value' && typeof converted.value !== 'object') return converted.value
  document.error(
    at,
    `the default is ${shown(value)}; expected ${type.kind === 'url' ? 'a URL that is absolute, such as https://example.com/none.png' : `a value of type ${type.kind}`}`,
  )
  return undefined
}
