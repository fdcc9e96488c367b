import { parseShortForm } from '../../extract/language/short-form.ts'
import { type LoadedExtractor, loadDefinition } from '../../extract/load-extractors.ts'
import type { ExtractionJob, ExtractionResult } from '../../extract/page-extraction.ts'
import type { FrontierWorkerOptions } from '../../frontier/frontier-worker.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { readFraming } from '../../message/framing.ts'
import type { Page } from '../../message/generated/types.ts'
import { compileUrlGlob } from '../../url/glob.ts'
import type { WorkingVersions } from '../extractors/active-versions.ts'

type PageLinks = FrontierWorkerOptions['linksOf']

/**
 * All links by tags where no extractor that matches the page says anything; else what one of these lets through. A `select` needs the tree
 * of the page, which foreign markup can make as dear as it likes: so it is read like a field, in a process that is held to the limits of
 * extraction, and for the extractors alone that ask for it.
 */
export function pageLinks(
  versions: Pick<WorkingVersions, 'current'>,
  selections: ReadonlyMap<LoadedExtractor, LoadedExtractor>,
  select: (names: readonly string[], page: Page, source: ExtractionJob['source']) => Promise<readonly ExtractionResult[]>,
): PageLinks {
  let known: { readonly of: readonly LoadedExtractor[]; readonly rules: readonly LinkRule[] } | undefined
  return async (page, source) => {
    if (known?.of !== versions.current) known = { of: versions.current, rules: linkRules(versions.current, selections) }
    const applying = known.rules.filter(({ matches }) => matches(page))
    if (applying.length === 0) return { selected: [], byTags: () => true }
    const ofTags = applying.filter(({ selection }) => selection === undefined)
    const selecting = applying.flatMap(({ selection, passes }) => (selection === undefined ? [] : [{ selection, passes }]))
    const names = selecting.map(({ selection }) => selection.name)
    const results = names.length === 0 ? [] : await select(names, page, source)
    const selected = selecting.map(({ selection, passes }) => ({
      links: results.flatMap((result) => (result.extractor === selection.name ? selectedLinks(selection, result) : [])),
      passes,
    }))
    return { selected, byTags: ofTags.length === 0 ? undefined : (link) => ofTags.some(({ passes }) => passes(link)) }
  }
}

interface LinkRule {
  readonly matches: LoadedExtractor['matches']
  readonly passes: (link: string) => boolean
  /** Undefined: its links are those by tags. */
  readonly selection: LoadedExtractor | undefined
}

function linkRules(extractors: readonly LoadedExtractor[], selections: ReadonlyMap<LoadedExtractor, LoadedExtractor>): readonly LinkRule[] {
  return extractors.flatMap((extractor) => {
    const { matches, links } = extractor
    if (links === undefined) return []
    const [allow, deny] = [links.allow.map(compileUrlGlob), links.deny.map(compileUrlGlob)]
    const passes = (link: string): boolean => {
      const url = new URL(link)
      return !deny.some((glob) => glob(url)) && (allow.length === 0 || allow.some((glob) => glob(url)))
    }
    return [{ matches, passes, selection: selections.get(extractor) }]
  })
}

/** What finds the links of an extractor in a tree: an extractor of one field. Shape: undefined where tags are enough. */
export function selectionOf({ file, links }: Pick<LoadedExtractor, 'file' | 'links'>, name: string): LoadedExtractor | undefined {
  const text = linkSelector(links?.select)
  if (text === undefined) return undefined
  const definition = { name, version: 1, fields: { links: { select: text, type: 'list', items: 'url' } } }
  return loadDefinition(`links of ${file}`, JSON.stringify(definition))
}

/** With the attribute that a link has where none is named. Shape: undefined for what tags tell: `a`, `a@href`, or nothing. Pure. */
export function linkSelector(select: string | undefined): string | undefined {
  if (select === undefined) return undefined
  const { selector, attribute = 'href' } = parseShortForm(select)
  return /^a(\[href\])?$/i.test(selector) && attribute === 'href' ? undefined : `${selector}@${attribute}`
}

/** Shape: absolute. Errors: the code of a selection that failed. */
export function selectedLinks({ file, schema }: Pick<LoadedExtractor, 'file' | 'schema'>, result: ExtractionResult): readonly string[] {
  if (result.kind === 'failure') throw new MillraceError(result.code, `${file}: ${result.message}`)
  return result.records.flatMap(({ value }) => {
    const { data } = schema.decode(value, readFraming(value).bodyStart) as { readonly data: { readonly links: readonly string[] | null } }
    return data.links ?? []
  })
}
