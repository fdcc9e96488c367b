import { compareRuns, type RunChanges } from '../../comparison/record-changes.ts'
import type { Config } from '../../config/options.ts'
import { type CheckResult, checkExtractorFile } from '../../extract/check.ts'
import { type LoadedExtractor, loadExtractor } from '../../extract/load-extractors.ts'
import { type PageRun, runOnPages, type TestInput, type TestReport, testExtractor } from '../../extract/test-extractor.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { compatibilityProblems } from '../../message/compatibility.ts'
import { type LocatedPage, type TrialPageOptions, type TrialTarget, trialPages } from './trial-pages.ts'

export function checkExtractor(file: string, signal: AbortSignal): Promise<CheckResult> {
  return checkExtractorFile(file, signal)
}

export interface TrialOptions extends TrialPageOptions {
  readonly file: string
  readonly target: TrialTarget
  readonly onOutput: (text: string) => void
}

/** Runs an extractor on a saved page, a page fetched once, or a stored one; writes nothing. */
export async function tryExtractor(options: TrialOptions): Promise<TestReport & { readonly url: string }> {
  const { file, target, config, clock, onOutput } = options
  const extractor = await loadTrial(file, options.signal)
  const [located] = await trialPages([target], options)
  if (located === undefined) throw new MillraceError('USAGE', 'there is no page')
  const report = await testExtractor({
    extractor,
    ...located,
    ...limitsOf(config),
    clock,
    onOutput,
    signal: options.signal,
  })
  return { ...report, url: located.page.finalUrl }
}

/** The records that an extractor gives for some pages, in their order. Errors: EXTRACTOR_INVALID. */
export async function runTrial(
  extractor: LoadedExtractor,
  pages: readonly LocatedPage[],
  { config, clock, onOutput, signal }: Pick<TrialOptions, 'config' | 'clock' | 'onOutput' | 'signal'>,
): Promise<readonly PageRun[]> {
  return runOnPages({ extractor, pages, ...limitsOf(config), clock, onOutput, signal })
}

export interface ExtractorDiff extends RunChanges {
  readonly pages: number
  /** Pages that each would not read in a crawl, since its match does not fit; it is run on them in any case. */
  readonly unmatched: { readonly before: number; readonly after: number }
  /** Why who reads with the new schema can't read records of the old one; empty where they can. */
  readonly incompatible: readonly string[]
}

/** What changes from one extractor to another: the schema of the records, and the records of the pages. Writes nothing. */
export async function diffExtractors(
  files: { readonly before: string; readonly after: string },
  targets: readonly TrialTarget[],
  options: Omit<TrialOptions, 'file' | 'target'>,
): Promise<ExtractorDiff> {
  const [before, after] = [await loadTrial(files.before, options.signal), await loadTrial(files.after, options.signal)]
  const pages = await trialPages(targets, options)
  const changes = compareRuns(await runTrial(before, pages, options), await runTrial(after, pages, options))
  const incompatible = before.name === after.name ? compatibilityProblems('BACKWARD_TRANSITIVE', after.schema, [before.schema]) : []
  const unmatchedBy = ({ matches }: LoadedExtractor): number => pages.filter(({ page }) => !matches(page)).length
  const unmatched = { before: unmatchedBy(before), after: unmatchedBy(after) }
  return { pages: pages.length, unmatched, incompatible: incompatible.map(({ path, reason }) => `${path}: ${reason}`), ...changes }
}

/** Errors: EXTRACTOR_INVALID. */
export function loadTrial(file: string, signal: AbortSignal): Promise<LoadedExtractor> {
  return loadExtractor(file, signal)
}

function limitsOf(config: Config): Pick<TestInput, 'pageTimeoutMs' | 'pageMemoryBytes' | 'parser'> {
  return {
    pageTimeoutMs: config['extract.pageTimeout'],
    pageMemoryBytes: config['extract.pageMemory'],
    parser: config['extract.parser'],
  }
}
