import { nearestName } from '../../kernel/nearest.ts'
import { type ExtractorDefinition, type FieldDefinition, type LinksDefinition, type MatchDefinition, pascalName } from './definition.ts'
import { DefinitionDocument } from './definition-document.ts'
import { EXTRACTOR_SHAPE } from './definition-shape.ts'
import type { ExtractorProblem } from './extractor-problem.ts'
import { readFields } from './read-field.ts'
import { checkSelector, readCondition } from './read-source.ts'
import { parseShortForm } from './short-form.ts'

/** Shape: no definition where a problem is an error; warnings come with one. */
export interface ReadDefinition {
  readonly definition: ExtractorDefinition | undefined
  readonly problems: readonly ExtractorProblem[]
  /** A problem with the name that other files tell. */
  readonly nameProblem: (message: string) => ExtractorProblem
}

/** Reads the text of an extractor file, YAML or JSON, and checks all of it, so that nothing is left to fail on a page. Errors: none. */
export function readDefinition(text: string): ReadDefinition {
  const document = new DefinitionDocument(text)
  const definition = document.hasErrors ? undefined : readTop(document)
  const problems = document.problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
  return {
    definition: document.hasErrors ? undefined : definition,
    problems,
    nameProblem: (message) => document.problemAt(['name'], message),
  }
}

function readTop(document: DefinitionDocument): ExtractorDefinition | undefined {
  const { value } = document
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    document.error([], 'the file holds no extractor; expected a map with name, version and fields')
    return undefined
  }
  const top = document.read(value, EXTRACTOR_SHAPE, [])
  const given = value as Readonly<Record<string, unknown>>
  // Read even where something above is wrong, so that one run shows all there is to correct.
  const typeName = typeof given.name === 'string' ? `${pascalName(given.name)}Data` : 'Data'
  const fields = readFields(document, given.fields, ['fields'], typeName, given.each === undefined ? 'page' : 'element')
  if (typeof given.each === 'string' && given.each !== '') checkSelector(document, given.each, ['each'])
  const when = given.when === undefined ? undefined : readCondition(document, given.when, ['when'], 'page')
  checkLinks(document, given.links)
  checkKey(document, given.key, given.fields, fields ?? [])
  if (top === undefined || fields === undefined) return undefined
  return {
    name: top.name,
    version: top.version,
    description: top.description,
    topic: top.topic,
    match: matchOf(top.match),
    when,
    parse: top.parse ?? 'document',
    each: top.each,
    key: top.key,
    fields,
    links: linksOf(top.links),
  }
}

function matchOf(match: MatchInput | undefined): MatchDefinition {
  return { hosts: match?.hosts ?? [], paths: match?.paths ?? [], status: match?.status ?? [], types: match?.types ?? [] }
}

/** As zod gives it: absent keys may be there as undefined. */
type MatchInput = { readonly [Name in keyof MatchDefinition]?: MatchDefinition[Name] | undefined }

function checkLinks(document: DefinitionDocument, links: unknown): void {
  if (typeof links !== 'object' || links === null || !('select' in links) || typeof links.select !== 'string') return
  if (links.select !== '') checkSelector(document, parseShortForm(links.select).selector, ['links', 'select'])
}

function linksOf(links: LinksInput | undefined): LinksDefinition | undefined {
  if (links === undefined) return undefined
  return { select: links.select, allow: links.allow ?? [], deny: links.deny ?? [] }
}

type LinksInput = { readonly [Name in keyof LinksDefinition]?: LinksDefinition[Name] | undefined }

/** Shape: `written` is the map of the file, `fields` those of it that could be read. */
function checkKey(document: DefinitionDocument, key: unknown, written: unknown, fields: readonly FieldDefinition[]): void {
  if (typeof key !== 'string' || key === '' || typeof written !== 'object' || written === null) return
  const field = fields.find(({ name }) => name === key)
  if (field === undefined) {
    const names = Object.keys(written)
    if (names.includes(key)) return
    const nearest = nearestName(key, names)
    const advice = nearest === undefined ? `expected one of ${names.join(', ')}` : `did you mean ${nearest}?`
    document.error(['key'], `key names the field ${JSON.stringify(key)}, which is not there: ${advice}`)
  } else if (field.type.kind === 'list' || field.type.kind === 'record' || field.type.kind === 'money') {
    document.error(['key'], `the field ${key} is a ${field.type.kind}; a key is one value`)
  }
}
