import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

/** One real page of the corpus, as its bytes were on the wire. */
export interface CorpusPage {
  /** `000` and so on. */
  readonly id: string
  readonly bytes: Buffer
}

/** Beside the checkout: ../shared/corpus, one gzip file a page. */
export const corpusFolder = fileURLToPath(new URL('../../../shared/corpus/', import.meta.url))

export const hasCorpus = existsSync(corpusFolder)

/** Reason for skipping, for the name of a suite; empty where the corpus is there. */
export const corpusNote = hasCorpus ? '' : ` (skipped: there is no corpus of real pages in ${corpusFolder})`

/** Shape: sorted by id; `every` 4 gives every fourth page. Errors: where the corpus is not there; ask `hasCorpus` first. */
export function corpusPages(options: { readonly every?: number } = {}): CorpusPage[] {
  const every = options.every ?? 1
  return readdirSync(corpusFolder)
    .filter((name) => name.endsWith('.html.gz'))
    .toSorted()
    .filter((_, index) => index % every === 0)
    .map((name) => ({ id: name.slice(0, -'.html.gz'.length), bytes: gunzipSync(readFileSync(`${corpusFolder}${name}`)) }))
}
