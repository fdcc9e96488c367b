/** Millrace as a library. What is exported here is the public API; everything else may change without notice. */

export type { Comparison, ComparisonExample, FailureCount, FieldDifference, PageFailure, PageSource } from './comparison/compare.ts'
export type { GateVerdict } from './comparison/gate.ts'
export type { AuditReport } from './control/crawls/audit.ts'
export type { DelayedTask } from './control/crawls/crawl-backlog.ts'
export type { BadSeed, ProduceReport } from './control/crawls/produce.ts'
export type { CrawlLedger, LedgerCounts, MissingTask } from './control/crawls/task-ledger.ts'
export type { LetterCounts } from './control/dead-letters/page-letters.ts'
export type { GroupTotals } from './control/groups/extract-totals.ts'
export { Millrace, type MillraceOptions, type ProduceOptions, type StructuredOptions, type Urls } from './control/millrace.ts'
export type { PromoteReport } from './control/promote.ts'
export type { ConsumedRecord, ConsumedTombstone, ConsumeRecordsOptions } from './control/records/record-consumer.ts'
export type { ForgottenReplay } from './control/replay/forget-replay.ts'
export type { InPlaceStart } from './control/replay/replay-in-place.ts'
export type { PartitionReplay, ReplayStanding, ReplayStatus } from './control/replay/replay-status.ts'
export type { ShadowReport } from './control/replay/shadow-replay.ts'
export type {
  ReplayInPlaceOptions,
  ReplayInPlaceReport,
  ReplayLibrary,
  ReplayOptions,
  ReplayPreviewOptions,
  ReplayRunOptions,
  ReplayShadowOptions,
  ReplayShadowReport,
} from './control/replay-library.ts'
export type { EndedTasks, RunReport } from './control/run/run-report.ts'
export type { ReplayPlan, StartRequest } from './control/trials/plan-range.ts'
export type { PlannedPartition } from './control/trials/replay-plan.ts'
export type { LargestRecord, PreviewReport } from './control/trials/replay-preview.ts'
export {
  type CodeExtractor,
  type DataOf,
  defineExtractor,
  type ExtractorInput,
  type ExtractorMatch,
  type ExtractorPage,
  type ExtractorRecord,
  type ExtractorSchema,
  type ExtractorSchemaField,
} from './extract/define-extractor.ts'
export type { ExtractorTotals } from './extract/offset-metadata.ts'
export type { MessagePlace, TopicPartition } from './kernel/brand.ts'
export { type Disposition, type ErrorCode, type ErrorContext, type ExitCode, MillraceError } from './kernel/errors.ts'
export type { EventFields, Observer } from './kernel/observe.ts'
export type {
  Command,
  Dedup,
  Header,
  Hop,
  Lane,
  Outcome,
  OutcomeKind,
  Pace,
  Page,
  RecordEnvelope,
  RecordVersion,
  RobotsVerdict,
  Source,
  UrlTask,
} from './message/generated/types.ts'
export type { ReplayFilter } from './message/replay-request.ts'
export type { WorkerHeartbeat } from './state/state-store.ts'
