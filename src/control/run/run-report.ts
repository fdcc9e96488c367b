import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import type { FetchView } from '../../fetch/fetch-view.ts'
import type { AuditProgress, AuditReport } from '../crawls/audit.ts'
import type { DelayedTask } from '../crawls/crawl-backlog.ts'
import type { UnreadPages } from '../crawls/crawl-end.ts'
import type { BadSeed, SeedText } from '../crawls/produce.ts'
import type { LetterCounts } from '../dead-letters/page-letters.ts'
import type { WriteRecord } from '../records/record-output.ts'

export interface RunOptions {
  /** None: what is queued is worked off. */
  readonly seeds: AsyncIterable<SeedText> | Iterable<SeedText> | undefined
  readonly extractors: readonly LoadedExtractor[]
  /** A new crawl where not given. */
  readonly crawlId?: string
  readonly meta?: Readonly<Record<string, string>>
  /**
   * Asked for when all stages work, not before: a run that is refused must not touch what the one before has written. What it answers is
   * given the records of the crawl, of one that goes on also those of before; repeats among the last `REPEATS_AMONG` are left out.
   */
  readonly openOutput?: () => Promise<WriteRecord>
  readonly onOutput?: (text: string) => void
  /** Tasks that are due later than this are left queued. */
  readonly maxWaitMs: number
  readonly keepRunning: boolean
  readonly drainTimeoutMs: number
  readonly version: string
  /** The name of the crawl, before its first URL is produced. */
  readonly onCrawl?: (crawlId: string) => void
  readonly onProgress?: (progress: RunProgress) => void
  /** A signal may leave out the ledger at the end: this is told what is known without it, and the run ends with the signal's reason. */
  readonly onUncounted?: (report: UncountedRun) => Promise<void>
  readonly draining: AbortSignal
  readonly aborting: AbortSignal
}

export interface RunProgress {
  readonly accepted: number
  readonly final: number
  /** Those that were final when this run began; 0 where not given. */
  readonly finalBefore?: number
  /** What is counted; URLs where not given. Of whole topics it is messages: a URL that was put aside is several. */
  readonly unit?: 'message'
  /** Where every URL is done and the crawl has not ended: what it waits for. */
  readonly unread?: UnreadPages
  /** Why it can't be looked at just now whether the crawl has ended. */
  readonly away?: string
  /** What fetch waits for while it lasts; null: nothing. */
  readonly stalledBy: FetchView['stalledBy']
  readonly records: number
  readonly elapsedMs: number
  /** All is done, and it is added up what became of it. */
  readonly counting?: AuditProgress
}

export interface RunReport {
  /** Undefined when what was queued was worked off. */
  readonly crawlId: string | undefined
  readonly audit: AuditReport
  /** What ended since the run began, where what was queued was worked off: the ledger is that of the whole log then, of weeks ago too. */
  readonly endedNow?: EndedTasks
  /** A crawl that was there before goes on: its ledger has the URLs of all its runs. */
  readonly goesOn: boolean
  readonly records: number
  /** Of pages that were worked meanwhile, of other crawls too. */
  readonly deadLetters: LetterCounts
  readonly bad: readonly BadSeed[]
  readonly badCount: number
  readonly produced: number
  /**
   * Left queued, since they are due later than `maxWaitMs`, or wait for what is or for a proxy: some of them, and how many there are. Of
   * whole topics it is messages.
   */
  readonly waiting: readonly DelayedTask[]
  readonly waitingCount: number
  /**
   * Tasks that the state store had counted as open, and that are on no topic: their messages are lost. Those that have ended are not among
   * them.
   */
  readonly lostCount: number
  /** Or retention has deleted the messages of some, long after they had ended, and the store has forgotten the end. */
  readonly lostMayBeDeleted: boolean
  /** Pages that retention deleted before extract had read them, as this run has met them; of other crawls too. */
  readonly goneCount: number
  /** A signal ended it before the crawl had ended. */
  readonly interrupted: boolean
  readonly elapsedMs: number
}

/** How tasks ended: by kind, and by reason where that is not FETCHED. */
export type EndedTasks = Pick<AuditReport, 'outcomes' | 'reasons'>

type Lost = Pick<RunReport, 'lostCount' | 'lostMayBeDeleted' | 'goneCount'>
/** What is added up when all has ended. */
export type Counted = Pick<RunReport, 'audit' | 'deadLetters' | 'endedNow'>

/** What is known of a run whose ledger was left out. */
export interface UncountedRun extends Omit<RunReport, keyof Counted | keyof Lost> {
  readonly audit: null
  /** As the state store has counted the tasks of the crawl; null where what was queued was worked off. */
  readonly tasks: { readonly accepted: number; readonly final: number } | null
}
