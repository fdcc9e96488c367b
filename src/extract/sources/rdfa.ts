import type { AnyNode, Document, Element } from 'domhandler'
import { beginsAt, ElementAttribute, ElementText, type JsonNode, type JsonValue } from './json-node.ts'

/** What one page may cost: elements visited. */
const MAX_WORK = 2_000_000
const MAX_DEPTH = 64

/** A thing that properties are said of, while the page is read. */
interface Subject {
  /** The first that speaks of it. */
  readonly element: Element
  readonly types: string[]
  readonly id: string | undefined
  readonly properties: Map<string, (JsonValue | Subject)[]>
  isProperty: boolean
}

/**
 * RDFa Lite of a page, or of an element of it, as nodes with `@type`, and `@id` where a `resource` names them. Names lose their vocabulary:
 * `schema:price` is `price`. What is said of no item (the meta tags of Open Graph) is no node. An element that is within a thing sees what
 * is said of that one there. Source: RDFa Lite 1.1, HTML+RDFa 1.1.
 */
export function readRdfa(scope: Document | Element): readonly JsonNode[] {
  const subjects: Subject[] = []
  const byId = new Map<string, Subject>()
  const around = 'attribs' in scope && !begins(scope) ? thingAround(scope) : undefined
  const outer = around === undefined ? undefined : subjectOf(around)
  const waiting: { readonly node: AnyNode; readonly subject: Subject | undefined }[] = [{ node: scope, subject: outer }]
  let work = 0
  for (let at = waiting.pop(); at !== undefined && work < MAX_WORK; at = waiting.pop()) {
    const { node, subject } = at
    work += 1
    const inner = 'attribs' in node ? visit(node, subject) : subject
    if (!('children' in node)) continue
    for (let index = node.children.length - 1; index >= 0; index -= 1) {
      const child = node.children[index]
      if (child !== undefined) waiting.push({ node: child, subject: inner })
    }
  }
  // One that is nothing but a way to other things would hide them: they are what the element holds.
  const held = outer === undefined ? [] : [...outer.properties.values()].flat()
  if (outer !== undefined && held.every(isSubject)) {
    outer.isProperty = true
    for (const subject of held) subject.isProperty = false
  }
  const built = new Map<Subject, JsonNode>()
  return subjects.filter((subject) => !subject.isProperty).map((subject) => nodeOf(subject, built, []))

  /** What is said of an element, and of whom its children speak. */
  function visit(element: Element, subject: Subject | undefined): Subject | undefined {
    const { property, resource } = element.attribs
    const isKnown = resource !== undefined && byId.has(resource)
    const own = begins(element) ? subjectOf(element) : undefined
    if (property === undefined || subject === undefined) return own ?? subject
    let value: JsonValue | Subject
    if (own === undefined) {
      const written = element.attribs.content ?? element.attribs.datetime ?? urlOf(element)
      value = written === undefined ? new ElementText(element) : new ElementAttribute(element, written)
    } else {
      value = own
      // One that was spoken of before stays a thing of its own, else two that name each other would both be gone.
      if (!isKnown) own.isProperty = true
    }
    for (const name of names(property)) {
      const values: (JsonValue | Subject)[] = subject.properties.get(name) ?? []
      subject.properties.set(name, values)
      values.push(value)
    }
    return own ?? subject
  }

  function subjectOf(element: Element): Subject {
    const { typeof: types, resource: id } = element.attribs
    const known = id === undefined ? undefined : byId.get(id)
    const subject: Subject = known ?? { element, types: [], id, properties: new Map(), isProperty: false }
    if (known === undefined) subjects.push(subject)
    if (known === undefined && id !== undefined) byId.set(id, subject)
    for (const name of names(types ?? '')) subject.types.push(name)
    return subject
  }
}

/** Whether an element is the start of a thing. */
function begins({ attribs: { typeof: types, property, resource } }: Element): boolean {
  return types !== undefined || (resource !== undefined && property === undefined)
}

function thingAround({ parent }: Element): Element | undefined {
  for (let at = parent; at !== null; at = at.parent) if ('attribs' in at && begins(at)) return at
  return undefined
}

/**
 * Beside a relation it is that of another property, and the own one is the text: `<a rel="v:url" property="v:title">`. Words of HTML
 * (`nofollow`) are no relations. Source: RDFa Core 1.1, 7.5, step 11; HTML+RDFa 1.1, 3.1.
 */
function urlOf({ attribs: { rel = '', rev = '', resource, href, src } }: Element): string | undefined {
  return `${rel} ${rev}`.includes(':') ? undefined : (resource ?? href ?? src)
}

/** Words without their vocabulary. */
function names(text: string): string[] {
  return text.split(/\s+/).flatMap((word) => {
    const name = word.replace(/^.*[/#:]/, '')
    return name === '' ? [] : [name]
  })
}

/** Shape: one node per subject, also where several speak of it; what leads back to itself ends there. */
function nodeOf(subject: Subject, built: Map<Subject, JsonNode>, open: readonly Subject[]): JsonNode {
  const known = built.get(subject)
  if (known !== undefined) return known
  const within = [...open, subject]
  const entries = [...subject.properties].map(([name, values]): [string, JsonValue] => [
    name,
    values.flatMap((value): JsonValue[] => {
      if (!isSubject(value)) return [value]
      return within.includes(value) || within.length >= MAX_DEPTH ? [] : [nodeOf(value, built, within)]
    }),
  ])
  const id: [string, JsonValue][] = subject.id === undefined ? [] : [['@id', subject.id]]
  const types: [string, JsonValue][] = subject.types.length === 0 ? [] : [['@type', subject.types]]
  const node = beginsAt(Object.fromEntries([...types, ...id, ...entries]), subject.element)
  built.set(subject, node)
  return node
}

function isSubject(value: JsonValue | Subject): value is Subject {
  return typeof value === 'object' && value !== null && 'properties' in value && value.properties instanceof Map
}
