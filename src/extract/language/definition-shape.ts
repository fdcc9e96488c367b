import { z } from 'zod'
import { hostPattern } from '../../kernel/host-pattern.ts'
import { URL_PATTERN_EXPECTED, urlPattern } from '../../url/glob.ts'
import { SCALAR_KINDS } from '../values/value-type.ts'
import { ARTICLE_PARTS, EXTRACTOR_NAME } from './definition.ts'

/** One text or a list of them; a list in any case. */
const textsOf = (text: z.ZodString) => z.preprocess((value) => (typeof value === 'string' ? [value] : value), z.array(text).min(1))

// What could match no page is refused, and what is right is kept as it was written: it is part of what a version is known by.
const hosts = textsOf(
  z.string().refine((text) => hostPattern(text) !== undefined, 'expected a host without scheme, port and path, such as *.example.com'),
)
const urls = textsOf(z.string().refine((text) => urlPattern(text) !== undefined, URL_PATTERN_EXPECTED))
const types = textsOf(
  z.string().regex(/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/, 'expected a media type without parameters, such as application/json'),
)

const statuses = z.preprocess(
  (value) => (Array.isArray(value) || value === undefined ? value : [value]),
  z.array(z.union([z.int().min(100).max(599), z.string().regex(/^[1-5]xx$/)], 'expected a status such as 404 or 4xx')).min(1),
)

export const MATCH_SHAPE = z.strictObject({
  hosts: hosts.optional(),
  paths: urls.optional(),
  status: statuses.optional(),
  types: types.optional(),
})

export const LINKS_SHAPE = z.strictObject({ select: z.string().min(1).optional(), allow: urls.optional(), deny: urls.optional() })

/** Keys of an extractor file; `fields` is read field by field, with its positions. */
export const EXTRACTOR_SHAPE = z.strictObject({
  name: z.string().regex(EXTRACTOR_NAME, 'expected a lower case name of letters, digits and hyphens, at most 48 characters'),
  version: z.int().min(1).max(2_147_483_647),
  description: z.string().optional(),
  topic: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,249}$/, 'expected the name of a topic')
    .optional(),
  match: MATCH_SHAPE.optional(),
  parse: z.enum(['document', 'fragment']).optional(),
  each: z.string().min(1).optional(),
  when: z.unknown().optional(),
  key: z.string().min(1).optional(),
  fields: z.unknown().optional(),
  links: LINKS_SHAPE.optional(),
})

const scalar = z.enum(SCALAR_KINDS)

/** Keys of a field; which of them go together is checked where the field is read. */
export const FIELD_SHAPE = z.strictObject({
  doc: z.string().optional(),
  select: z.string().optional(),
  attr: z.string().min(1).optional(),
  meta: z.string().min(1).optional(),
  jsonld: z.string().min(1).optional(),
  microdata: z.string().min(1).optional(),
  rdfa: z.string().min(1).optional(),
  link: z
    .string()
    .regex(/^[a-z][a-z0-9.:/_-]*$/i, 'expected the name of a link type, such as canonical')
    .optional(),
  hreflang: z
    .string()
    .regex(/^[a-z]+(-[a-z0-9]+)*$/i, 'expected a language such as de or pt-br, or x-default')
    .optional(),
  table: z.string().min(1).optional(),
  column: z.union([z.string().min(1), z.int().min(1)], 'expected the heading of a column, or its number from 1').optional(),
  article: z.enum(ARTICLE_PARTS).optional(),
  any: z.array(z.unknown()).min(1).optional(),
  match: z.string().min(1).optional(),
  transform: z.unknown().optional(),
  when: z.unknown().optional(),
  type: z.enum([...SCALAR_KINDS, 'list', 'record']).optional(),
  items: scalar.optional(),
  scale: z.int().min(0).max(38).optional(),
  locale: z.string().optional(),
  format: z.string().optional(),
  zone: z.string().optional(),
  currency: z.unknown().optional(),
  required: z.boolean().optional(),
  default: z.union([z.string(), z.number(), z.boolean()], 'expected a text, a number or true or false').optional(),
  fields: z.unknown().optional(),
})

const PLACE_KEYS = {
  select: true,
  attr: true,
  meta: true,
  jsonld: true,
  microdata: true,
  rdfa: true,
  link: true,
  hreflang: true,
  table: true,
  column: true,
  article: true,
  match: true,
} as const

/** Keys of one entry of `any`. */
export const SOURCE_SHAPE = FIELD_SHAPE.pick({ ...PLACE_KEYS, transform: true, when: true })

/** Keys of a place that is looked at for something else than a value: whether a condition holds, which currency it is. */
export const PLACE_SHAPE = FIELD_SHAPE.pick(PLACE_KEYS)

export const CONDITION_SHAPE = PLACE_SHAPE.extend({ not: z.boolean().optional() })

export type FieldShape = z.infer<typeof FIELD_SHAPE>
export type SourceShape = z.infer<typeof SOURCE_SHAPE>
