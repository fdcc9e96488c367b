import { watch } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { compareRuns, type RunChanges } from '../../comparison/record-changes.ts'
import type { PageRun } from '../../extract/test-extractor.ts'
import { sleepUntil } from '../../kernel/clock.ts'
import { isMillraceError } from '../../kernel/errors.ts'
import { loadTrial, runTrial, type TrialOptions } from './extractor-trial.ts'
import { type TrialTarget, trialPages } from './trial-pages.ts'

/** What a save has changed. */
export type WatchUpdate =
  | { readonly kind: 'problems'; readonly problems: readonly string[] }
  | ({ readonly kind: 'changes'; readonly pages: number; readonly failures: number } & RunChanges)

/** Editors write a file in several steps. */
const SETTLE_MS = 60

/**
 * Runs an extractor on the same pages at every save, until it is aborted; the first update holds all that it finds. A code extractor
 * runs again too when a file beside it changes.
 */
export async function* watchExtractor(
  file: string,
  targets: readonly TrialTarget[],
  options: Omit<TrialOptions, 'file' | 'target'>,
): AsyncGenerator<WatchUpdate, void, undefined> {
  const { clock, signal } = options
  const path = resolve(file)
  const isDefinition = /\.(ya?ml|json)$/i.test(path)
  const pages = await trialPages(targets, options)
  const events = watch(dirname(path), { signal })[Symbol.asyncIterator]()
  /** A failure that comes while nobody waits for it must not end the process; whoever waits gets it all the same. */
  const nextEvent = (): ReturnType<typeof events.next> => {
    const next = events.next()
    next.catch(() => undefined)
    return next
  }
  // Asked for before the first run: a save during it is not lost.
  let coming = nextEvent()
  let before: readonly PageRun[] = []
  let last: string | undefined
  const update = async (): Promise<WatchUpdate | undefined> => {
    try {
      const extractor = await loadTrial(file, signal)
      if (extractor.definitionSha256 === last) return undefined
      last = extractor.definitionSha256
      const after = await runTrial(extractor, pages, options)
      const changes = compareRuns(before, after)
      before = after
      return { kind: 'changes', pages: pages.length, failures: after.filter(({ failure }) => failure !== undefined).length, ...changes }
    } catch (error) {
      if (!isMillraceError(error, 'EXTRACTOR_INVALID')) throw error
      const told = error.message
      if (told === last) return undefined
      last = told
      return { kind: 'problems', problems: told.split('\n') }
    }
  }
  try {
    const first = await update()
    if (first !== undefined) yield first
    for (let event = await coming; event.done !== true; event = await coming) {
      coming = nextEvent()
      const { filename } = event.value
      if (isDefinition && filename !== null && filename !== basename(path)) continue
      await sleepUntil(clock, clock.mono() + SETTLE_MS, signal)
      const next = await update()
      if (next !== undefined) yield next
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
