/** Millrace as a library. What is exported here is the public API; everything else may change without notice. */

export type { AuditReport } from './control/audit.ts'
export type { DelayedTask } from './control/crawl-backlog.ts'
export type { GroupTotals } from './control/extract-totals.ts'
export type { ForgottenReplay } from './control/forget-replay.ts'
export { Millrace, type MillraceOptions, type ProduceOptions, type StructuredOptions, type Urls } from './control/millrace.ts'
export type { LetterCounts } from './control/page-letters.ts'
export type { BadSeed, ProduceReport } from './control/produce.ts'
export type { ConsumedRecord, ConsumedTombstone, ConsumeRecordsOptions } from './control/record-consumer.ts'
export type { ReplayPlan, StartRequest } from './control/replay.ts'
export type { InPlaceStart } from './control/replay-in-place.ts'
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
export type { LargestRecord, PreviewReport } from './control/replay-preview.ts'
export type { PartitionReplay, ReplayStanding, ReplayStatus } from './control/replay-status.ts'
export type { EndedTasks, RunReport } from './control/run-report.ts'
export type { ShadowReport } from './control/shadow-replay.ts'
export type { CrawlLedger, LedgerCounts, MissingTask } from './control/task-ledger.ts'
export type { PromoteReport } from './control/versions.ts'
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
export type { Comparison, ComparisonExample, FailureCount, FieldDifference, PageFailure, PageSource } from './replay/compare.ts'
export type { GateVerdict } from './replay/gate.ts'
export type { PlannedPartition } from './replay/plan.ts'
export type { WorkerHeartbeat } from './state/state-store.ts'
