import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import type { ExtractionJob, ExtractionResult } from '../../extract/page-extraction.ts'
import type { Observer } from '../../kernel/observe.ts'
import type { ServiceGroup } from '../../kernel/service-group.ts'
import type { Page } from '../../message/generated/types.ts'
import type { WorkingVersions } from '../extractors/active-versions.ts'
import { createExtractorHost } from '../extractors/create-extract.ts'
import { showStage } from '../groups/heartbeat.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { pageLinks, selectionOf } from './page-links.ts'
import { createFrontier } from './stages.ts'

/** The frontier with the `links` of the extractors that work. */
export async function startFrontier(
  runtime: Runtime,
  stages: ServiceGroup,
  versions: Pick<WorkingVersions, 'current' | 'loaded'>,
  signal: AbortSignal,
): Promise<void> {
  const selections = new Map<LoadedExtractor, LoadedExtractor>()
  for (const extractor of versions.loaded) {
    const selection = selectionOf(extractor, `links-${selections.size}`)
    if (selection !== undefined) selections.set(extractor, selection)
  }
  const observer = endsAlone(runtime.observer.child({ stage: 'frontier' }), selections)
  const host = selections.size === 0 ? undefined : await createExtractorHost(runtime, [...selections.values()], { observer })
  if (host !== undefined) await stages.start('links', host, signal)
  const select = (names: readonly string[], page: Page, source: ExtractionJob['source']): Promise<readonly ExtractionResult[]> =>
    host === undefined ? Promise.resolve([]) : host.extract({ page, source, extractors: names, extractedAt: 0, replayId: null })
  await stages.start('frontier', await createFrontier(runtime, pageLinks(versions, selections, select)), signal)
  await showStage(runtime, 'frontier', runtime.groups.frontier)
}

/**
 * What it yields are links, which the frontier counts: as records of an extractor they would be told of one that nobody has. Ends of
 * processes are told of the extractors whose links these were.
 */
function endsAlone(observer: Observer, selections: ReadonlyMap<LoadedExtractor, LoadedExtractor>): Observer {
  const names = new Map([...selections].map(([{ name }, selection]) => [selection.name, name]))
  const own: Observer = {
    emit: (event, fields) => {
      if (event !== 'ExtractionProcessReplaced') return
      const ofSelections = String(fields?.extractors ?? '').split(',')
      observer.emit(event, { ...fields, extractors: ofSelections.map((name) => names.get(name) ?? name).join(',') })
    },
    child: () => own,
  }
  return own
}
