import type { KafkaMessage } from '../kafka/message.ts'
import type { MessagePlace } from '../kernel/brand.ts'
import type { Clock } from '../kernel/clock.ts'
import { errorText, isMillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import type { MessageCodec } from '../message/codec.ts'
import { deadLetterEvent } from '../message/dead-letter.ts'
import type { Page } from '../message/generated/types.ts'
import { isPutBack, pagePlaces, pageSource, putBackOfReplay } from '../message/put-back.ts'
import { inFilter, isInRange, type ReplayRequest } from '../message/replay-request.ts'
import { isOfDomain } from '../url/registrable-domain.ts'
import { isMeantFor } from './match.ts'
import type { ExtractorTotals } from './offset-metadata.ts'
import type { PageExtraction } from './page-extraction.ts'
import { type ExtractFailure, type PageOutput, type PageOutputOptions, PageOutputs } from './page-output.ts'
import type { PageWork, PartitionPort, ProcessedPage } from './partition-port.ts'

export interface PageProcessorOptions {
  readonly codec: MessageCodec
  readonly extraction: PageExtraction
  readonly output: PageOutputOptions
  /** The request of a replay, as `control` holds it. */
  readonly replayRequest: (replayId: string) => ReplayRequest | undefined
  /** A shadow replay: every page of its filter goes to its extractor, whatever the offset's metadata says. */
  readonly shadow?: ReplayRequest
  /** Of what is left in a partition of html. Asked by replays, for copies whose page lay in another partition. */
  readonly firstOffset: (partition: number) => Promise<bigint>
  /** A version that works on live pages beside the live one: none is put back for it. */
  readonly isCandidate?: boolean
  /**
   * Awaited before a page of a replay is extracted: its rate cap. Pages that it passes over wait for nothing. Shape: false where the
   * signal came before the moment of the page, which then counts for nothing.
   */
  readonly moment?: (request: ReplayRequest, giveBack: AbortSignal) => Promise<boolean>
  readonly clock: Clock
  readonly observer: Observer
}

const NOTHING: ReadonlyMap<string, ExtractorTotals> = new Map()

/** A message of html in, messages of records and dead letters out; see `PartitionPort.process`. */
export function createPageProcessor(options: PageProcessorOptions): PartitionPort['process'] {
  const { codec, extraction, clock, observer } = options
  const output = new PageOutputs(options.output, extraction.extractors)

  return async (message, work, giveBack) => {
    const { replayId } = work
    const request = options.shadow ?? (replayId === undefined ? undefined : options.replayRequest(replayId))
    const isReplay = request !== undefined || replayId !== undefined
    const ofReplay = isReplay ? undefined : putBackOfReplay(message.headers)
    const counts = ofReplay === undefined ? countsOf(message, isReplay) : 'put-back-of-replay'
    const nothing: ProcessedPage = { offset: message.offset, messages: [], totals: NOTHING, counts }
    if (await isReadElsewhere(message, work, request)) return { ...nothing, counts: 'no-page' }
    const page = await decodePage(message)
    if (isFailure(page)) {
      const unread = isReplay
        ? unreadByReplay(message, page, request)
        : output.broken(message, page, { extractedAt: clock.now(), replayId: ofReplay ?? null })
      return unread === undefined ? nothing : processed(message, unread, counts)
    }
    const names = namesFor(message, page, request, isReplay)
    if (names.length === 0) {
      observer.emit('PagePassedOver')
      // A sitemap is no page that an extractor lacks.
      return counts === 'page' && page.sitemapLevel > 0 ? { ...nothing, counts: 'no-page' } : nothing
    }
    if (request !== undefined && (await options.moment?.(request, giveBack)) === false) return undefined
    const startedMono = clock.mono()
    const by = { extractedAt: clock.now(), replayId: request?.replayId ?? null }
    const results = await extraction.extract({ page, source: pageSource(message), extractors: names, ...by })
    observer.emit('PageExtracted', { seconds: (clock.mono() - startedMono) / 1000 })
    // What fails once more is a dead letter of the replay still, or it would be counted where the first was not.
    return processed(message, output.of({ message, page, by: { ...by, replayId: by.replayId ?? ofReplay ?? null } }, results), counts)
  }

  function countsOf({ headers }: KafkaMessage, isReplay: boolean): ProcessedPage['counts'] {
    // The group of a shadow replay has no other work: its own totals count it.
    if (isReplay) return options.shadow === undefined ? 'replayed' : 'page'
    return isPutBack(headers) ? 'no-page' : 'page'
  }

  function processed(message: KafkaMessage, { messages, deadLetters, totals }: PageOutput, counts: ProcessedPage['counts']): ProcessedPage {
    for (const context of deadLetters) observer.emit('DeadLetterWritten', deadLetterEvent(message, context))
    return { offset: message.offset, messages, totals, counts }
  }

  /**
   * A page whose schema is not known here may have given records that lie on the log: another process knew it, or the registry did. So a
   * replay fails on it and says so, or it would seem to give nothing any more; whether the filter takes it can't be told. What is
   * broken for good was buried when it was live, and is not buried once more.
   */
  function unreadByReplay(message: KafkaMessage, failure: ExtractFailure, request: ReplayRequest | undefined): PageOutput | undefined {
    const extractor = request === undefined ? undefined : extraction.extractors.get(request.extractor)
    if (failure.code !== 'MESSAGE_SCHEMA_UNKNOWN' || request === undefined || extractor === undefined) return undefined
    if (!isMeantFor(message.headers, extractor.name)) return undefined
    const by = { extractedAt: clock.now(), replayId: request.replayId }
    return output.unread({ message, by }, failure, extractor)
  }

  /** A copy of a page that this work reads in another place, or has read. */
  async function isReadElsewhere(message: KafkaMessage, work: PageWork, request: ReplayRequest | undefined): Promise<boolean> {
    const ours = pagePlaces(message).filter((place) => isOursToo(place, message.partition, work, request))
    if (ours.length === 0 || ours.some(({ partition }) => partition === message.partition)) return ours.length > 0
    // Retention may have come there before whoever reads that partition.
    for (const { partition, offset } of ours) if (offset >= (await options.firstOffset(partition))) return true
    return false
  }

  /** Whether this work reads that place too; live work reads what was put back for it, whatever it has read. */
  function isOursToo(place: MessagePlace, partition: number, { readFrom }: PageWork, request: ReplayRequest | undefined): boolean {
    const isSkipped = place.partition === partition && place.offset < readFrom
    if (request !== undefined) return isInRange(request, place) && !isSkipped
    // Where a candidate has begun in other partitions is not known here.
    return options.isCandidate === true && place.partition === partition && !isSkipped
  }

  async function decodePage(message: KafkaMessage): Promise<Page | ExtractFailure> {
    try {
      await codec.ensureSchemas([message.value])
      return codec.decode('Page', message.value)
    } catch (error) {
      if (isMillraceError(error) && error.disposition === 'dead-letter') return { code: error.code, message: error.message }
      // What would tell of its schema is away: the page is not broken, the work on it is repeated.
      if (isMillraceError(error)) throw error
      return { code: 'EXTRACT_PAGE_BROKEN', message: errorText(error) }
    }
  }

  function namesFor(message: KafkaMessage, page: Page, request: ReplayRequest | undefined, isReplay: boolean): readonly string[] {
    const matching = extraction.matching(page).filter((name) => isMeantFor(message.headers, name))
    if (request !== undefined) {
      return inFilter(page, request.filter, isOfDomain) ? matching.filter((name) => name === request.extractor) : []
    }
    // In a replay whose request nobody knows nothing is guessed; the worker has refused it before it came here.
    if (isReplay) return []
    return matching
  }
}

function isFailure(page: Page | ExtractFailure): page is ExtractFailure {
  return 'code' in page
}
