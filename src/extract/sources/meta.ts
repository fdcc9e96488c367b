import type { Document, Element } from 'domhandler'
import type { Selector } from '../language/selector.ts'

/** One `<meta>` of a page that has a name and a content. */
export interface MetaEntry {
  /** Lower case: of property, name, itemprop or http-equiv. */
  readonly name: string
  readonly content: string
}

/** In document order, which is what gives a structured property its owner. */
export function readMeta(root: Document, metas: Selector): readonly MetaEntry[] {
  return metas.all(root).flatMap(({ attribs }) => metaEntriesOf((name) => attribs[name]))
}

/** The element of each entry of {@link readMeta}, in the same order. */
export function metaElements(root: Document, metas: Selector): readonly Element[] {
  return metas.all(root).flatMap((element) => metaEntriesOf((name) => element.attribs[name]).map(() => element))
}

/** Entries of one element, whose attributes are asked for by name. */
export function metaEntriesOf(attribute: (name: string) => string | undefined): MetaEntry[] {
  const content = attribute('content')
  if (content === undefined) return []
  // Several names, in one attribute or in several (`name="image" property="og:image"`), are as many properties.
  const names = ['property', 'name', 'itemprop', 'http-equiv'].map(attribute).join(' ').toLowerCase().split(/\s+/)
  return [...new Set(names)].filter((name) => name !== '').map((name) => ({ name, content }))
}

/** Contents under a name. `og:image:url` is another way to write `og:image`. */
export function metaValues(entries: readonly MetaEntry[], name: string): string[] {
  return metaNamed(entries, name).map(({ content }) => content)
}

/** Entries whose contents {@link metaValues} gives. */
export function metaNamed(entries: readonly MetaEntry[], name: string): readonly MetaEntry[] {
  const wanted = name.toLowerCase()
  const exact = entries.filter((entry) => entry.name === wanted)
  return exact.length > 0 ? exact : entries.filter((entry) => entry.name === `${wanted}:url`)
}

/**
 * Entries grouped by their owner: each `og:image` begins a group, and the `og:image:…` behind it are its own until the next one.
 * Source: ogp.me, "Structured Properties" and "Arrays".
 */
export function metaGroups(entries: readonly MetaEntry[], name: string): readonly (readonly MetaEntry[])[] {
  const wanted = name.toLowerCase()
  const groups: MetaEntry[][] = []
  for (const entry of entries) {
    const begins = entry.name === wanted || (entry.name === `${wanted}:url` && !isRepeated(groups.at(-1), wanted, entry))
    if (begins) groups.push([entry])
    else if (entry.name.startsWith(`${wanted}:`)) groups.at(-1)?.push(entry)
  }
  return groups
}

/** `og:image` followed by an `og:image:url` that says the same again. */
function isRepeated(group: readonly MetaEntry[] | undefined, wanted: string, entry: MetaEntry): boolean {
  const [first] = group ?? []
  return first !== undefined && first.name === wanted && first.content === entry.content
}
