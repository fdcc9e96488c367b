import { ExtractWorker, type ShadowReplay } from '../../extract/extract-worker.ts'
import { ExtractorHost, type ExtractorHostOptions, recordFraming } from '../../extract/extractor-host.ts'
import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { waitingLimits } from '../../extract/partition-port.ts'
import { errorText } from '../../kernel/errors.ts'
import { recordsTopicOf } from '../../message/topics.ts'
import type { Runtime } from '../runtime/runtime.ts'

export interface ExtractParts {
  readonly host: ExtractorHost
  readonly worker: ExtractWorker
}

/** Extraction in processes, within the limits of the configuration. Not started. */
export async function createExtractorHost(
  runtime: Runtime,
  extractors: readonly LoadedExtractor[],
  own: Pick<ExtractorHostOptions, 'domains' | 'framing' | 'onOutput' | 'observer'>,
): Promise<ExtractorHost> {
  const { config, clock } = runtime
  const blobs = await runtime.blobs()
  return new ExtractorHost({
    extractors,
    threads: config['extract.threads'],
    pageTimeoutMs: config['extract.pageTimeout'],
    pageMemoryBytes: config['extract.pageMemory'],
    parser: config['extract.parser'],
    ...(blobs === undefined ? {} : { blobs }),
    ...own,
    clock,
  })
}

/** Extract as one process: reads pages, writes records. Both parts are built, none is started. */
export async function createExtract(
  runtime: Runtime,
  extractors: readonly LoadedExtractor[],
  options: {
    groupId: string
    shadow?: ShadowReplay
    isCandidate?: boolean
    /** Nothing of this replay is left to do here. What fails in it is told, and ends nothing. */
    onReplayDone: (replayId: string) => Promise<unknown>
    onOutput?: (text: string) => void
  },
): Promise<ExtractParts> {
  const { config, client, admin, codec, topics, clock, observer } = runtime
  const stageObserver = observer.child({ stage: 'extract' })
  const host = await createExtractorHost(runtime, extractors, {
    domains: config['metrics.domains'],
    framing: (extractor) => recordFraming(codec, extractor.schema, options.shadow?.recordsTopic ?? recordsTopicOf(extractor, topics)),
    ...(options.onOutput === undefined ? {} : { onOutput: options.onOutput }),
    observer: stageObserver,
  })
  const worker = new ExtractWorker({
    client,
    admin,
    groupId: options.groupId,
    topic: topics.html,
    recordsTopic: topics.records,
    deadLettersTopic: topics.deadLetters,
    extraction: host,
    codec,
    control: await runtime.control(),
    layout: await runtime.layout(),
    maxBatchBytes: runtime.maxBatchBytes,
    limits: waitingLimits(config['extract.threads']),
    settings: runtime.consumerSettings,
    onReplayDone: (replayId) => {
      options
        .onReplayDone(replayId)
        .catch((error: unknown) => stageObserver.emit('ReplayCloseFailed', { replayId, error: errorText(error) }))
    },
    ...(options.shadow === undefined ? {} : { shadow: options.shadow }),
    isCandidate: options.isCandidate === true,
    clock,
    observer: stageObserver,
  })
  return { host, worker }
}
